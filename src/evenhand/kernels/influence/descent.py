"""Corrective descent: reweight a sample, step by step, until its functional meets the other sample's.

One step multiplies the weights by ``1 - step * sign * psi`` [wang2019] algorithm 1, clips at 0 and
renormalises. Weights, not draws: the stopping rule of the paper fires on resampling noise. A step that
does not bring the held-out value closer to 0 is halved and tried again; after `patience` halvings the
descent stops. Because psi depends on the current weights through a few means only, the whole path is a
short list of constants, and the weight of any new point can be computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.influence.functionals import Centre, Functional, Sample, centre, psi, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How a descent walks."""

    step: float = 0.1  # first step size; the paper's epsilon
    max_steps: int = 200  # at most so many accepted steps
    tolerance: float = 1e-3  # a held-out value this close to 0 ends the descent
    patience: int = 6  # halvings of a step that does not help before giving up


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One accepted step: its size with sign, the centre it used, and what the weights were divided by."""

    size: float
    at: Centre
    norm: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Path:
    """A descent: how to repeat it on new points, and how the value fell."""

    steps: tuple[Step, ...]  # the accepted steps
    # values, held_out: signed functional before the first step and after each, on the sample and on the held-out
    # points.
    values: tuple[float, ...]
    held_out: tuple[float, ...]
    effective: tuple[float, ...]  # effective sample size, (sum w)² / sum w², of the sample after each step, in rows
    stopped: str  # why it ended, in words

    def multiplier(self, h: FloatArray, eta: FloatArray, log_ratio: FloatArray | None = None) -> FloatArray:
        """Return the weight c(x) of points from h, eta and log dP/dQ there: mean 1 over the path's sample."""
        c = np.ones_like(h)
        for step in self.steps:
            c = _moved(step, h, eta, log_ratio, c) / step.norm
        return c


def descend(form: Functional, sample: Sample, held_out: Sample, pace: Pace | None = None) -> Path:
    """Move a distribution until its functional equals the reference's.

    Parameters
    ----------
    form : Functional
        What is lowered in size.
    sample, held_out : Sample
        Where the influence function is computed, and where progress is judged.
    pace : Pace, optional
        How long the steps are and when to stop.

    Returns
    -------
    Path

    Examples
    --------
    >>> from evenhand.kernels.influence.functionals import functional
    >>> s = Sample(h=np.array([0.2, 0.8]), eta=np.zeros(2), weight=np.ones(2), reference=np.array([[0.4, 1.0]]))
    >>> path = descend(functional("sp"), s, s)
    >>> round(path.values[0], 3), abs(path.values[-1]) < 0.001
    (0.1, True)
    """
    pace = pace or Pace()
    c, c_out = np.ones_like(sample.h), np.ones_like(held_out.h)
    now_out = _value(form, held_out, c_out)
    values, outs, effective = [_value(form, sample, c)], [now_out], [_effective(sample.weight, c)]
    steps: list[Step] = []
    size, halvings, stopped = float(pace.step), 0, f"{pace.max_steps} steps were made"
    while len(steps) < pace.max_steps:
        if not np.isfinite(now_out) or abs(now_out) <= pace.tolerance:
            stopped = "the held-out gap is within the tolerance" if np.isfinite(now_out) else "the gap is undefined"
            break
        trial = Step(size=size * float(np.sign(now_out)), at=centre(form, _reweighted(sample, c)), norm=1.0)
        c_next = _moved(trial, sample.h, sample.eta, sample.log_ratio, c)
        norm = float(sample.weight @ c_next) / float(sample.weight.sum())
        if norm > 0:
            out_next = _moved(trial, held_out.h, held_out.eta, held_out.log_ratio, c_out) / norm
            new_out = _value(form, held_out, out_next)
            if np.isfinite(new_out) and abs(new_out) < abs(now_out):
                c, c_out, now_out, halvings = c_next / norm, out_next, new_out, 0
                steps.append(replace(trial, norm=norm))
                values.append(_value(form, sample, c))
                outs.append(now_out)
                effective.append(_effective(sample.weight, c))
                continue
        halvings += 1
        size /= 2
        if halvings > pace.patience:
            stopped = f"no step of {pace.step:g} to {size * 2:.2g} lowered the held-out gap"
            break
    return Path(
        steps=tuple(steps), values=tuple(values), held_out=tuple(outs), effective=tuple(effective), stopped=stopped
    )


def _moved(step: Step, h: FloatArray, eta: FloatArray, log_ratio: FloatArray | None, c: FloatArray) -> FloatArray:
    """Multiply c by the clipped factor of one step."""
    factor = 1.0 - step.size * psi(step.at, h, eta, _moved_ratio(log_ratio, c))
    return c * np.maximum(factor, 0.0)


def _moved_ratio(log_ratio: FloatArray | None, c: FloatArray) -> FloatArray | None:
    # dP/dQ moves with the weights: its logarithm gains log c. Points of weight 0 stay at 0.
    return None if log_ratio is None else log_ratio + np.log(np.maximum(c, 1e-300))


def _reweighted(sample: Sample, c: FloatArray) -> Sample:
    return replace(sample, weight=sample.weight * c, log_ratio=_moved_ratio(sample.log_ratio, c))


def _value(form: Functional, sample: Sample, c: FloatArray) -> float:
    moved = _reweighted(sample, c)
    return value(form, moved) if moved.weight.sum() > 0 else float("nan")


def _effective(weight: FloatArray, c: FloatArray) -> float:
    # `weight` counts rows: c is shared by identical rows.
    return float((weight @ c) ** 2 / (weight @ c**2))
