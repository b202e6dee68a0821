from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from evenhand.kernels.flow.simplex import to_simplex


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_it_is_the_nearest_point_whose_parts_are_shares(parts):
    points = np.random.default_rng(parts).normal(size=(parts, 12))
    nearest = to_simplex(points)
    np.testing.assert_allclose(nearest.sum(axis=0), 1.0, atol=1e-14)
    for point, mine in zip(points.T, nearest.T, strict=True):
        slow = minimize(
            lambda x, point=point: ((x - point) ** 2).sum(),
            np.full(parts, 1 / parts),
            bounds=[(0, 1)] * parts,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            tol=1e-12,
        ).x
        np.testing.assert_allclose(mine, slow, atol=1e-6)
