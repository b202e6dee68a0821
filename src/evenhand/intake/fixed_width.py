"""Texts of one width each, as numpy keeps them, coded by the words of memory that they are made of.

Making a Python text of each row costs more than an audit of the rows. Here rows are hashed to places, many at a time,
and then compared, word for word, with the row that stands for their place: where two different texts got one place
nothing is returned, and the caller codes them one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import IntArray

# Rows below which coding one by one is as fast, rows that are hashed at once (their words stay in cache), bits of a
# place, and distinct texts among the first rows that speak for names or identifiers.
_FEWEST, _STEP, _BITS, _MANY = 20_000, 8192, 18, 1000
_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


def code_texts(array: NDArray[Any]) -> tuple[IntArray, NDArray[Any]] | None:
    """Return each row's place among the distinct texts, in the order in which they first occur, and these texts.

    Parameters
    ----------
    array : ndarray of str or bytes, shape (rows,)
        Texts of fixed width.

    Returns
    -------
    codes : ndarray of int, shape (rows,)
    texts : ndarray
        Or None for both: there are few rows or many texts.

    Examples
    --------
    >>> codes, texts = code_texts(np.array(["b", "a", "b"] * 10_000))
    >>> codes[:3].tolist(), texts.tolist()
    ([0, 1, 0], ['b', 'a'])
    """
    width = array.dtype.itemsize
    if array.size < _FEWEST or width == 0:
        return None
    word = np.uint64 if width % 8 == 0 else np.uint32 if width % 4 == 0 else np.uint8
    words = np.ascontiguousarray(array).view(word).reshape(array.size, -1)  # (rows, words of a row)
    places = np.empty(array.size, dtype=np.intp)
    for start in range(0, array.size, _STEP):
        places[start : start + _STEP] = _hashed(words[start : start + _STEP])
        if start == 0 and np.unique(places[:_STEP]).size > _MANY:
            return None
    first = np.full(1 << _BITS, -1, dtype=np.int64)
    first[places[::-1]] = np.arange(array.size - 1, -1, -1)
    used = np.flatnonzero(first >= 0)
    used = used[np.argsort(first[used])]
    order = np.empty(1 << _BITS, dtype=np.int64)
    order[used] = np.arange(used.size)
    codes, texts = order[places], words[first[used]]
    for start in range(0, array.size, _STEP):
        if not np.array_equal(words[start : start + _STEP], texts[codes[start : start + _STEP]]):
            return None
    return codes, array[first[used]]


def _hashed(words: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a place for each row of words, the same for the same words."""
    mixed = words[:, 0].astype(np.uint64)
    for j in range(1, words.shape[1]):
        mixed *= _FACTORS[0]
        mixed ^= mixed >> np.uint64(29)
        mixed += words[:, j]
    mixed *= _FACTORS[0]
    mixed ^= mixed >> np.uint64(32)
    mixed *= _FACTORS[1]
    return mixed >> np.uint64(64 - _BITS)
