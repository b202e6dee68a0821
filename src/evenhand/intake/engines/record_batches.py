"""Arrow record batches -> columns, as the engine that holds the rows would give them at once."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import MissingDependencyError
from evenhand.intake.columns import Column, from_codes
from evenhand.intake.parts import FeatureType


def batch_columns(arrays: Sequence[Any], names: Sequence[str], kinds: Mapping[str, str]) -> dict[str, Column]:
    """Take the columns of one batch of rows, in the order of `names`.

    Parameters
    ----------
    arrays : sequence of pyarrow.Array
        Numbers, truth values, and everything else as texts.
    names : sequence of str
        The user's names of its columns.
    kinds : mapping of str to str
        As in `Engine`.

    Returns
    -------
    dict of str to Column
        Of the same kind in every batch, also where a batch holds no value.
    """
    import pyarrow

    columns = {}
    for name, array in zip(names, arrays, strict=True):
        if kinds[name] in ("number", "truth"):
            values = array.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
            truth = FeatureType(kind="truth") if kinds[name] == "truth" else None
            columns[name] = Column(kind=kinds[name], values=values, source_type=truth)
        else:
            encoded = array.cast(pyarrow.large_string()).dictionary_encode()
            codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            columns[name] = from_codes(codes, encoded.dictionary.to_pylist())
    return columns


def require_arrow() -> None:
    """Say what to install where rows cannot be read batch by batch."""
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingDependencyError('Reading rows batch by batch needs pyarrow: pip install "evenhand[arrow]".')
