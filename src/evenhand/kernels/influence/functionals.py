"""Influence of a distribution on ratios of its means, and on its divergence from another one.

A functional is a sum of terms. All but one are ratios of means over x ~ P,

    R = E[n(x)] / E[d(x)],        psi(x) = (n(x) - R d(x)) / E[d],                     [wang2019] eq. (9)-(12)

compared with the same ratio under a second, fixed distribution. The term ``da`` is a divergence,

    KL(h under P || h under Q) + penalty KL(P || Q),  psi(x) = c (h(x) - E h) + penalty (l(x) - E l),  eq. (8)

with c the log odds ratio of the two means of h and l(x) = log(dP/dQ)(x). Values are signed: P minus Q.
Every psi has mean 0 under P; the change of the functional along P (1 + eps f) is eps E[f psi] (Prop. 2),
and psi of a linear combination is the linear combination (Prop. 3).

=============  ==========================  =========
code           paper                       shape
=============  ==========================  =========
h              P(Yhat=1 | x)               (rows,)
eta            P(Y=1 | x, S=0)             (rows,)
log_ratio      log P(x|S=0) / P(x|S=1)     (rows,)
numerator      t1, r1, s1, h_C             (rows,)
denominator    t2, r2, s2                  (rows,)
=============  ==========================  =========
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError, near_matches

# Rows worked on at once: temporaries stay in the cache.
_CHUNK = 16384


@dataclass(frozen=True, slots=True)
class Term:
    """A ratio of means: its two integrands and their slopes."""

    # `(h, eta) -> numerator, denominator`.
    parts: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray | float]]
    # `(h, eta) -> dn/dh, dn/deta, dd/dh, dd/deta`; scalars where constant.
    slopes: Callable[[FloatArray, FloatArray], tuple[FloatArray | float, ...]]
    uses_eta: bool = True  # whether the outcome matters


# `da` reads like a mean of slope * h + penalty * log_ratio; see `psi`.
TERMS: Mapping[str, Term] = {
    "sp": Term(lambda h, e: (h, 1.0), lambda h, e: (1.0, 0.0, 0.0, 0.0), uses_eta=False),
    "fpr": Term(lambda h, e: (h * (1 - e), 1 - e), lambda h, e: (1 - e, -h, 0.0, -1.0)),
    "fnr": Term(lambda h, e: ((1 - h) * e, e), lambda h, e: (-e, 1 - h, 0.0, 1.0)),
    "fdr": Term(lambda h, e: (h * (1 - e), h), lambda h, e: (1 - e, -h, 1.0, 0.0)),
    "accuracy": Term(lambda h, e: (h * e + (1 - h) * (1 - e), 1.0), lambda h, e: (2 * e - 1, 2 * h - 1, 0.0, 0.0)),
    "cal": Term(lambda h, e: (np.abs(e - h), 1.0), lambda h, e: (-np.sign(e - h), np.sign(e - h), 0.0, 0.0)),
    "da": Term(lambda h, e: (h, 1.0), lambda h, e: (1.0, 0.0, 0.0, 0.0), uses_eta=False),
}

_ALIASES = {
    "statistical_parity": "sp",
    "selection_rate": "sp",
    "calibration_error": "cal",
    "distribution_alignment": "da",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Functional:
    """A linear combination of terms."""

    terms: tuple[tuple[str, float], ...]  # (str, float): name in `TERMS` and coefficient
    penalty: float = 0.0  # lambda of the divergence term

    @property
    def uses_eta(self) -> bool:
        """Whether any term needs the outcome."""
        return any(TERMS[name].uses_eta for name, _ in self.terms)

    @property
    def uses_log_ratio(self) -> bool:
        """Whether the two distributions' ratio is needed."""
        return self.penalty > 0 and any(name == "da" for name, _ in self.terms)

    @property
    def kinked(self) -> bool:
        """Whether it has an absolute value in it, so that it is not smooth in its nuisance models."""
        return any(name == "cal" for name, _ in self.terms)

    def __str__(self) -> str:
        if len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return "".join(f"{c:+g}*{name}" for name, c in self.terms).removeprefix("+")


def functional(measure: str | Mapping[str, float], penalty: float = 0.0) -> Functional:
    """Read a measure: one name, or names with coefficients.

    Parameters
    ----------
    measure : str or mapping
        ``"fpr"``, or ``{"fpr": 0.5, "fnr": 0.5}``.
    penalty : float
        Lambda of ``da``, at least 0.

    Returns
    -------
    Functional

    Examples
    --------
    >>> str(functional({"fpr": 0.5, "fnr": -1})), functional("statistical_parity").terms
    ('0.5*fpr-1*fnr', (('sp', 1.0),))
    """
    pairs = {measure: 1.0} if isinstance(measure, str) else dict(measure)
    terms = []
    for name, coefficient in pairs.items():
        key = _ALIASES.get(str(name).lower(), str(name).lower())
        if key not in TERMS:
            raise UsageError(f"Measure `{name}` is not known to the proxy audit.{near_matches(key, TERMS)}")
        if not np.isfinite(coefficient) or coefficient == 0:
            raise UsageError(f"The coefficient of `{name}` must be a finite number other than 0; got {coefficient}.")
        terms.append((key, float(coefficient)))
    if not terms:
        raise UsageError(f"No measure was given. Allowed: {', '.join(f'`{t}`' for t in TERMS)}.")
    if not (np.isfinite(penalty) and penalty >= 0):
        raise UsageError(f"`alignment_penalty` must be a finite number of at least 0; got {penalty}.")
    return Functional(terms=tuple(terms), penalty=float(penalty))


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """A functional with the means its influence is centred at, one entry per term."""

    form: Functional  # the terms
    ratio: tuple[float, ...]  # R, or the mean of the integrand for `da`
    scale: tuple[float, ...]  # E[d]; 1 for `da`
    slope: tuple[float, ...]  # c for `da`, 1 elsewhere
    other: tuple[float, ...] = ()  # mean of n under Q; only `da` moves with it


def means(form: Functional, h: FloatArray, eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Return E[n] and E[d] of each term, shape (terms, 2), from predictions, outcome probabilities and weights.

    Examples
    --------
    >>> means(functional("fpr"), np.array([1.0, 0.0]), np.array([0.5, 0.0]), np.ones(2)).tolist()
    [[0.25, 0.75]]
    """
    out = np.zeros((len(form.terms), 2))
    for start in range(0, len(h), _CHUNK):
        rows = slice(start, start + _CHUNK)
        w = weight[rows]
        for t, (name, _) in enumerate(form.terms):
            n, d = TERMS[name].parts(h[rows], eta[rows])
            out[t] += w @ n, np.sum(w * d)
    out /= weight.sum()
    return out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Points of P, and the fixed means of Q they are compared with."""

    # h, eta (rows,): prediction and outcome probability.
    h: FloatArray
    eta: FloatArray
    weight: FloatArray  # (rows,): weights (row counts, sampling weights)
    reference: FloatArray  # (terms, 2): `means` of a sample of Q, with Q's own outcome model
    log_ratio: FloatArray | None = None  # log dP/dQ; needed when the divergence of inputs is penalised


def centre(form: Functional, sample: Sample) -> Centre:
    """Compute the constants of the influence function.

    Examples
    --------
    >>> h = np.array([0.2, 0.6])
    >>> centre(functional("sp"), Sample(h=h, eta=h, weight=np.ones(2), reference=np.array([[0.1, 1.0]]))).ratio
    (0.4,)
    """
    return centre_at(form, means(form, sample.h, sample.eta, sample.weight), sample.reference, _penalty(form, sample))


def centre_at(form: Functional, here: FloatArray, there: FloatArray, penalty: float = 0.0) -> Centre:
    """Compute the same constants from the `means` of P and of Q, and P's mean of the penalised logarithm.

    Examples
    --------
    >>> centre_at(functional("fpr"), np.array([[0.2, 0.5]]), np.array([[0.1, 1.0]])).ratio
    (0.4,)
    """
    ratio, scale, slope = [], [], []
    for t, (name, _) in enumerate(form.terms):
        if name == "da":
            c = float(special.logit(here[t, 0]) - special.logit(there[t, 0]))
            ratio.append(c * float(here[t, 0]) + penalty)
            scale.append(1.0)
            slope.append(c)
        else:
            ratio.append(float(here[t, 0] / here[t, 1]) if here[t, 1] > 0 else float("nan"))
            scale.append(float(here[t, 1]))
            slope.append(1.0)
    other = tuple(there[:, 0].tolist())
    return Centre(form=form, ratio=tuple(ratio), scale=tuple(scale), slope=tuple(slope), other=other)


def value(form: Functional, sample: Sample) -> float:
    """Return the signed functional: P's value minus Q's.

    Examples
    --------
    >>> h = np.array([0.2, 0.6])
    >>> round(value(functional("sp"), Sample(h=h, eta=h, weight=np.ones(2), reference=np.array([[0.1, 1.0]]))), 12)
    0.3
    """
    here, there = means(form, sample.h, sample.eta, sample.weight), sample.reference
    total = 0.0
    for t, (name, coefficient) in enumerate(form.terms):
        if name == "da":
            term = divergence(float(here[t, 0]), float(there[t, 0])) + _penalty(form, sample)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                term = float(here[t, 0] / here[t, 1] - there[t, 0] / there[t, 1])
        total += coefficient * term
    return total


def divergence(p: float, q: float) -> float:
    """Return the Kullback-Leibler divergence of two coins.

    Examples
    --------
    >>> round(divergence(0.5, 0.25), 6)
    0.143841
    """
    return float(special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))


def _penalty(form: Functional, sample: Sample) -> float:
    if not form.penalty > 0:
        return 0.0
    return form.penalty * float(sample.weight @ _given(sample.log_ratio)) / float(sample.weight.sum())


def psi(at: Centre, h: FloatArray, eta: FloatArray, log_ratio: FloatArray | None = None) -> FloatArray:
    """Return the influence function at points with these predictions, outcome probabilities and log dP/dQ.

    Examples
    --------
    >>> h = np.array([0.2, 0.6])
    >>> at = centre(functional("sp"), Sample(h=h, eta=h, weight=np.ones(2), reference=np.array([[0.1, 1.0]])))
    >>> psi(at, h, h).round(12).tolist()
    [-0.2, 0.2]
    """
    out = np.empty_like(h)
    for start in range(0, len(h), _CHUNK):
        rows = slice(start, start + _CHUNK)
        out[rows] = _psi(at, h[rows], eta[rows], None if log_ratio is None else log_ratio[rows])
    return out


def _psi(at: Centre, h: FloatArray, eta: FloatArray, log_ratio: FloatArray | None) -> FloatArray:
    out: FloatArray | float = 0.0
    for (name, coefficient), ratio, scale, slope in zip(at.form.terms, at.ratio, at.scale, at.slope, strict=True):
        if name == "da":
            term = coefficient * (slope * h - ratio)
            if at.form.penalty > 0:
                term = term + coefficient * at.form.penalty * _given(log_ratio)
        elif name == "fpr":  # the default measure, with two multiplications less
            term = (h - ratio) * ((1 - eta) * (coefficient / scale))
        else:
            n, d = TERMS[name].parts(h, eta)
            term = (n - ratio * d) * (coefficient / scale)
        out = out + term
    return np.asarray(out, dtype=np.float64)


def psi_slopes(at: Centre, h: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the slopes of `psi` in h, in eta (both of shape (rows,)) and in log_ratio, the centre held fixed.

    Examples
    --------
    >>> at = Centre(form=functional("fpr"), ratio=(0.4,), scale=(0.5,), slope=(1.0,))
    >>> [np.round(s, 12).tolist() for s in psi_slopes(at, np.array([0.6]), np.array([0.5]))]
    [[1.0], [-0.4], 0.0]
    """
    by_h, by_eta, by_ratio = np.zeros_like(h), np.zeros_like(h), 0.0
    for (name, coefficient), ratio, scale, slope in zip(at.form.terms, at.ratio, at.scale, at.slope, strict=True):
        n_h, n_e, d_h, d_e = TERMS[name].slopes(h, eta)
        by_h += (slope * n_h - ratio * d_h) * (coefficient / scale)
        by_eta += (slope * n_e - ratio * d_e) * (coefficient / scale)
        by_ratio += coefficient * at.form.penalty * (name == "da")
    return by_h, by_eta, by_ratio


def _given(log_ratio: FloatArray | None) -> FloatArray:
    if log_ratio is None:
        raise UsageError("A penalised divergence needs the ratio of the two distributions.")
    return log_ratio
