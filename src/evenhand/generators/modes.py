"""Numbers as generators of tables need them: a mode of a Gaussian mixture, and the place inside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.generators.columns import ColumnKind, Columns, describe


def fit_modes(values: FloatArray, most: int = 6, rounds: int = 60) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit a mixture of normal laws to numbers by the EM algorithm; modes with little weight are dropped.

    Parameters
    ----------
    values : ndarray
        The numbers.
    most : int
        Modes to begin with.
    rounds : int
        EM steps.

    Returns
    -------
    weight, mean, deviation : ndarray, shape (modes,)

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> weight, mean, _ = fit_modes(np.concatenate([draw.normal(0, 1, 500), draw.normal(50, 1, 500)]))
    >>> bool(mean.min() < 2 and mean.max() > 48)
    True
    """
    least = max(values.std(), 1e-9) * 1e-2
    mean = np.quantile(values, (np.arange(most) + 0.5) / most)
    deviation = np.full(most, max(values.std() / most, least))
    weight = np.full(most, 1 / most)
    for _ in range(rounds):
        near = responsibilities(values, weight, mean, deviation)
        total = near.sum(axis=0) + 1e-12
        mean = (near * values[:, None]).sum(axis=0) / total
        deviation = np.sqrt((near * (values[:, None] - mean) ** 2).sum(axis=0) / total)
        deviation = np.maximum(deviation, least)
        weight = total / total.sum()
    keep = weight > 0.005
    return weight[keep] / weight[keep].sum(), mean[keep], deviation[keep]


def responsibilities(values: FloatArray, weight: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return the probability of each mode given each number, shape (numbers, modes)."""
    log = np.log(weight + 1e-300) - np.log(deviation) - ((values[:, None] - mean) / deviation) ** 2 / 2
    log -= log.max(axis=1, keepdims=True)
    near = np.exp(log)
    return np.asarray(near / near.sum(axis=1, keepdims=True))


Modes = tuple[FloatArray, FloatArray, FloatArray]  # weight, mean and deviation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coder:
    """A table's way into a matrix of places in [-1, 1] and one-hot blocks, and back."""

    kinds: tuple[ColumnKind, ...]
    modes: tuple[Modes | None, ...]  # of each column of numbers; None for categories

    @property
    def spans(self) -> list[tuple[ColumnKind, Modes | None, int, int]]:
        """Each column with its modes, its first input and the one past its last."""
        out, at = [], 0
        for kind, modes in zip(self.kinds, self.modes, strict=True):
            size = kind.size if modes is None else 1 + modes[0].size
            out.append((kind, modes, at, at + size))
            at += size
        return out

    @property
    def width(self) -> int:
        """Inputs of the matrix."""
        return self.spans[-1][3]

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Blocks of the category columns (not of modes), for conditioning."""
        return tuple((low, high) for _, modes, low, high in self.spans if modes is None)

    @property
    def blocks(self) -> list[tuple[str, int, int]]:
        """``("place" or "choice", first, past the last)`` input of each block."""
        out = []
        for _, modes, low, high in self.spans:
            out += [] if modes is None else [("place", low, low + 1)]
            out.append(("choice", low if modes is None else low + 1, high))
        return out

    def encode(self, columns: Columns, rng: np.random.Generator) -> FloatArray:
        """Return the matrix; a number's mode is drawn from its probabilities."""
        parts = []
        for kind, mode in zip(self.kinds, self.modes, strict=True):
            if mode is None:
                parts.append(kind.one_hot(columns[kind.name]))
                continue
            values = np.asarray(columns[kind.name], dtype=float)
            near = responsibilities(values, *mode)
            pick = (near.cumsum(axis=1) < rng.random((values.size, 1))).sum(axis=1).clip(0, mode[0].size - 1)
            place = ((values - mode[1][pick]) / (4 * mode[2][pick])).clip(-0.99, 0.99)
            parts += [place[:, None], (pick[:, None] == np.arange(mode[0].size)).astype(float)]
        return np.concatenate(parts, axis=1)

    def decode(self, matrix: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the table; a block's largest entry is its choice."""
        out = {}
        for kind, modes, low, high in self.spans:
            pick = matrix[:, low if modes is None else low + 1 : high].argmax(axis=1)
            numbers = pick.astype(float)
            if modes is not None:
                numbers = matrix[:, low].clip(-1, 1) * 4 * modes[2][pick] + modes[1][pick]
            out[kind.name] = kind.restore(numbers)
        return out


def make_coder(columns: Columns) -> Coder:
    """Learn a table's coder.

    Examples
    --------
    >>> table = {"x": np.arange(100.0), "c": np.array(["a", "b"] * 50)}
    >>> coder = make_coder(table)
    >>> back = coder.decode(coder.encode(table, np.random.default_rng(0)))
    >>> bool(np.abs(back["x"] - table["x"]).max() < 1), bool((back["c"] == table["c"]).all())
    (True, True)
    """
    kinds = describe(columns)
    numbers = [None if k.categories is not None else np.asarray(columns[k.name], dtype=float) for k in kinds]
    return Coder(kinds=kinds, modes=tuple(None if v is None else fit_modes(v) for v in numbers))
