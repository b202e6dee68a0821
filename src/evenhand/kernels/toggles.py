"""What a feature does to an influence function: set it to each of its values, row by row.

For each row of P the feature takes all its levels while the other features stay. The change of psi,
max minus min over the levels, averaged over the rows, is the proxy score [wang2019] definition 5; for a
feature of two values the signed form is psi(second) - psi(first). The mean of psi at each level is the
feature's profile.

A logistic probability needs no new prediction for a changed feature: its odds are multiplied by a
constant. It comes from the fit of all rows: fits without a fold disagree on the sign of a coefficient near
0, and a mean of their absolute changes would have neither the right mean nor a variance. Other learners
could memorise rows and are asked for the fit without the row's fold. Rows go through in chunks that fit the
cache. With `linear=True` the slopes of the scores in the coefficients of the logistic fits and in the centre
are collected on the way; `linearised` turns them into a covariance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.kernels.design import Block
from evenhand.kernels.influence import TERMS, Centre, Functional, psi, psi_slopes
from evenhand.kernels.nuisance import Learned, LogisticFolds, with_products

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CHUNK = 8192

# A prediction at rows of the sample with one block set to one of its levels.
Opaque = Callable[[IntArray, Block, int], FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sources:
    """Where the three inputs of psi come from.

    Parameters
    ----------
    h : Learned or callable
        Learned from scores, or the model itself (`Opaque`).
    eta : Learned or None
        None when no term uses the outcome.
    member : Learned or None
        Probability of the second distribution, for the divergence; log_ratio = -logit + `log_prior`.
    log_prior : float
        Log of the ratio of the second to the first sample's size.
    """

    h: Learned | Opaque
    eta: Learned | None = None
    member: Learned | None = None
    log_prior: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Toggles:
    """Proxy scores and their slopes.

    Parameters
    ----------
    score : ndarray, shape (blocks,)
        Mean over rows of max minus min.
    signed : ndarray, shape (blocks,)
        Mean of psi at the last level minus at the first; NaN for a block of more than two levels.
    moved : ndarray, shape (blocks,)
        Largest change of h; 0 for a quick score of a 0/1 feature (without `linear`).
    profile : tuple of ndarray, shape (levels,)
        Mean of psi at each level.
    parts : tuple of ndarray, shape (levels, terms, 2)
        Means of each term's numerator and denominator at each level.
    rows : ndarray, shape (rows, blocks)
        Max minus min per row; empty unless `linear`.
    slopes : dict of str to ndarray, shape (blocks, 1 + columns)
        By source ("h", "eta", "member"): slope of the score in intercept and coefficients.
    by_ratio, by_scale, by_slope : ndarray, shape (blocks, terms)
        Slope of the score in the centre.
    """

    score: FloatArray
    signed: FloatArray
    moved: FloatArray
    profile: tuple[FloatArray, ...]
    parts: tuple[FloatArray, ...]
    rows: FloatArray
    slopes: dict[str, FloatArray]
    by_ratio: FloatArray
    by_scale: FloatArray
    by_slope: FloatArray


def toggle(
    blocks: Sequence[Block],
    X: FloatArray,
    weight: FloatArray,
    fold: IntArray,
    form: Functional,
    at: Centre,
    sources: Sources,
    *,
    linear: bool = False,
) -> Toggles:
    """Compute the proxy score of every block.

    Parameters
    ----------
    blocks : sequence of Block
        The features, or pairs of them.
    X : ndarray, shape (rows, columns)
        A sample of P.
    weight : ndarray, shape (rows,)
        Its weights.
    fold : ndarray of int, shape (rows,)
        The fold of each row, sorted.
    form : Functional
        What psi belongs to.
    at : Centre
        Its constants.
    sources : Sources
        Where h, eta and the ratio of distributions come from.
    linear : bool
        Collect slopes too.

    Returns
    -------
    Toggles

    Examples
    --------
    >>> from evenhand.kernels.design import make_design
    >>> from evenhand.kernels.influence import functional
    >>> columns = {"a": np.array([0.0, 1.0]), "b": np.array([0.0, 1.0])}
    >>> design = make_design(columns, np.ones(2), np.ones(2, dtype=bool))
    >>> model = lambda rows, block, level: np.full(len(rows), 0.5 + 0.2 * level * (block.name == "a"))
    >>> at = Centre(ratio=(0.5,), scale=(1.0,), slope=(1.0,))
    >>> found = toggle(design.blocks, design.encode(columns), np.ones(2), np.zeros(2, dtype=int),
    ...                functional("sp"), at, Sources(h=model))
    >>> found.score.round(12).tolist()
    [0.2, 0.0]
    """
    n, p, n_terms = len(X), X.shape[1], len(form.terms)
    total = float(weight.sum())
    tally = _Tally(len(blocks), p, n_terms, n if linear else 0, sources, [len(b.levels) for b in blocks])
    edges = np.append(np.searchsorted(fold, np.arange(int(fold.max()) + 1)), n)
    for k in range(len(edges) - 1):
        for start in range(int(edges[k]), int(edges[k + 1]), CHUNK):
            stop = min(start + CHUNK, int(edges[k + 1]))
            rows = np.arange(start, stop)
            columns = np.ascontiguousarray(X[start:stop].T)  # (columns, chunk)
            readers = {name: _reader(source, k, columns, rows) for name, source in _named(sources)}
            quick = _Quick(readers, weight[start:stop], form, at) if not linear and _all_logistic(readers) else None
            for b, block in enumerate(blocks):
                if quick is not None and block.binary:
                    quick.toggle(b, block, columns, tally)
                    continue
                _toggle_block(b, block, columns, weight[start:stop], rows, form, at, readers, tally, linear)
    out = tally.scaled(1 / total)
    two = np.array([len(b.levels) == 2 for b in blocks])
    signed = np.array([pr[-1] - pr[0] for pr in out.profile])
    return Toggles(
        score=out.score,
        signed=np.where(two, signed, np.nan),
        moved=out.moved,
        profile=tuple(out.profile),
        parts=tuple(out.parts),
        rows=out.rows,
        slopes=out.slopes,
        by_ratio=out.by_ratio,
        by_scale=out.by_scale,
        by_slope=out.by_slope,
    )


class _Tally:
    """Sums over chunks."""

    def __init__(self, n_blocks: int, p: int, n_terms: int, n_rows: int, sources: Sources, levels: list[int]):
        self.score = np.zeros(n_blocks)
        self.moved = np.zeros(n_blocks)
        self.profile = [np.zeros(k) for k in levels]
        self.parts = [np.zeros((k, n_terms, 2)) for k in levels]
        self.rows = np.zeros((n_rows, n_blocks))
        self.products = {name: s.products for name, s in _named(sources) if isinstance(s, LogisticFolds)}
        self.slopes = {name: np.zeros((n_blocks, 1 + p + len(k))) for name, k in self.products.items()}
        self.by_ratio = np.zeros((n_blocks, n_terms))
        self.by_scale = np.zeros((n_blocks, n_terms))
        self.by_slope = np.zeros((n_blocks, n_terms))

    def scaled(self, factor: float) -> _Tally:
        self.score *= factor
        for table in (
            *self.profile,
            *self.parts,
            *self.slopes.values(),
            self.by_ratio,
            self.by_scale,
            self.by_slope,
        ):
            table *= factor
        return self


class _Reader:
    """A logistic probability with one block changed: odds times a constant."""

    def __init__(self, source: LogisticFolds, columns: FloatArray):
        fit = source.all_rows
        self.coef = fit.coef
        self.columns = columns
        self.linear = fit.coef @ columns + fit.intercept  # (chunk,)
        self.odds = np.exp(np.clip(self.linear, -500.0, 500.0))

    def logits(self, block: Block) -> list[FloatArray]:
        coef = self.coef[list(block.where)]
        base = self.linear - coef @ self.columns[list(block.where)]
        return [base + float(level @ coef) for level in block.levels]

    def levels(self, block: Block) -> list[FloatArray]:
        if block.binary:
            c = float(self.coef[block.where[0]])
            off = self.odds * (1.0 + self.columns[block.where[0]] * (np.exp(-c) - 1.0))
            on = off * np.exp(c)
            return [off / (1.0 + off), on / (1.0 + on)]
        coef = self.coef[list(block.where)]
        base = np.exp(np.clip(self.linear - coef @ self.columns[list(block.where)], -500.0, 500.0))
        out = []
        for level in block.levels:
            odds = base * np.exp(np.clip(float(level @ coef), -100.0, 100.0))
            out.append(odds / (1.0 + odds))
        return out


class _Quick:
    """Scores of 0/1 features from logistic sources: only the value a row does not have is computed."""

    def __init__(self, readers: dict[str, Any], w: FloatArray, form: Functional, at: Centre):
        self.readers, self.w, self.form, self.at = readers, w, form, at
        self.same = {name: r.odds / (1.0 + r.odds) for name, r in readers.items()}
        h = self.same["h"]
        self.psi = psi(form, at, h, self.same.get("eta", h))
        self.total = float(w @ self.psi)
        self.other = {name: np.empty_like(w) for name in readers}
        self.spare = np.empty_like(w)

    def toggle(self, b: int, block: Block, columns: FloatArray, tally: _Tally) -> None:
        """Add one block's sums."""
        x = columns[block.where[0]]
        for name, reader in self.readers.items():
            c = float(reader.coef[block.where[0]])
            p = self.other[name]
            # odds times exp(c) where x is 0, exp(-c) where it is 1; then p = odds / (1 + odds)
            np.multiply(x, np.exp(-c) - np.exp(c), out=p)
            p += np.exp(c)
            p *= reader.odds
            np.add(p, 1.0, out=self.spare)
            p /= self.spare
        h = self.other["h"]
        change = psi(self.form, self.at, h, self.other.get("eta", h))
        toggled = float(self.w @ change)
        change -= self.psi
        np.multiply(x, -2.0, out=self.spare)
        self.spare += 1.0
        self.spare *= change  # psi at 1 minus psi at 0
        signed = float(self.w @ self.spare)
        middle = (self.total + toggled) / 2
        tally.profile[b] += (middle - signed / 2, middle + signed / 2)
        np.abs(change, out=change)
        tally.score[b] += self.w @ change


class _Plain:
    """A probability that must be predicted anew for each level."""

    def __init__(self, source: Learned, k: int, columns: FloatArray):
        self.source, self.k, self.columns = source, k, columns

    def levels(self, block: Block) -> list[FloatArray]:
        X = np.ascontiguousarray(self.columns.T)
        out = []
        for level in block.levels:
            X[:, list(block.where)] = level
            # A logistic fit is the one of all rows, with products or without.
            logistic = isinstance(self.source, LogisticFolds)
            out.append(self.source.whole(X) if logistic else self.source.fold(X, self.k))
        return out

    def logits(self, block: Block) -> list[FloatArray]:
        return [special.logit(p) for p in self.levels(block)]


class _Model:
    """The judged model itself."""

    def __init__(self, source: Opaque, rows: IntArray):
        self.source, self.rows = source, rows

    def levels(self, block: Block) -> list[FloatArray]:
        return [self.source(self.rows, block, v) for v in range(len(block.levels))]

    def logits(self, block: Block) -> list[FloatArray]:
        raise NotImplementedError


def _all_logistic(readers: dict[str, Any]) -> bool:
    return "member" not in readers and all(isinstance(r, _Reader) for r in readers.values())


def _named(sources: Sources) -> list[tuple[str, Learned | Opaque]]:
    found = (("h", sources.h), ("eta", sources.eta), ("member", sources.member))
    return [(name, s) for name, s in found if s is not None]


def _reader(source: Learned | Opaque, k: int, columns: FloatArray, rows: IntArray) -> _Reader | _Plain | _Model:
    if isinstance(source, LogisticFolds) and not source.products:
        return _Reader(source, columns)
    if isinstance(source, Learned):
        return _Plain(source, k, columns)
    return _Model(source, rows)


def _toggle_block(
    b: int,
    block: Block,
    columns: FloatArray,
    w: FloatArray,
    rows: IntArray,
    form: Functional,
    at: Centre,
    readers: dict[str, _Reader | _Plain | _Model],
    tally: _Tally,
    linear: bool,
) -> None:
    h = readers["h"].levels(block)
    eta = readers["eta"].levels(block) if "eta" in readers else h
    ratio: list[FloatArray | None] = [None] * len(h)
    if "member" in readers:
        ratio = [-z for z in readers["member"].logits(block)]  # constants cancel in differences
    values = [psi(form, at, a, e, r) for a, e, r in zip(h, eta, ratio, strict=True)]
    for v, found in enumerate(values):
        tally.profile[b][v] += w @ found
        if linear:
            for t, (name, _) in enumerate(form.terms):
                n, d = TERMS[name].parts(h[v], eta[v])
                tally.parts[b][v, t] += w @ n, np.sum(w * d)
    if len(values) == 1:
        return
    if len(values) == 2:
        difference = values[1] - values[0]
        change = np.abs(difference)
        swing = h[1] - h[0]
        tally.moved[b] = max(tally.moved[b], float(swing.max()), -float(swing.min()))
    else:
        stack = np.array(values)  # (levels, chunk)
        change = stack.max(axis=0) - stack.min(axis=0)
        tally.moved[b] = max(tally.moved[b], float(np.ptp(np.array(h), axis=0).max()))
    tally.score[b] += w @ change
    if not linear:
        return
    tally.rows[rows, b] = change
    if len(values) == 2:
        top = (difference >= 0).astype(np.int64)
        low = 1 - top
    else:
        top, low = stack.argmax(axis=0), stack.argmin(axis=0)
    for sign, pick in ((1.0, top), (-1.0, low)):
        here = np.arange(len(w))
        h_at, eta_at = np.array(h)[pick, here], np.array(eta)[pick, here]
        by_h, by_eta, by_member = psi_slopes(form, at, h_at, eta_at)
        at_level = block.levels[pick]  # (chunk, width)
        for name, table in tally.slopes.items():
            if name == "member":
                pull = -sign * w * by_member
            else:
                prob, by = (h_at, by_h) if name == "h" else (eta_at, by_eta)
                pull = sign * w * by * prob * (1 - prob)
            if tally.products[name]:
                changed = columns.T.copy()
                changed[:, list(block.where)] = at_level
                gained = pull @ with_products(changed, tally.products[name])
            else:
                gained = columns @ pull
                gained[list(block.where)] = pull @ at_level
            table[b, 0] += pull.sum()
            table[b, 1:] += gained
        for t, (name, coefficient) in enumerate(form.terms):
            if name == "da":
                tally.by_slope[b, t] += sign * coefficient * float(w @ h_at)
                continue
            n, d = TERMS[name].parts(h_at, eta_at)
            tally.by_ratio[b, t] -= sign * coefficient * float(np.sum(w * d)) / at.scale[t]
            tally.by_scale[b, t] -= sign * coefficient * float(w @ (n - at.ratio[t] * d)) / at.scale[t] ** 2
