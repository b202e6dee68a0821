"""Rows worked through a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evenhand.arrays import IntArray

T = TypeVar("T")

# Rows worked on together: small enough for the second-level cache at about a hundred columns.
TILE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """How rows are worked through; the answer does not depend on it."""

    size: int = TILE  # rows worked on together
    progress: Callable[[int, int], None] | None = None  # called with rows done and rows in all

    def run(self, work: Callable[[IntArray], T], n: int) -> list[T]:
        """Do a piece of work for each tile of n rows, in order.

        Examples
        --------
        >>> Tiles(size=2).run(len, 5)
        [2, 2, 1]
        """
        done: list[T] = []
        tiles = (np.arange(low, min(low + self.size, n)) for low in range(0, n, self.size))
        for tile in tiles:
            done.append(work(tile))
            if self.progress is not None:
                self.progress(min(len(done) * self.size, n), n)
        return done
