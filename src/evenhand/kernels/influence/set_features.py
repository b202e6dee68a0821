"""What a feature does to an influence function: set it to each of its values, row by row.

For each row of P the feature takes all its levels while the other features stay. The change of psi,
max minus min over the levels, averaged over the rows, is the proxy score [wang2019] definition 5; for a
feature of two values the signed form is psi(second) - psi(first). The mean of psi at each level is the
feature's profile.

Rows go through in chunks that fit the cache; `odds` scores those of logistic sources fastest. With `linear=True`
the slopes of the scores in the coefficients of the logistic fits and in the centre are collected on the way;
`linearised` turns them into a covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import TERMS, Centre, psi, psi_slopes
from evenhand.kernels.influence.logistic_scores import bilinear, open_odds
from evenhand.kernels.influence.nuisance import LogisticFolds, with_products
from evenhand.kernels.influence.shifted_predictions import Chunk, Rows, Sources, set_to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Toggles:
    """Proxy scores and their slopes."""

    score: FloatArray  # (blocks,): mean over rows of max minus min
    # (blocks,): mean of psi at the last level minus at the first; NaN for a block of more than two levels.
    signed: FloatArray
    profile: tuple[FloatArray, ...]  # each (levels,): mean of psi at each level
    rows: FloatArray  # (rows, blocks): max minus min per row; empty unless `linear`
    # each (blocks, 1 + columns): by source ("h", "eta", "member"): slope of the score in intercept and coefficients.
    slopes: dict[str, FloatArray]
    # by_ratio, by_scale, by_slope (blocks, terms): slope of the score in the centre.
    by_ratio: FloatArray
    by_scale: FloatArray
    by_slope: FloatArray


def toggle(blocks: Sequence[Block], rows: Rows, at: Centre, sources: Sources, *, linear: bool = False) -> Toggles:
    """Compute the proxy score of every block.

    Parameters
    ----------
    blocks : sequence of Block
        The features, or pairs of them.
    rows : Rows
        Rows of P.
    at : Centre
        What psi belongs to, and its constants.
    sources : Sources
        Where h, eta and the ratio of distributions come from.
    linear : bool
        Collect slopes too.

    Returns
    -------
    Toggles

    Examples
    --------
    >>> from evenhand.kernels.influence.design import make_design
    >>> from evenhand.kernels.influence.functionals import functional
    >>> columns = {"a": np.array([0.0, 1.0]), "b": np.array([0.0, 1.0])}
    >>> design = make_design(columns, np.ones(2), np.ones(2, dtype=bool))
    >>> model = lambda rows, block, level: np.full(len(rows), 0.5 + 0.2 * level * (block.name == "a"))
    >>> at = Centre(form=functional("sp"), ratio=(0.5,), scale=(1.0,), slope=(1.0,))
    >>> rows = Rows(design.encode(columns), np.ones(2), np.zeros(2, dtype=int), np.arange(2))
    >>> toggle(design.blocks, rows, at, Sources(h=model)).score.round(12).tolist()
    [0.2, 0.0]
    """
    shape = None if linear else bilinear(at)
    changes = np.zeros((len(rows.number) if linear else 0, len(blocks)))
    whole = _Tally(blocks, at, rows.X.shape[1], sources)
    # Not in threads: the pieces fit the cache and are so short that two threads take longer than one.
    for chunk in rows.opened(sources):
        tally = _Tally(blocks, at, rows.X.shape[1], sources)
        quick = None if shape is None else open_odds(shape, chunk)
        for b, block in enumerate(blocks):
            quickly = None if quick is None else quick.score(block, chunk.columns)
            if quickly is not None:
                tally.score[b], tally.profile[b] = quickly
            else:
                change = tally.set_block(b, chunk, linear=linear)
                if linear:
                    changes[chunk.place, b] = change
        tally.close(chunk.columns)
        whole.add(tally)
    return whole.toggles(1 / float(rows.mass.sum()), changes)


class _Tally:
    """Sums over the rows of one chunk, or of all."""

    def __init__(self, blocks: Sequence[Block], at: Centre, p: int, sources: Sources):
        n_blocks, n_terms = len(blocks), len(at.form.terms)
        self.blocks, self.at = blocks, at
        self.score = np.zeros(n_blocks)
        self.profile = [np.zeros(len(b.levels)) for b in blocks]
        self.products = {name: s.products for name, s in sources.named() if isinstance(s, LogisticFolds)}
        self.slopes = {name: np.zeros((n_blocks, 1 + p + len(k))) for name, k in self.products.items()}
        # Each row's pull on the coefficients other than the block's own; multiplied with all columns at once.
        self.pulls: dict[str, dict[int, FloatArray]] = {name: {} for name in self.products}
        self.by_ratio, self.by_scale, self.by_slope = (np.zeros((n_blocks, n_terms)) for _ in range(3))

    def set_block(self, b: int, chunk: Chunk, *, linear: bool) -> FloatArray | float:
        """Set one block to each of its levels; return the change of psi in each row, and collect slopes if asked."""
        block, w = self.blocks[b], chunk.weight
        h, eta = chunk.predictions(block)
        ratio: list[FloatArray | None] = [None] * len(h)
        if "member" in chunk.readers:
            ratio = [-z for z in chunk.readers["member"].logits(block)]  # constants cancel in differences
        values = [psi(self.at, a, e, r) for a, e, r in zip(h, eta, ratio, strict=True)]
        for v, of_level in enumerate(values):
            self.profile[b][v] = w @ of_level
        if len(values) == 1:
            return 0.0
        stack = np.array(values)  # (levels, chunk)
        top, low = _extremes(stack)
        change = _at(top, stack) - _at(low, stack)
        self.score[b] = w @ change
        if linear:
            predicted = [np.array(h), *([np.array(eta)] if "eta" in chunk.readers else [])]
            for sign, end in ((1.0, top), (-1.0, low)):
                at_end = [_at(end, part) for part in predicted]
                self._add_slopes(b, chunk, sign, end, at_end[0], at_end[-1])
        return change

    def _add_slopes(self, b: int, chunk: Chunk, sign: float, end: IntArray, h: FloatArray, eta: FloatArray) -> None:
        """Add the slopes of psi at one end in the coefficients of logistic fits and in the centre."""
        block, w, at = self.blocks[b], chunk.weight, self.at
        by_h, by_eta, by_member = psi_slopes(at, h, eta)
        for name, table in self.slopes.items():
            if name == "member":
                pull = np.full(len(w), -sign * by_member) * w
            else:
                prob, by = (h, by_h) if name == "h" else (eta, by_eta)
                pull = sign * w * by * prob * (1 - prob)
            table[b, 0] += pull.sum()
            if self.products[name]:
                changed = set_to(chunk.columns, block, block.levels[end])
                table[b, 1:] += pull @ with_products(changed, self.products[name])
            else:
                of_level = np.bincount(end, weights=pull, minlength=len(block.levels))
                table[b, 1 + np.array(block.where)] += of_level @ block.levels
                self.pulls[name][b] = self.pulls[name][b] + pull if b in self.pulls[name] else pull
        for t, (name, coefficient) in enumerate(at.form.terms):
            if name == "da":
                self.by_slope[b, t] += sign * coefficient * float(w @ h)
                continue
            n, d = TERMS[name].parts(h, eta)
            self.by_ratio[b, t] -= sign * coefficient * float(np.sum(w * d)) / at.scale[t]
            self.by_scale[b, t] -= sign * coefficient * float(w @ (n - at.ratio[t] * d)) / at.scale[t] ** 2

    def close(self, columns: FloatArray) -> None:
        """Turn the rows' pulls into slopes."""
        for name, pulls in self.pulls.items():
            if pulls:
                gained = np.stack(list(pulls.values())) @ columns.T  # (blocks, columns)
                for row, b in zip(gained, pulls, strict=True):
                    row[list(self.blocks[b].where)] = 0.0
                    self.slopes[name][b, 1:] += row
        self.pulls = {}

    def add(self, other: _Tally) -> None:
        """Add another chunk's sums."""
        for mine, theirs in zip(self._tables(), other._tables(), strict=True):
            mine += theirs

    def _tables(self) -> list[FloatArray]:
        centre = [self.by_ratio, self.by_scale, self.by_slope]
        return [self.score, *self.profile, *self.slopes.values(), *centre]

    def toggles(self, factor: float, rows: FloatArray) -> Toggles:
        """Turn sums into means."""
        for table in self._tables():
            table *= factor
        return Toggles(
            score=self.score,
            signed=np.array([pr[1] - pr[0] if len(pr) == 2 else np.nan for pr in self.profile]),
            profile=tuple(self.profile),
            rows=rows,
            slopes=self.slopes,
            by_ratio=self.by_ratio,
            by_scale=self.by_scale,
            by_slope=self.by_slope,
        )


def _at(level: IntArray, values: FloatArray) -> FloatArray:
    """Pick each row's value at its own level; values (levels, rows)."""
    if len(values) == 2:
        return np.asarray(np.where(level == 1, values[1], values[0]))
    return np.asarray(values[level, np.arange(len(level))])


def _extremes(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the levels of the largest and the smallest value of each row; values (levels, rows)."""
    if len(values) == 2:
        up = (values[1] >= values[0]).astype(np.int64)
        return up, 1 - up
    return values.argmax(axis=0), values.argmin(axis=0)
