"""Many random choices of a few rows out of many, at a cost that does not grow with the rows left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import IntArray

IndexArray = NDArray[np.int32] | IntArray

# Above this share of the rows a shuffle is faster than drawing and redrawing.
SHARE = 0.25


def random_picks(rng: np.random.Generator, rows: int, chosen: int, n: int) -> IndexArray:
    """Choose `chosen` of `rows` rows, `n` times, every choice equally likely.

    Rows are drawn one by one and those drawn twice are drawn again until none is left. No row is treated
    differently from another at any step, so every choice is equally likely.

    Returns
    -------
    ndarray of int, shape (n, chosen)
        The places of the chosen rows, in no meaningful order.

    Examples
    --------
    >>> picks = random_picks(np.random.default_rng(0), 1000, 5, 3)
    >>> [len(set(line)) for line in picks.tolist()]
    [5, 5, 5]
    """
    kind = np.int32 if rows < 2**31 else np.int64
    if chosen > SHARE * rows:
        return rng.permuted(np.broadcast_to(np.arange(rows, dtype=kind), (n, rows)), axis=1)[:, :chosen]
    picks = np.sort(rng.integers(0, rows, size=(n, chosen), dtype=kind), axis=1)
    line = np.arange(n)
    while True:
        part = picks[line]
        again = part[:, 1:] == part[:, :-1]
        broken = again.any(axis=1)
        if not broken.any():
            return picks
        line, again, part = line[broken], again[broken], part[broken]
        part[:, 1:][again] = rng.integers(0, rows, size=int(again.sum()), dtype=kind)
        picks[line] = np.sort(part, axis=1)
