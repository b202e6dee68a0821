"""Corrective descent: reweight a sample, step by step, until its functional meets the other sample's.

One step multiplies the weights by ``1 - step * sign * psi`` [wang2019] algorithm 1, clips at 0 and
renormalises. Weights, not draws: the stopping rule of the paper fires on resampling noise. A step that
does not bring the held-out value closer to 0 is halved and tried again; after `patience` halvings the
descent stops. Because psi depends on the current weights through a few means only, the whole path is a
short list of constants, and the weight of any new point can be computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.kernels.influence.functionals import Centre, Functional, centre, psi, value

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Points of the distribution that is moved.

    Parameters
    ----------
    h, eta : ndarray, shape (rows,)
        Prediction and outcome probability.
    weight : ndarray, shape (rows,)
        Starting weights (row counts, sampling weights).
    log_ratio : ndarray or None
        log dP/dQ; needed when the divergence of inputs is penalised.
    """

    h: FloatArray
    eta: FloatArray
    weight: FloatArray
    log_ratio: FloatArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One accepted step: its size with sign, the centre it used, and what the weights were divided by."""

    size: float
    at: Centre
    norm: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Path:
    """A descent: how to repeat it on new points, and how the value fell.

    Parameters
    ----------
    form : Functional
        What was lowered.
    steps : tuple of Step
        The accepted steps.
    values, held_out : tuple of float
        Signed functional before the first step and after each, on the sample and on the held-out points.
    effective : tuple of float
        Effective sample size, (sum w)² / sum w², of the sample after each step, in rows.
    stopped : str
        Why it ended, in words.
    """

    form: Functional
    steps: tuple[Step, ...]
    values: tuple[float, ...]
    held_out: tuple[float, ...]
    effective: tuple[float, ...]
    stopped: str

    def multiplier(self, h: FloatArray, eta: FloatArray, log_ratio: FloatArray | None = None) -> FloatArray:
        """Return the weight c(x) of points: mean 1 over the sample the path was found on.

        Parameters
        ----------
        h, eta : ndarray, shape (rows,)
            Prediction and outcome probability at the points.
        log_ratio : ndarray, optional
            log dP/dQ at the points.

        Returns
        -------
        ndarray, shape (rows,)
        """
        c = np.ones_like(h)
        for step in self.steps:
            c = _moved(self.form, step, h, eta, log_ratio, c) / step.norm
        return c


def descend(
    form: Functional,
    sample: Sample,
    held_out: Sample,
    reference: FloatArray,
    reference_held_out: FloatArray,
    *,
    step: float = 0.1,
    max_steps: int = 200,
    tolerance: float = 1e-3,
    patience: int = 6,
) -> Path:
    """Move a distribution until its functional equals the reference's.

    Parameters
    ----------
    form : Functional
        What is lowered in size.
    sample, held_out : Sample
        Where the influence function is computed, and where progress is judged.
    reference, reference_held_out : ndarray, shape (terms, 2)
        `means` of the fixed distribution on the same two parts.
    step : float
        First step size; the paper's epsilon.
    max_steps : int
        At most so many accepted steps.
    tolerance : float
        A held-out value this close to 0 ends the descent.
    patience : int
        Halvings of a step that does not help before giving up.

    Returns
    -------
    Path

    Examples
    --------
    >>> from evenhand.kernels.influence.functionals import functional
    >>> s = Sample(h=np.array([0.2, 0.8]), eta=np.zeros(2), weight=np.ones(2))
    >>> path = descend(functional("sp"), s, s, np.array([[0.4, 1.0]]), np.array([[0.4, 1.0]]))
    >>> round(path.values[0], 3), abs(path.values[-1]) < 0.001
    (0.1, True)
    """
    c, c_out = np.ones_like(sample.h), np.ones_like(held_out.h)
    now = _value(form, sample, c, reference)
    now_out = _value(form, held_out, c_out, reference_held_out)
    values, outs, effective = [now], [now_out], [_effective(sample.weight, c)]
    steps: list[Step] = []
    size, halvings, stopped = float(step), 0, f"{max_steps} steps were made"
    while len(steps) < max_steps:
        if not np.isfinite(now_out) or abs(now_out) <= tolerance:
            stopped = "the held-out gap is within the tolerance" if np.isfinite(now_out) else "the gap is undefined"
            break
        moved = _log_ratio(sample, c)
        at = centre(form, sample.h, sample.eta, sample.weight * c, reference=reference, log_ratio=moved)
        trial = Step(size=size * float(np.sign(now_out)), at=at, norm=1.0)
        c_next = _moved(form, trial, sample.h, sample.eta, sample.log_ratio, c)
        norm = float(sample.weight @ c_next) / float(sample.weight.sum())
        if norm > 0:
            out_next = _moved(form, trial, held_out.h, held_out.eta, held_out.log_ratio, c_out) / norm
            new_out = _value(form, held_out, out_next, reference_held_out)
            if np.isfinite(new_out) and abs(new_out) < abs(now_out):
                c, c_out, now_out, halvings = c_next / norm, out_next, new_out, 0
                steps.append(Step(size=trial.size, at=at, norm=norm))
                values.append(_value(form, sample, c, reference))
                outs.append(now_out)
                effective.append(_effective(sample.weight, c))
                continue
        halvings += 1
        size /= 2
        if halvings > patience:
            stopped = f"no step of {step:g} to {size * 2:.2g} lowered the held-out gap"
            break
    return Path(
        form=form,
        steps=tuple(steps),
        values=tuple(values),
        held_out=tuple(outs),
        effective=tuple(effective),
        stopped=stopped,
    )


def _moved(
    form: Functional, step: Step, h: FloatArray, eta: FloatArray, log_ratio: FloatArray | None, c: FloatArray
) -> FloatArray:
    """Multiply c by the clipped factor of one step."""
    if log_ratio is not None:
        # dP/dQ moves with the weights: its logarithm gains log c. Points of weight 0 stay at 0.
        log_ratio = log_ratio + np.log(np.maximum(c, 1e-300))
    factor = 1.0 - step.size * psi(form, step.at, h, eta, log_ratio)
    out: FloatArray = c * np.maximum(factor, 0.0)
    return out


def _log_ratio(sample: Sample, c: FloatArray) -> FloatArray | None:
    if sample.log_ratio is None:
        return None
    out: FloatArray = sample.log_ratio + np.log(np.maximum(c, 1e-300))
    return out


def _value(form: Functional, sample: Sample, c: FloatArray, reference: FloatArray) -> float:
    weight = sample.weight * c
    if not weight.sum() > 0:
        return float("nan")
    return value(form, sample.h, sample.eta, weight, reference=reference, log_ratio=_log_ratio(sample, c))


def _effective(weight: FloatArray, c: FloatArray) -> float:
    # `weight` counts rows: c is shared by identical rows.
    return float((weight @ c) ** 2 / (weight @ c**2))
