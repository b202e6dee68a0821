"""What a functional would be if one feature were distributed as in another sample, and how sure that is.

The feature's values are redrawn independently of the others: the means of a functional become those over the
feature's levels with new shares, E[n] + sum_v (q_v - p_v) E[n(x with level v)]. The value is smooth in shares and
means, so its variance is that of one contribution per row: through the means of the sample, through the shares in
both samples, through the rows the levels were averaged over, and through the coefficients of logistic fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.kernels.influence.design import Block
from evenhand.kernels.influence.functionals import TERMS, Centre, Functional, divergence, psi, psi_slopes
from evenhand.kernels.influence.linearised import Equation
from evenhand.kernels.influence.nuisance import LogisticFolds, with_one, with_products
from evenhand.kernels.influence.row_moments import Places, Population, RowMoments, integrands, psi_weights
from evenhand.kernels.influence.shifted_predictions import Rows, Sources, set_to

_CHUNK = 16384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shift:
    """One feature's distribution moved to the other sample's."""

    block: Block  # the feature
    parts: FloatArray  # (levels, terms, 2): means of each term at each of its levels, from `level_means`
    # New value of the functional minus the old one; NaN where a denominator vanishes or a sample has none of the
    # feature's values.
    change: float
    delta: FloatArray  # (levels,): new shares minus old ones
    at: Centre | None  # the new means; None when `change` is NaN


def level_means(blocks: Sequence[Block], rows: Rows, form: Functional, sources: Sources) -> list[FloatArray]:
    """Return the means of a functional's terms with each feature set to each of its levels.

    Parameters
    ----------
    blocks : sequence of Block
        The features.
    rows : Rows
        Rows of P.
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
    >>> rows = Rows(design.encode(columns), np.ones(2), np.zeros(2, dtype=int), np.arange(2))
    >>> level_means(design.blocks, rows, functional("sp"), Sources(h=model))[0][:, 0, 0].round(12).tolist()
    [0.5, 0.7]
    """
    out = [np.zeros((len(b.levels), len(form.terms), 2)) for b in blocks]
    total = rows.mass.sum()
    for chunk in rows.opened(sources):
        w = chunk.weight / total
        share = np.sum(w)
        for block, parts in zip(blocks, out, strict=True):
            for v, (h, eta) in enumerate(zip(*chunk.predictions(block), strict=True)):
                for t, (name, _) in enumerate(form.terms):
                    n, d = TERMS[name].parts(h, eta)
                    parts[v, t] += w @ n, share * d if isinstance(d, float) else w @ d
    return out


def shift(blocks: Sequence[Block], parts: Sequence[FloatArray], sums: RowMoments, at: Centre) -> list[Shift]:
    """Give each feature, one at a time, the shares it has outside P.

    Parameters
    ----------
    blocks : sequence of Block
        The features.
    parts : sequence of ndarray, shape (levels, terms, 2)
        Means of each term at each level, from `level_means`.
    sums : RowMoments
        Of all rows, made with these blocks.
    at : Centre
        The means of P. A penalised divergence is not a function of them and is left out.

    Returns
    -------
    list of Shift
    """
    here = sums.means(0)
    out = []
    for b, (block, of_level) in enumerate(zip(blocks, parts, strict=True)):
        own, there = sums.shares(b)
        delta = there - own
        change, new = _moved(at, here, here + np.einsum("v,vtk->tk", delta, of_level))
        out.append(Shift(block=block, parts=of_level, change=change, delta=delta, at=new))
    return out


def _moved(at: Centre, here: FloatArray, moved: FloatArray) -> tuple[float, Centre | None]:
    """Return the change of the functional from one set of means to another, and the centre there."""
    change, ratio, scale, slope = 0.0, [], [], []
    for t, (name, coefficient) in enumerate(at.form.terms):
        old, new = float(here[t, 0] / here[t, 1]), float(moved[t, 0] / moved[t, 1]) if moved[t, 1] > 0 else np.nan
        if name == "da":
            q = at.other[t]
            change += coefficient * (divergence(new, q) - divergence(old, q)) if 0 <= new <= 1 else np.nan
            slope.append(float(special.logit(min(max(new, 0.0), 1.0)) - special.logit(q)))
        else:
            change += coefficient * (new - old)
            slope.append(1.0)
        ratio.append(new if name != "da" else 0.0)
        scale.append(float(moved[t, 1]) if name != "da" else 1.0)
    if not np.isfinite([change, *slope]).all():
        return float(change), None
    return float(change), replace(at, ratio=tuple(ratio), scale=tuple(scale), slope=tuple(slope))


def shift_variances(
    shifts: Sequence[Shift], rows: Rows, people: Population, at: Centre, sources: Sources,
    equations: Mapping[str, Equation], sums: RowMoments,
) -> FloatArray:  # fmt: skip
    """Return the variance of each shift's change.

    Parameters
    ----------
    shifts : sequence of Shift
        From `shift`.
    rows : Rows
        Rows of P behind the means by level.
    people : Population
        The rows in the fits, or all rows.
    at : Centre
        What is measured, and its means in P.
    sources, equations
        Where predictions come from, and the equations of the logistic ones among them.
    sums : RowMoments
        Of all rows, with the squares of those that are not in `people`.

    Returns
    -------
    ndarray, shape (blocks,)
        NaN where the change is.
    """
    mass, spread = rows.mass, people.count * people.unit**2
    through, slopes = _through_levels(shifts, rows, sources)
    through -= mass @ through / mass.sum()
    through /= mass.sum()
    if "eta" in slopes:
        for table, one in zip(slopes["eta"], shifts, strict=True):
            table += 0.0 if one.at is None else _through_means(one.at, at, sums)
    pulls = {name: equations[name].bread @ table.T for name, table in slopes.items()}  # (1 + columns, blocks)
    direct = {b: _direct(one, sums, b, at) for b, one in enumerate(shifts) if one.at is not None}
    position = np.full(len(spread), -1)
    position[rows.number] = np.arange(len(rows.number))
    out = np.full(len(shifts), np.nan)
    out[[*direct]] = 0.0
    for start in range(0, len(spread), _CHUNK):
        some = slice(start, start + _CHUNK)
        z, inside, X = integrands(at.form, people.h[some], people.eta[some]), people.inside[some], people.X[some]
        share = np.zeros((len(shifts), len(z)))  # each row's part in each change
        for name, pull in pulls.items():
            share += (with_one(X, equations[name].products) @ pull).T * equations[name].residual[some]
        seen = position[some] >= 0
        share[:, seen] += through[position[some][seen]].T
        for b, (of_row, of_level) in direct.items():
            places = Places(shifts[b].block, shifts[b].block.part(X))
            share[b] += np.where(inside, z @ of_row[0], z @ of_row[1])
            share[b] += np.where(inside, places.read(of_level[0]), places.read(of_level[1]))
            out[b] += spread[some] @ share[b] ** 2
    for b, (of_row, of_level) in direct.items():
        out[b] += sum(sums.squared_part(side, b, of_row[side], of_level[side]) for side in (0, 1))
    return people.corrected(out, slopes)


def _direct(one: Shift, sums: RowMoments, b: int, at: Centre) -> tuple[FloatArray, FloatArray]:
    """Return what a row's integrands and its level do to the change, through the means of P and both samples' shares.

    Of shapes (2, integrands) and (2, levels), for P and Q: a row's part per unit of weight is linear in them.
    """
    new = one.at
    assert new is not None
    of_row = np.zeros_like(sums.first)
    of_row[0] = psi_weights(new) - psi_weights(at)
    of_row[0, 0] -= sums.first[0] @ of_row[0] / sums.weight[0]
    for t, (name, c) in enumerate(at.form.terms):
        if name == "da":
            # KL moves with E_Q[h] too: by (q - p') / q (1 - q) at the new mean, less the same at the old one.
            q = at.other[t]
            old_p, new_p = (float(special.expit(a.slope[t] + special.logit(q))) for a in (at, new))
            pull = c * (old_p - new_p) / (q * (1 - q))
            of_row[1, 1 + 2 * t] += pull
            of_row[1, 0] -= pull * q
    profile = np.zeros(len(one.block.levels))
    for t, (name, c) in enumerate(at.form.terms):
        n, d = one.parts[:, t, 0], one.parts[:, t, 1]
        profile += c * (new.slope[t] * n if name == "da" else (n - new.ratio[t] * d) / new.scale[t])
    shares, known = sums.shares(b), sums.level[b].sum(axis=1)
    of_level = np.array([sign * (profile - shares[k] @ profile) / known[k] for k, sign in enumerate((-1.0, 1.0))])
    return of_row / sums.weight[:, None], of_level


def _through_means(new: Centre, old: Centre, sums: RowMoments) -> FloatArray:
    """Slope of the change in eta's coefficients through the means of P."""
    gained = (psi_weights(new) - psi_weights(old))[1:].reshape(-1, 2)
    return np.asarray(np.einsum("tk,tkc->c", gained, sums.slopes) / sums.weight[0])


def _through_levels(shifts: Sequence[Shift], rows: Rows, sources: Sources) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Each averaged row's part through its levels, and slopes of their mean in the coefficients."""
    learned = {name: s for name, s in sources.named() if isinstance(s, LogisticFolds)}
    p, total = rows.X.shape[1], rows.mass.sum()
    parts = np.zeros((len(rows.number), len(shifts)))
    slopes = {name: np.zeros((len(shifts), 1 + p + len(s.products))) for name, s in learned.items()}
    for chunk in rows.opened(sources):
        w = chunk.weight / total
        for b, one in enumerate(shifts):
            if one.at is None:
                continue
            where = list(one.block.where)
            common = {name: np.zeros(len(w)) for name in learned}
            for level, delta, h, eta in zip(one.block.levels, one.delta, *chunk.predictions(one.block), strict=True):
                parts[chunk.place, b] += delta * psi(one.at, h, eta)
                by_h, by_eta, _ = psi_slopes(one.at, h, eta)
                for name, source in learned.items():
                    prob, by = (h, by_h) if name == "h" else (eta, by_eta)
                    pull = delta * w * by * prob * (1 - prob)
                    slopes[name][b, 0] += pull.sum()
                    if source.products:
                        changed = set_to(chunk.columns, one.block, level)
                        slopes[name][b, 1:] += pull @ with_products(changed, source.products)
                    else:
                        common[name] += pull
                        slopes[name][b, 1 + np.array(where)] += pull.sum() * level
            for name, source in learned.items():
                if not source.products:
                    gained = chunk.columns @ common[name]
                    gained[where] = 0.0
                    slopes[name][b, 1:] += gained
    return parts, slopes
