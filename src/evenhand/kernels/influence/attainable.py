"""What reweighting can and cannot reach: the nearest value to a reference, and what counting alone would promise.

[wang2019] proposition 1. A ratio of means over weighted points lies between the smallest and the largest ratio of a
single point, and takes every value between: the value nearest to the reference is the reference clipped into that
range. In print m_CAL and m_FNR are clipped from below only; a reference above every point must be clipped as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenhand.kernels.influence.functionals import TERMS, Functional, Sample, divergence


@dataclass(frozen=True, slots=True, kw_only=True)
class Attainable:
    """The values that weights on a sample's points can give one term, and the least gap they leave."""

    # low, high: the smallest and the largest value of a single point.
    low: float
    high: float
    reference: float  # the value to be met
    nearest: float  # m in the paper: the reference clipped into the range
    gap: float  # what is left of the functional there; 0 where the reference lies in the range


def attainable(form: Functional, sample: Sample) -> Attainable | None:
    """Find how close weights on a sample's points can bring a functional to the reference.

    Parameters
    ----------
    form : Functional
        What is measured.
    sample : Sample
        Its points, and the reference's means.

    Returns
    -------
    Attainable or None
        None for a combination of several terms and for a penalised divergence, which have no such closed form,
        and where no point has a value.

    Examples
    --------
    >>> from evenhand.kernels.influence.functionals import functional
    >>> h = np.array([0.2, 0.6])
    >>> sample = Sample(h=h, eta=h, weight=np.ones(2), reference=np.array([[0.75, 1.0]]))
    >>> made = attainable(functional("sp"), sample)
    >>> made.nearest, round(made.gap, 12)
    (0.6, -0.15)
    """
    if len(form.terms) > 1 or form.uses_log_ratio:
        return None
    name, coefficient = form.terms[0]
    top, bottom = TERMS[name].parts(sample.h, sample.eta)
    d = np.broadcast_to(np.asarray(bottom, dtype=np.float64), top.shape)
    seen = (d > 0) & (sample.weight > 0)
    if not seen.any() or not sample.reference[0, 1] > 0:
        return None
    ratio = top[seen] / d[seen]
    low, high = float(ratio.min()), float(ratio.max())
    reference = float(sample.reference[0, 0] / sample.reference[0, 1])
    nearest = min(max(reference, low), high)
    left = divergence(nearest, reference) if name == "da" else nearest - reference
    return Attainable(low=low, high=high, reference=reference, nearest=nearest, gap=coefficient * left)


def counting_bound(points: int, rows: float, beta: float = 0.05) -> float:
    """Bound the error of an empirical distribution of two labels on so many points, summed over all of them.

    [wang2019] eq. (18) and (19), which (14) of proposition 5 rests on: it holds with probability 1 - beta for
    probabilities that are counted, and not for fitted ones. Two distributions differ by 2 at most.

    Parameters
    ----------
    points : int
        Different points.
    rows : float
        Rows counted.
    beta : float
        How often the bound may fail.

    Returns
    -------
    float

    Examples
    --------
    >>> round(counting_bound(8, 10_000), 4), counting_bound(500, 400)
    (0.0616, 2.0)
    """
    return min(math.sqrt(2 / rows * (2 * points - math.log(beta))), 2.0) if rows > 0 else 2.0
