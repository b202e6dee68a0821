"""What a functional would be if one feature were distributed as in another sample, and how sure that is.

The feature's values are redrawn independently of the others: the means of a functional become those over the
feature's levels with new shares, E[n] + sum_v (q_v - p_v) E[n(x with level v)]. The value is smooth in shares and
means, so its variance is that of one contribution per row: through the means of the sample, through the shares in
both samples, through the rows the levels were averaged over, and through the coefficients of logistic fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import TERMS, Centre, Functional, psi, psi_slopes
from evenhand.kernels.influence.linearised import Equation, Population, with_one
from evenhand.kernels.influence.nuisance import LogisticFolds, with_products
from evenhand.kernels.influence.shifted_predictions import Sources, chunks, readers_of, turned

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CHUNK = 16384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shift:
    """One feature's distribution moved to the other sample's.

    Parameters
    ----------
    change : float
        New value of the functional minus the old one; NaN where a denominator vanishes or a sample has none of the
        feature's values.
    delta : ndarray, shape (levels,)
        New shares minus old ones.
    at : Centre or None
        The new means; None when `change` is NaN.
    """

    change: float
    delta: FloatArray
    at: Centre | None


def level_means(
    blocks: Sequence[Block],
    X: FloatArray,
    weight: FloatArray,
    fold: IntArray,
    number: IntArray,
    form: Functional,
    sources: Sources,
) -> list[FloatArray]:
    """Return the means of a functional's terms with each feature set to each of its levels.

    Parameters
    ----------
    blocks : sequence of Block
        The features.
    X : ndarray, shape (rows, columns)
        A sample of P.
    weight : ndarray, shape (rows,)
        Weights.
    fold : ndarray of int, shape (rows,)
        The fold of each row, sorted.
    number : ndarray of int, shape (rows,)
        Numbers of the rows, for a model that is asked by row.
    form : Functional
        The terms.
    sources : Sources
        Where h and eta come from.

    Returns
    -------
    list of ndarray, shape (levels, terms, 2)

    Examples
    --------
    >>> from evenhand.kernels.influence.design import make_design
    >>> from evenhand.kernels.influence.functionals import functional
    >>> columns = {"a": np.array([0.0, 1.0])}
    >>> design = make_design(columns, np.ones(2), np.ones(2, dtype=bool))
    >>> model = lambda rows, block, level: np.full(len(rows), 0.5 + 0.2 * level)
    >>> zero = np.zeros(2, dtype=int)
    >>> found = level_means(design.blocks, design.encode(columns), np.ones(2), zero, zero, functional("sp"),
    ...                     Sources(h=model))
    >>> found[0][:, 0, 0].round(12).tolist()
    [0.5, 0.7]
    """
    out = [np.zeros((len(b.levels), len(form.terms), 2)) for b in blocks]
    for k, some in chunks(fold):
        readers = readers_of(sources, k, turned(X[some]), number[some])
        w = weight[some] / weight.sum()
        for block, parts in zip(blocks, out, strict=True):
            h = readers["h"].levels(block)
            eta = readers["eta"].levels(block) if "eta" in readers else h
            for v in range(len(block.levels)):
                for t, (name, _) in enumerate(form.terms):
                    n, d = TERMS[name].parts(h[v], eta[v])
                    parts[v, t] += w @ n, np.sum(w * d)
    return out


def shift(
    block: Block,
    part: FloatArray,
    people: Population,
    form: Functional,
    parts: FloatArray,
    here: FloatArray,
    q: FloatArray,
) -> Shift:
    """Give a feature the shares it has outside P.

    Parameters
    ----------
    block : Block
        The feature.
    part : ndarray, shape (rows, width)
        Its columns of all rows.
    people : Population
        All rows.
    form : Functional
        Without a penalised divergence, which is not a function of these means.
    parts : ndarray, shape (levels, terms, 2)
        Means of each term at each level, from `level_means`.
    here : ndarray, shape (terms, 2)
        Means of P.
    q : ndarray, shape (terms,)
        Mean of h under Q for a divergence; not used by other terms.

    Returns
    -------
    Shift
    """
    weight = people.count * people.unit
    position = block.scores(part, np.arange(len(block.levels), dtype=np.float64))
    known = ~np.isnan(position)
    sides = [
        _shares(position, np.where(s & known, weight, 0.0), len(block.levels)) for s in (~people.inside, people.inside)
    ]
    delta = sides[0] - sides[1]
    moved = here + np.einsum("v,vtk->tk", delta, parts)
    change, ratio, scale, slope = 0.0, [], [], []
    for t, (name, coefficient) in enumerate(form.terms):
        old, new = float(here[t, 0] / here[t, 1]), float(moved[t, 0] / moved[t, 1]) if moved[t, 1] > 0 else np.nan
        if name == "da":
            kl = [float(special.rel_entr(v, q[t]) + special.rel_entr(1 - v, 1 - q[t])) for v in (new, old)]
            change += coefficient * (kl[0] - kl[1]) if 0 <= new <= 1 else np.nan
            slope.append(float(special.logit(min(max(new, 0.0), 1.0)) - special.logit(q[t])))
        else:
            change += coefficient * (new - old)
            slope.append(1.0)
        ratio.append(new if name != "da" else 0.0)
        scale.append(float(moved[t, 1]) if name != "da" else 1.0)
    fine = bool(np.isfinite([change, *slope]).all())
    at = Centre(ratio=tuple(ratio), scale=tuple(scale), slope=tuple(slope)) if fine else None
    return Shift(change=float(change), delta=delta, at=at)


def _shares(position: FloatArray, weight: FloatArray, levels: int) -> FloatArray:
    """Return the shares of levels; a row between two grid points belongs to both."""
    total = float(weight.sum())
    if not total > 0:
        return np.full(levels, np.nan)
    position = np.where(weight > 0, position, 0.0)
    low = position.astype(np.int64)
    above = position - low
    out = np.bincount(low, weights=weight * (1 - above), minlength=levels + 1)
    out += np.bincount(low + 1, weights=weight * above, minlength=levels + 1)
    found: FloatArray = out[:levels] / total
    return found


def shift_variances(
    blocks: Sequence[Block],
    shifts: Sequence[Shift],
    parts: Sequence[FloatArray],
    averaged: IntArray,
    fold: IntArray,
    people: Population,
    form: Functional,
    at: Centre,
    q: FloatArray,
    sources: Sources,
    equations: Mapping[str, Equation],
) -> FloatArray:
    """Return the variance of each shift's change.

    Parameters
    ----------
    blocks, shifts
        The features and what `shift` found.
    parts : sequence of ndarray, shape (levels, terms, 2)
        Their means by level, from `level_means`.
    averaged : ndarray of int
        Rows of P behind those means, sorted by fold.
    fold : ndarray of int, shape (averaged,)
        Their folds.
    people : Population
        All rows.
    form, at : Functional, Centre
        What is measured, and its means in P.
    q : ndarray, shape (terms,)
        Mean of h under Q for a divergence.
    sources, equations
        Where predictions come from, and the equations of the logistic ones among them.

    Returns
    -------
    ndarray, shape (blocks,)
        NaN where the change is.
    """
    weight = people.count * people.unit
    rows, slopes = _toggled(blocks, shifts, people.X[averaged], weight[averaged], fold, averaged, form, sources)
    out = np.full(len(blocks), np.nan)
    for b, (block, found) in enumerate(zip(blocks, shifts, strict=True)):
        if found.at is None:
            continue
        share = _direct(block, found, parts[b], people, form, at, q)
        share[averaged] += (rows[:, b] - weight[averaged] @ rows[:, b] / weight[averaged].sum()) / weight[
            averaged
        ].sum()
        for name, table in slopes.items():
            slope = table[b].copy()
            if name == "eta":
                slope += _through_means(found.at, people, form, at, equations[name])
            pull = equations[name].bread @ slope
            for start in range(0, len(weight), _CHUNK):
                some = slice(start, start + _CHUNK)
                design = with_one(people.X[some], equations[name].products)
                share[some] += equations[name].residual[some] * (design @ pull)
        out[b] = float(np.sum(people.count * people.unit**2 * share**2))
    n = float(people.count[people.inside].sum())
    spent = max((table.shape[1] for table in slopes.values()), default=1)
    return out * (n / max(n - spent, 1.0))


def _direct(
    block: Block, found: Shift, parts: FloatArray, people: Population, form: Functional, at: Centre, q: FloatArray
) -> FloatArray:
    """Each row's part through the means of P and the shares of both samples, per unit of weight."""
    assert found.at is not None
    weight, g = people.count * people.unit, people.inside
    share = np.zeros(len(weight))
    gained = psi(form, found.at, people.h[g], people.eta[g]) - psi(form, at, people.h[g], people.eta[g])
    share[g] = gained - weight[g] @ gained / weight[g].sum()
    profile = np.zeros(len(block.levels))
    for t, (name, c) in enumerate(form.terms):
        n, d = parts[:, t, 0], parts[:, t, 1]
        new = found.at
        profile += c * (new.slope[t] * n if name == "da" else (n - new.ratio[t] * d) / new.scale[t])
    of_row = block.scores(people.X[:, list(block.where)], profile)
    for sign, side in ((-1.0, g), (1.0, ~g)):
        known = side & ~np.isnan(of_row)
        middle = weight[known] @ of_row[known] / weight[known].sum()
        share[known] += sign * (of_row[known] - middle) * (weight[side].sum() / weight[known].sum())
    for t, (name, c) in enumerate(form.terms):
        if name == "da":
            # KL moves with E_Q[h] too: by (q - p') / q (1 - q) at the new mean, less the same at the old one.
            old, new_p = (float(special.expit(a.slope[t] + special.logit(q[t]))) for a in (at, found.at))
            share[~g] += c * (old - new_p) / (q[t] * (1 - q[t])) * (people.h[~g] - q[t])
    share[g] /= weight[g].sum()
    share[~g] /= weight[~g].sum()
    return share


def _through_means(new: Centre, people: Population, form: Functional, old: Centre, fit: Equation) -> FloatArray:
    """Slope of the change in eta's coefficients through the means of P."""
    g = people.inside
    by_eta = psi_slopes(form, new, people.h[g], people.eta[g])[1] - psi_slopes(form, old, people.h[g], people.eta[g])[1]
    w = (people.count * people.unit)[g]
    pull = w / w.sum() * by_eta * people.eta[g] * (1 - people.eta[g])
    return np.concatenate(([pull.sum()], pull @ with_products(people.X[g], fit.products)))


def _toggled(
    blocks: Sequence[Block],
    shifts: Sequence[Shift],
    X: FloatArray,
    weight: FloatArray,
    fold: IntArray,
    number: IntArray,
    form: Functional,
    sources: Sources,
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Each averaged row's part through its levels, and slopes of their mean in the coefficients."""
    learned = {name: s for name, s in sources.named() if isinstance(s, LogisticFolds)}
    rows = np.zeros((len(X), len(blocks)))
    slopes = {name: np.zeros((len(blocks), 1 + X.shape[1] + len(s.products))) for name, s in learned.items()}
    for k, some in chunks(fold):
        columns = turned(X[some])
        readers = readers_of(sources, k, columns, number[some])
        w = weight[some] / weight.sum()
        for b, (block, found) in enumerate(zip(blocks, shifts, strict=True)):
            if found.at is None:
                continue
            h = readers["h"].levels(block)
            eta = readers["eta"].levels(block) if "eta" in readers else h
            common = {name: np.zeros(len(w)) for name in learned}
            for v, delta in enumerate(found.delta):
                rows[some, b] += delta * psi(form, found.at, h[v], eta[v])
                by_h, by_eta, _ = psi_slopes(form, found.at, h[v], eta[v])
                for name, source in learned.items():
                    prob, by = (h[v], by_h) if name == "h" else (eta[v], by_eta)
                    pull = delta * w * by * prob * (1 - prob)
                    slopes[name][b, 0] += pull.sum()
                    if source.products:
                        changed = X[some].copy()
                        changed[:, list(block.where)] = block.levels[v]
                        slopes[name][b, 1:] += pull @ with_products(changed, source.products)
                    else:
                        common[name] += pull
                        slopes[name][b, 1 + np.array(block.where)] += pull.sum() * block.levels[v]
            for name, source in learned.items():
                if not source.products:
                    gained = columns @ common[name]
                    gained[list(block.where)] = 0.0
                    slopes[name][b, 1:] += gained
    return rows, slopes
