"""Kernel classifiers: the distance to the hyperplane in the kernel's own space."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray


def is_kernel_machine(inner: Any) -> bool:
    """Say whether an estimator, or the last step of a pipeline, is a sum of kernels over support vectors.

    Examples
    --------
    >>> is_kernel_machine(object())
    False
    """
    last = _last_step(inner)[0]
    return all(hasattr(last, a) for a in ("dual_coef_", "support_vectors_", "kernel", "decision_function"))


def kernel_distance(inner: Any, X: FloatArray) -> FloatArray:
    """Return |sum_i a_i k(x_i, x) + b| / sqrt(a' K a).

    [si2021] sec. 3.1 prints the square of this. The signed square has no bounded density at 0, Assumption 1(a) fails
    and the test never rejects; the root is a distance.

    Parameters
    ----------
    inner : object
        A fitted scikit-learn SVC, or a pipeline that ends in one.
    X : ndarray, shape (n, d)
        Features as the estimator takes them.

    Returns
    -------
    ndarray, shape (n,)
    """
    from sklearn.metrics.pairwise import pairwise_kernels

    last, before = _last_step(inner)
    values = np.asarray(last.decision_function(X if before is None else before.transform(X)), dtype=float)
    support = last.support_vectors_
    if callable(last.kernel):
        gram = last.kernel(support, support)
    else:
        gram = pairwise_kernels(
            support,
            metric=last.kernel,
            filter_params=True,
            gamma=getattr(last, "_gamma", None),
            degree=last.degree,
            coef0=last.coef0,
        )
    weights = np.asarray(last.dual_coef_, dtype=float).reshape(-1)
    length = math.sqrt(float(weights @ np.asarray(gram) @ weights))
    return np.asarray(np.abs(values) / length, dtype=float)


def _last_step(inner: Any) -> tuple[Any, Any]:
    steps = getattr(inner, "steps", None)
    if not steps:
        return inner, None
    return steps[-1][1], inner[:-1] if len(steps) > 1 else None
