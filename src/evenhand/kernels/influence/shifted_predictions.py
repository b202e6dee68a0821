"""Predictions at rows of a sample with one feature set to another value.

A logistic probability needs no new prediction for a changed feature: its odds are multiplied by a
constant. It comes from the fit of all rows: fits without a fold disagree on the sign of a coefficient near
0, and a mean of their absolute changes would have neither the right mean nor a variance. Other learners
could memorise rows and are asked for the fit without the row's fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.nuisance import Learned, LogisticFolds

CHUNK = 8192

# A prediction at rows of the sample with one block set to one of its levels.
Opaque = Callable[[IntArray, Block, int], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sources:
    """Where the three inputs of psi come from."""

    h: Learned | Opaque  # learned from scores, or the model itself (`Opaque`)
    eta: Learned | None = None  # None when no term uses the outcome
    # Probability of the second distribution, for the divergence; log_ratio = -logit + `log_prior`.
    member: Learned | None = None
    log_prior: float = 0.0  # log of the ratio of the second to the first sample's size

    def named(self) -> list[tuple[str, Learned | Opaque]]:
        """Return the sources there are, by name."""
        every = (("h", self.h), ("eta", self.eta), ("member", self.member))
        return [(name, s) for name, s in every if s is not None]


class LogisticReader:
    """A logistic probability with one block changed."""

    def __init__(self, source: LogisticFolds, columns: FloatArray):
        self.coef = source.all_rows.coef
        self.columns = columns
        self.linear = self.coef @ columns + source.all_rows.intercept  # (chunk,)

    def logits(self, block: Block) -> list[FloatArray]:
        """Return the linear predictor at each level."""
        base = self.without(block)
        return [base + float(level @ self.coef[list(block.where)]) for level in block.levels]

    def without(self, block: Block) -> FloatArray:
        """Return the linear predictor without a block's part."""
        first, last = block.where[0], block.where[-1]
        together = last - first == len(block.where) - 1  # a slice is read in place, a list of columns is copied
        where = slice(first, last + 1) if together else list(block.where)
        return np.asarray(self.linear - self.coef[where] @ self.columns[where])

    def levels(self, block: Block) -> list[FloatArray]:
        """Return the probability at each level."""
        base = np.exp(np.clip(self.without(block), -500.0, 500.0))
        factors = np.exp(np.clip(block.levels @ self.coef[list(block.where)], -100.0, 100.0))  # (levels,)
        out = []
        for factor in factors:
            odds = base * factor
            out.append(np.divide(odds, 1.0 + odds, out=odds))
        return out


class PlainReader:
    """A prediction made anew for each level: of the judged model, or of a probability without a formula."""

    def __init__(self, predict: Callable[[Block, int], FloatArray]):
        self.predict = predict

    def levels(self, block: Block) -> list[FloatArray]:
        """Return the prediction at each level."""
        return [self.predict(block, v) for v in range(len(block.levels))]

    def logits(self, block: Block) -> list[FloatArray]:
        """Return the logit at each level."""
        return [special.logit(p) for p in self.levels(block)]


Reader = LogisticReader | PlainReader


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """A few rows of one fold with every source opened there."""

    place: slice  # their places among all rows that are averaged over
    columns: FloatArray  # (columns, rows): their inputs, one row per column
    weight: FloatArray  # (rows,): their weights
    readers: dict[str, Reader]  # by name of the source

    def predictions(self, block: Block) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return h and eta at each level of a block; h twice when no term uses the outcome."""
        h = self.readers["h"].levels(block)
        return h, self.readers["eta"].levels(block) if "eta" in self.readers else h


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a sample that are averaged over."""

    X: FloatArray  # (rows, columns): inputs of the whole sample
    weight: FloatArray  # (rows,): weights of the whole sample
    fold: IntArray  # (rows,): folds of the whole sample
    number: IntArray  # (averaged,): the rows that are averaged over, sorted by fold. A model is asked by these numbers.

    @property
    def mass(self) -> FloatArray:
        """Weights of the rows that are averaged over."""
        return self.weight[self.number]

    def opened(self, sources: Sources) -> Iterator[Chunk]:
        """Cut the rows into pieces that fit the cache, each inside one fold, and open every source there.

        Examples
        --------
        >>> rows = Rows(np.zeros((3, 1)), np.ones(3), np.array([0, 0, 2]), np.arange(3))
        >>> [c.place for c in rows.opened(Sources(h=lambda rows, block, level: np.full(len(rows), 0.5)))]
        [slice(0, 2, None), slice(2, 3, None)]
        """
        fold = self.fold[self.number]
        edges = np.append(np.searchsorted(fold, np.arange(int(fold.max()) + 1)), len(fold)).tolist()
        for k in range(len(edges) - 1):
            for start in range(edges[k], edges[k + 1], CHUNK):
                place = slice(start, min(start + CHUNK, edges[k + 1]))
                some = self.number[place]
                columns = _turned(self.X, some)
                yield Chunk(place, columns, self.weight[some], _readers(sources, k, columns, some))


def _readers(sources: Sources, k: int, columns: FloatArray, rows: IntArray) -> dict[str, Reader]:
    """Open every source at some rows of fold k."""
    out: dict[str, Reader] = {}
    for name, source in sources.named():
        if isinstance(source, LogisticFolds) and not source.products:
            out[name] = LogisticReader(source, columns)
        elif isinstance(source, Learned):
            out[name] = PlainReader(partial(_learned, source, k, columns))
        else:
            out[name] = PlainReader(partial(source, rows))
    return out


def _learned(source: Learned, k: int, columns: FloatArray, block: Block, level: int) -> FloatArray:
    """Predict rows of fold k at a level; a logistic fit is the one of all rows, with products or without."""
    X = set_to(columns, block, block.levels[level])
    return source.whole(X) if isinstance(source, LogisticFolds) else source.fold(X, k)


def set_to(columns: FloatArray, block: Block, level: FloatArray) -> FloatArray:
    """Return the rows of some columns with one block set to a level, or each row to its own."""
    X = columns.T.copy()
    X[:, list(block.where)] = level
    return X


def _turned(X: FloatArray, rows: IntArray) -> FloatArray:
    """Return some rows of a matrix turned round, taken in pieces that the cache holds: far faster than all at once."""
    out = np.empty((X.shape[1], len(rows)))
    for start in range(0, len(rows), 512):
        out[:, start : start + 512] = X[rows[start : start + 512]].T
    return out
