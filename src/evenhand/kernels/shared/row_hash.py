"""Sixty-four bits for the content of a row: what is drawn from them does not depend on where the row stands.

Folds, samples and random numbers of single rows come from this hash. The same values give the same bits on every
machine, in every order of the rows and the columns, and however the rows are divided.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray

WordArray = NDArray[np.uint64]

_BLOCK = 1 << 15  # rows that fit in the processor's cache


class Coded(NamedTuple):
    """A column of texts: each row's place among them, and the texts."""

    codes: IntArray
    texts: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.codes)


def row_hash(columns: Mapping[str, NDArray[Any] | Coded], seed: int) -> WordArray:
    """Return 64 bits for each row's values; names of columns count, their order does not.

    Parameters
    ----------
    columns : mapping of str to ndarray, shape (rows,), or Coded
        Numbers by their value as doubles (0 and -0 are one number, every NaN is one); texts, and None for none, as
        they are or coded.
    seed : int
        Another seed gives other bits.

    Returns
    -------
    ndarray of uint64, shape (rows,)

    Examples
    --------
    >>> one = row_hash({"x": np.array([0.0, 1.0]), "sex": np.array(["F", None], dtype=object)}, seed=1)
    >>> two = row_hash({"sex": np.array([None, "F"], dtype=object), "x": np.array([1, -0.0])}, seed=1)
    >>> bool((one == two[::-1]).all()), bool(one[0] == one[1])
    (True, False)
    """
    rows = len(next(iter(columns.values()))) if columns else 0
    words = np.zeros(rows, dtype=np.uint64)
    for name, values in columns.items():
        salt = column_salt(name)
        if not isinstance(values, Coded) and values.dtype.kind in "biuf":
            add_numbers(words, values, salt)
        else:
            codes, texts = values if isinstance(values, Coded) else _coded_texts(values)
            words += mix(text_words(texts) ^ salt)[codes]
    return mix(words ^ np.uint64(int.from_bytes(digest(f"seed:{seed}")[:8], "little")))


def unit_interval(words: WordArray) -> FloatArray:
    """Return one number in [0, 1) for each hash, evenly spread.

    Examples
    --------
    >>> unit_interval(np.array([0, 1 << 63], dtype=np.uint64)).tolist()
    [0.0, 0.5]
    """
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def add_numbers(words: WordArray, values: NDArray[Any], salt: np.uint64) -> None:
    """Add the hashes of a column of numbers to those of other columns, in place; a sum knows no order of columns."""
    for start in range(0, len(values), _BLOCK):
        part = np.add(values[start : start + _BLOCK], 0.0, dtype=np.float64)
        missing = np.isnan(part)
        if missing.any():
            part[missing] = np.nan
        words[start : start + _BLOCK] += mix(part.view(np.uint64) ^ salt)


def text_words(texts: Iterable[str | None]) -> WordArray:
    """Return 64 bits for each text, and 0 for none."""
    return np.array(
        [0 if t is None else int.from_bytes(digest(f"label:{t}")[:8], "little") for t in texts], dtype=np.uint64
    )


def column_salt(name: str) -> np.uint64:
    """Return what tells the values of one column from equal ones of another."""
    return np.uint64(int.from_bytes(digest(f"column:{name}")[:8], "little"))


def digest(text: str) -> bytes:
    """Return sixteen bytes that stand for a text, on every machine the same."""
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).digest()


def mix(words: WordArray) -> WordArray:
    """Spread each input bit over all output bits, as the finaliser of the SplitMix64 generator does."""
    x = words + np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _coded_texts(array: NDArray[Any]) -> Coded:
    """Return each row's place among the distinct texts, so that each text is hashed once."""
    items = array.tolist()
    distinct = list(set(items))
    place = {value: i for i, value in enumerate(distinct)}
    codes = np.fromiter(map(place.__getitem__, items), dtype=np.int64, count=len(items))
    return Coded(codes, [None if value is None or value != value else str(value) for value in distinct])
