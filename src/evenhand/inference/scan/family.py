"""What a metric must offer to be searched: one evidence for each subgroup, on the data and on permuted data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.scan.lattice import Lattice

Drawn = Callable[[np.random.Generator, int], FloatArray]  # from a generator to the evidence of b draws, (b, S)


class Family(ABC):
    """One metric in every subgroup of a lattice, each compared with the rest.

    Evidence is minus the logarithm of a p-value, so that subgroups of all sizes are comparable: exact where a whole
    law can be summed, else that of a limit law. Whatever it is, permutations say how large its maximum is by chance.
    """

    lattice: Lattice  # the subgroups, without two that ask the same
    size: IntArray  # (S,) people of each subgroup whom the metric is about
    value: FloatArray  # (S,) the metric in each
    rest: FloatArray  # (S,) the metric in the rest
    evidence: FloatArray  # (S,)
    most: FloatArray  # (S,) the most evidence that each could give, from its size alone; infinite where not known

    @property
    def difference(self) -> FloatArray:
        """The subgroup's value minus the rest's."""
        return self.value - self.rest

    @property
    def numbers(self) -> int:
        """How many numbers one permutation holds at once."""
        return int(max(self.lattice.members.shape))

    @abstractmethod
    def drawn(self, rng: np.random.Generator, b: int) -> FloatArray:
        """Return the evidence of all subgroups in `b` permutations, shape (b, S)."""

    @property
    def references(self) -> tuple[Drawn, ...]:
        """Draws that a subgroup's evidence must exceed, each kind of them: permutations, unless a class has more."""
        return (self.drawn,)

    @abstractmethod
    def take(self, kept: IntArray) -> Family:
        """Return the same metric in some of the subgroups."""
