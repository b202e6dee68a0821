"""Models that answer well, badly or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np


def _numbers(X: Any) -> np.ndarray:
    array = np.asarray(X, dtype=object)
    return np.array([[v if isinstance(v, float | int) else len(str(v)) for v in row] for row in array], dtype=float)


def linear(X: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return 1 / (1 + np.exp(-np.nan_to_num(_numbers(X)).clip(-50, 50).sum(axis=1)))


def steep(X: Any) -> np.ndarray:
    return (np.nan_to_num(_numbers(X)).clip(-50, 50).sum(axis=1) > 0) * 1.0


def constant(X: Any) -> np.ndarray:
    return np.full(len(X), 0.5)


def raises(X: Any) -> np.ndarray:
    raise KeyError("no such thing")


def nan(X: Any) -> np.ndarray:
    return np.full(len(X), np.nan)


def short(X: Any) -> np.ndarray:
    return np.zeros(max(len(X) - 1, 0))


def words(X: Any) -> np.ndarray:
    return np.array(["yes"] * len(X))
