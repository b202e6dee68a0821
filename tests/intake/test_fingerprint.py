from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.intake import read

OPTIONS: dict[str, Any] = {
    "outcome": "y",
    "decision": "d",
    "score": "s",
    "groups": ["g", "h"],
    "weight": "w",
    "continuous": ["age"],
    "features": ["x", "job"],
}


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 200
    return pd.DataFrame(
        {
            "y": rng.integers(0, 2, n),
            "d": rng.integers(0, 2, n),
            "s": rng.random(n),
            "g": rng.choice(["a", "b"], n),
            "h": rng.choice(["a", "b"], n),
            "w": rng.random(n) + 0.5,
            "age": rng.integers(20, 60, n),
            "x": rng.normal(size=n),
            "job": rng.choice(["p", "q"], n),
            "unused": rng.normal(size=n),
        }
    )


def test_row_and_column_order_and_unused_columns_do_not_matter(frame: pd.DataFrame) -> None:
    base = read(frame, **OPTIONS).fingerprint
    assert len(base) == 32
    assert read(frame.sample(frac=1, random_state=1), **OPTIONS).fingerprint == base
    assert read(frame[frame.columns[::-1]], **OPTIONS).fingerprint == base
    assert read(frame.assign(unused=0), **OPTIONS).fingerprint == base


@pytest.mark.parametrize("column", ["y", "d", "s", "g", "h", "w", "age", "x", "job"])
def test_every_used_value_matters(frame: pd.DataFrame, column: str) -> None:
    base = read(frame, **OPTIONS).fingerprint
    other = frame.copy()
    first, second = other.loc[0, column], other.loc[other[column] != other.loc[0, column], column].iloc[0]
    assert first != second
    other.loc[0, column] = second
    assert read(other, **OPTIONS).fingerprint != base


def test_swapping_two_attributes_or_dropping_a_row_matters(frame: pd.DataFrame) -> None:
    base = read(frame, **OPTIONS).fingerprint
    assert read(frame.rename(columns={"g": "h", "h": "g"}), **OPTIONS).fingerprint != base
    assert read(frame.iloc[1:], **OPTIONS).fingerprint != base
    assert read(pd.concat([frame, frame.iloc[:1]]), **OPTIONS).fingerprint != base


def test_two_equal_rows_do_not_cancel(frame: pd.DataFrame) -> None:
    doubled = pd.concat([frame, frame.iloc[:1], frame.iloc[:1]])
    other = pd.concat([frame, frame.iloc[1:2], frame.iloc[1:2]])
    assert read(doubled, **OPTIONS).fingerprint != read(other, **OPTIONS).fingerprint


def test_zero_and_minus_zero_are_one_number(frame: pd.DataFrame) -> None:
    plus, minus = frame.assign(x=0.0), frame.assign(x=-0.0)
    assert read(plus, **OPTIONS).fingerprint == read(minus, **OPTIONS).fingerprint
