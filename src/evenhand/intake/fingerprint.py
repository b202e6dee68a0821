"""A short name for the content of the data: the same rows in any order, from any source, give the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.shared.row_hash import WordArray, add_numbers, column_salt, digest, mix, text_words

_BLOCK = 1 << 15  # records that fit in the processor's cache


class Fingerprint:
    """Collects columns, then hashes each record and adds the hashes up, so that order does not matter.

    Parameters
    ----------
    count : ndarray of int, shape (records,)
        Rows each record stands for; a record counted twice equals the record given twice.

    Examples
    --------
    >>> one, two = Fingerprint(np.array([2])), Fingerprint(np.array([1, 1]))
    >>> one.labels("sex", np.array([0]), ("F",)); two.labels("sex", np.array([0, 0]), ("F",))
    >>> one.hex() == two.hex()
    True
    """

    def __init__(self, count: IntArray) -> None:
        self._count = count.astype(np.uint64)
        self._hash: WordArray = np.zeros(count.shape, dtype=np.uint64)
        self._names: list[str] = []

    def numbers(self, name: str, values: FloatArray) -> None:
        """Add a column of numbers; 0 and -0 are one number, and every NaN is one."""
        add_numbers(self._hash, values, self._salt(name))

    def labels(self, name: str, codes: IntArray, labels: Sequence[str]) -> None:
        """Add a column of labels; the texts count, not their codes."""
        self._hash += mix(text_words([*labels, None]) ^ self._salt(name))[codes]

    def note(self, text: str) -> None:
        """Add a fact about the whole."""
        self._names.append(f"note:{text}")

    def hex(self) -> str:
        """Return the fingerprint, 32 hexadecimal digits."""
        totals = [0, 0]
        for start in range(0, len(self._hash), _BLOCK):
            words, count = self._hash[start : start + _BLOCK], self._count[start : start + _BLOCK]
            for salt in (0, 1):
                totals[salt] += int((mix(words ^ np.uint64(salt + 1)) * count).sum(dtype=np.uint64))
        parts = [*sorted(self._names), str(int(self._count.sum())), *(str(t % 2**64) for t in totals)]
        return digest("\x1f".join(parts)).hex()

    def _salt(self, name: str) -> np.uint64:
        self._names.append(name)
        return column_salt(name)
