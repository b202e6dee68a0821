from __future__ import annotations

from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def rows() -> dict[str, list[Any]]:
    """400 rows with words for labels, missing values in every role that allows them, and a score."""
    rng = np.random.default_rng(5)
    n = 400
    sex = rng.choice(["F", "M", "X; DROP TABLE", ""], n, p=[0.5, 0.3, 0.15, 0.05]).tolist()
    race = [None if u < 0.05 else ["a'b", "<b>", "é"][int(u * 3)] for u in rng.random(n)]
    outcome = [None if u < 0.04 else [">50K", "<=50K"][int(u * 2)] for u in rng.random(n)]
    return {
        "income": outcome,
        "hired": rng.choice([True, False], n).tolist(),
        "p": np.round(rng.random(n), 3).tolist(),
        "sex": sex,
        "race": race,
        "age": rng.integers(18, 80, n).tolist(),
        "w": np.round(rng.random(n) * 3, 1).tolist(),
        "times": rng.integers(0, 4, n).tolist(),
        "amount": rng.normal(size=n).tolist(),
    }
