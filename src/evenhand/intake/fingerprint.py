"""A short name for the content of the data: the same rows in any order, from any source, give the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray

WordArray = NDArray[np.uint64]

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
        seed = self._seed(name)
        for start in range(0, len(values), _BLOCK):
            part = values[start : start + _BLOCK] + 0.0
            part[np.isnan(part)] = np.nan
            # A sum over columns: their order does not matter either.
            self._hash[start : start + _BLOCK] += _mix(part.view(np.uint64) ^ seed)

    def labels(self, name: str, codes: IntArray, labels: Sequence[str]) -> None:
        """Add a column of labels; the texts count, not their codes."""
        words = [int.from_bytes(_digest(f"label:{t}")[:8], "little") for t in labels]
        self._hash += _mix(np.array([*words, 0], dtype=np.uint64) ^ self._seed(name))[codes]

    def note(self, text: str) -> None:
        """Add a fact about the whole."""
        self._names.append(f"note:{text}")

    def hex(self) -> str:
        """Return the fingerprint, 32 hexadecimal digits."""
        totals = [0, 0]
        for start in range(0, len(self._hash), _BLOCK):
            words, count = self._hash[start : start + _BLOCK], self._count[start : start + _BLOCK]
            for salt in (0, 1):
                totals[salt] += int((_mix(words ^ np.uint64(salt + 1)) * count).sum(dtype=np.uint64))
        parts = [*sorted(self._names), str(int(self._count.sum())), *(str(t % 2**64) for t in totals)]
        return _digest("\x1f".join(parts)).hex()

    def _seed(self, name: str) -> np.uint64:
        self._names.append(name)
        return np.uint64(int.from_bytes(_digest(f"column:{name}")[:8], "little"))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=16).digest()


def _mix(words: WordArray) -> WordArray:
    # The finaliser of the SplitMix64 generator: every input bit reaches every output bit.
    x = words + np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
