"""A data set with decisions as a CSV file that anybody can open."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.datasets.decided import load
from evenhand.files import write_atomic


def export(name: str, path: str | Path) -> Path:
    """Write a known data set that has decisions as a CSV file.

    Parameters
    ----------
    name : str
        ``"adult"``, ``"compas"`` or ``"compas-violent"``.
    path : str or Path
        Where the file goes; its folder is made when missing, and a file that is there is replaced.

    Returns
    -------
    Path
        The file. Its columns are `outcome`, `decision`, `score`, the groups and the features.

    Raises
    ------
    DataError
        When the name is not known, no copy was found, or the data set has outcomes but no decisions.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = export("adult", f"{folder}/decisions.csv")
    ...     lines = file.read_text().splitlines()
    >>> len(lines), lines[0][:31]
    (16282, 'outcome,decision,score,sex,race')
    """
    data = load(name)
    columns: dict[str, Iterable[Any]] = {"outcome": _plain(data.outcome), "decision": _plain(data.decision)}
    columns["score"] = _plain(data.score)
    for attribute in data.attributes:
        columns[attribute.name] = np.asarray(attribute.labels)[attribute.codes].tolist()
    columns |= {feature: _plain(values) for feature, values in data.features.items()}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    write_atomic(Path(path), text.getvalue())
    return Path(path)


def _plain(values: Any) -> list[Any]:
    """Return a column as it should stand in the file: whole numbers without a decimal point."""
    values = np.asarray(values)
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    return list(values.tolist())
