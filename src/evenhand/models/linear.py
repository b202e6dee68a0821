"""Linear classifiers: found by probing, so that any pipeline of linear steps counts; distances in closed form."""

from __future__ import annotations

import math

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError
from evenhand.models.moves import Moves
from evenhand.models.surface import Surface

JUMPS = ("together", "each")
_PROBES = 2000  # rows on which linearity is checked
_SATURATED = 15.0
_FLAT = 1e-10  # a slope this small against the margins is rounding


def linear_form(surface: Surface, X: FloatArray) -> tuple[FloatArray, float] | None:
    """Return coefficients and intercept if the decision is `coefficients . x + intercept >= 0`, else None.

    The score, or its logit, is probed at one point and a step along each feature, and the line through these is
    compared with the score on the data.

    Examples
    --------
    >>> from evenhand.models.adapter import adapt
    >>> from evenhand.models.surface import matrix_surface
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = adapt(lambda x: x @ [1.0, 2.0], {"a": X[:, 0], "b": X[:, 1]}, threshold=1.0)
    >>> coefficients, intercept = linear_form(matrix_surface(model, ["a", "b"]), X)
    >>> coefficients.round(6).tolist(), round(intercept, 6)
    ([1.0, 2.0], -1.0)
    """
    sample = X[np.linspace(0, len(X) - 1, min(len(X), _PROBES)).astype(int)]
    centre, spread = sample.mean(axis=0), sample.std(axis=0)
    step = np.where(spread > 0, spread, 1.0)
    probes = np.vstack([centre, centre + np.diag(step)])
    raw, seen = surface.score(probes), surface.score(sample)
    attempts = [(raw - surface.threshold, seen - surface.threshold)]
    bounded = np.all((raw >= 0) & (raw <= 1)) and np.all((seen >= 0) & (seen <= 1))
    if bounded and 0 < surface.threshold < 1:
        shift = math.log(surface.threshold / (1 - surface.threshold))
        with np.errstate(divide="ignore"):
            attempts.append((np.log(raw / (1 - raw)) - shift, np.log(seen / (1 - seen)) - shift))
    for at_probes, at_sample in attempts:
        if not np.isfinite(at_probes).all():
            continue
        coefficients = (at_probes[1:] - at_probes[0]) / step
        intercept = float(at_probes[0] - coefficients @ centre)
        # Beyond this a probability is so close to 0 or 1 that rounding spoils its logit.
        finite = np.isfinite(at_sample) if at_sample is attempts[0][1] else np.abs(at_sample) < _SATURATED
        fitted = sample[finite] @ coefficients + intercept
        size = float(np.abs(at_sample[finite]).max(initial=0.0))
        if size > 0 and np.any(coefficients) and np.abs(fitted - at_sample[finite]).max() <= 1e-6 * size:
            return coefficients, intercept
    return None


def plane_distance(margin: FloatArray, slope: FloatArray, parts: FloatArray, moves: Moves) -> FloatArray:
    """Return the distance to a hyperplane for rows that move along some inputs and jump along others.

    Jumps together: all columns change for one price to a combination seen in the data, [si2021] eq. (4). Each: every
    column that changes costs `delta` and takes any of its values in the data.

    Parameters
    ----------
    margin : ndarray, shape (n,)
        Sum of all parts; its sign is the decision.
    slope : ndarray, shape (p,)
        Change of the margin for a move of length one along each input that moves.
    parts : ndarray, shape (n, k)
        What each jumping column adds to the margin.
    moves : Moves
        Length of a move, price and manner of jumps.

    Returns
    -------
    ndarray, shape (n,)
        Infinite where no move changes the decision.

    Examples
    --------
    >>> margin, parts = np.array([5.0, -1.0]), np.array([[4.0], [-2.0]])
    >>> plane_distance(margin, np.array([1.0]), parts, Moves(delta=0.5)).tolist()
    [0.5, 0.5]
    """
    jumps, delta = moves.jumps, moves.delta
    if jumps not in JUMPS:
        raise UsageError(f"`jumps` is `{jumps}`; allowed: {', '.join(f'`{j}`' for j in JUMPS)}.")
    if parts.shape[1] and not delta > 0:
        raise UsageError(f"`delta`, the price of changing categorical features, must be above 0; got {delta}.")
    dual = {"l2": 2.0, "l1": math.inf, "linf": 1.0}[moves.norm]
    steep = float(np.linalg.norm(slope, ord=dual)) if slope.size else 0.0
    if steep <= _FLAT * float(np.abs(margin).max(initial=0.0)):
        steep = 0.0

    def glide(left: FloatArray) -> FloatArray:
        if steep > 0:
            return np.maximum(left, 0.0) / steep
        return np.where(left > 0, np.inf, 0.0)

    left = np.abs(margin)
    distance = glide(left)
    if parts.shape[1]:
        if jumps == "together":
            parts = parts.sum(axis=1, keepdims=True)
        gains = np.where(margin[:, None] >= 0, parts - parts.min(axis=0), parts.max(axis=0) - parts)  # (n, k)
        for count, gain in enumerate(np.sort(gains, axis=1)[:, ::-1].cumsum(axis=1).T, start=1):
            distance = np.minimum(distance, count * delta + glide(left - gain))
    return distance
