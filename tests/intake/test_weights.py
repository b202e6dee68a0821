from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from evenhand.errors import DataError
from evenhand.intake import AuditData, read

TABLE = {"y": [0, 1, 0, 1], "g": ["a", "b", "b", "a"], "s": [0.1, 0.2, 0.3, 0.4]}


def weighted(weight: Any, mode: str = "keep", **options: Any) -> AuditData:
    frame = pd.DataFrame(TABLE | {"w": weight})
    if mode != "duckdb":
        return read(frame, outcome="y", groups="g", weight="w", rows=mode, **options)
    with duckdb.connect() as connection:
        return read(connection.from_df(frame), outcome="y", groups="g", weight="w", **options)


def test_counts_that_are_said_to_be_counts() -> None:
    data = weighted([1, 2, 3, 4], weight_kind="frequency")
    assert data.count.tolist() == [1, 2, 3, 4]
    assert data.weight is None
    assert data.weight_square is None
    assert (data.rows.rows_in, data.rows.rows_used) == (4, 4)
    assert data.notes == ("`w` is taken as frequency weights; the rows used stand for 10 rows.",)


def test_other_numbers_are_sampling_weights() -> None:
    data = weighted([1, 2, 3, 4.5])
    assert data.count.tolist() == [1, 1, 1, 1]
    assert data.weight is not None
    assert data.weight_square is not None
    assert data.weight.tolist() == [1, 2, 3, 4.5]
    assert data.weight_square.tolist() == [1, 4, 9, 20.25]
    assert "sampling weights because some are not whole" in data.notes[0]


def test_the_kind_can_be_stated() -> None:
    stated = weighted([1, 2, 3, 4], weight_kind="sampling")
    assert stated.weight is not None
    assert stated.count.tolist() == [1] * 4
    assert stated.notes == ("`w` is taken as sampling weights.",)
    assert weighted([100, 200, 300, 400], weight_kind="frequency").count.sum() == 1000


@pytest.mark.parametrize("mode", ["keep", "cells", "duckdb"])
@pytest.mark.parametrize("score", [None, "s"])
class TestEveryMode:
    @pytest.mark.parametrize(
        ("weights", "held"), [([1, 2, 3, 57], "from 1 to 57 that differ"), ([3, 3, 3, 3], "that all are 3")]
    )
    def test_whole_numbers_must_be_explained(self, mode: str, score: str | None, weights: list[int], held: str) -> None:
        wanted = rf"`w` holds whole numbers {held}: are they .*weight_kind='frequency'`\).*weight_kind='sampling'`\)\?"
        with pytest.raises(DataError, match=wanted):
            weighted(weights, mode, score=score)
        assert weighted(weights, mode, score=score, weight_kind="frequency").count.sum() == sum(weights)
        assert weighted(weights, mode, score=score, weight_kind="sampling").count.sum() == 4

    def test_zeros_and_ones_need_no_word(self, mode: str, score: str | None) -> None:
        data = weighted([1, 1, 0, 1], mode, score=score)
        assert (data.count.sum(), data.weight) == (3, None)
        assert data.rows.dropped == {"`w` is zero": 1}

    @pytest.mark.parametrize("weights", [[1, 2, 3, 2**60], [2.0**52] * 4])
    def test_more_than_can_be_counted(self, mode: str, score: str | None, weights: list[float]) -> None:
        with pytest.raises(DataError, match=r"`w` counts .* rows in all; at most 1,000,000,000,000 can be counted"):
            weighted(weights, mode, score=score, weight_kind="frequency")

    @pytest.mark.parametrize("extreme", [1e-170, 1e170])
    def test_weights_whose_squares_leave_the_numbers(self, mode: str, score: str | None, extreme: float) -> None:
        with pytest.raises(DataError, match=r"Divide them by their mean: only their ratios matter"):
            weighted([1.5, 1.0, extreme, 1.0], mode, score=score)

    @pytest.mark.parametrize("bad", [float("nan"), None, -1.0, float("inf")])
    def test_bad_weights_are_refused(self, mode: str, score: str | None, bad: Any) -> None:
        with pytest.raises(DataError, match=r"Weight `w` is missing, NaN, infinite or negative in 1 row"):
            weighted([1.0, 2.0, bad, 1.0], mode, score=score)

    def test_broken_counts_are_refused(self, mode: str, score: str | None) -> None:
        with pytest.raises(DataError, match=r"`w` is not a whole number in 2 rows.*weight_kind='sampling'"):
            weighted([1, 2.5, 3, 0.5], mode, score=score, weight_kind="frequency")

    @pytest.mark.parametrize("weights", [[0, 2, 3, 4], [0, 2.5, 3, 4]])
    def test_zero_weights_are_dropped_and_counted(self, mode: str, score: str | None, weights: list[float]) -> None:
        kind = "frequency" if 2 in weights else "sampling"
        data = weighted(weights, mode, score=score, weight_kind=kind)
        assert data.rows.dropped == {"`w` is zero": 1}
        assert (data.rows.rows_in, data.rows.rows_used) == (4, 3)
        assert 0 not in data.count

    def test_equal_sampling_weights_change_nothing(self, mode: str, score: str | None) -> None:
        data = weighted([0.5, 0.5, 0.5, 0.5], mode, score=score)
        assert data.weight is None
        assert (
            data.notes[-1 if mode != "duckdb" else 2]
            == "All sampling weights in `w` are equal, so they change nothing."
        )
        if mode != "keep" and score:
            assert data.moments is not None
            assert data.moments["score"].wv.sum() == pytest.approx(1.0)
            assert data.moments["score"].wwvv.sum() == pytest.approx(0.01 + 0.04 + 0.09 + 0.16)


def test_all_weights_zero() -> None:
    with pytest.raises(DataError, match=r"All 4 rows are dropped \(`w` is zero: 4\)"):
        weighted([0, 0, 0, 0])


def test_a_weight_of_text_is_refused() -> None:
    with pytest.raises(DataError, match=r"`w` must hold numbers to be used as weight; got text such as `a`"):
        weighted(["a", "b", "c", "d"])
    with pytest.raises(DataError, match=r"`w` must hold numbers to be used as weight; got text"):
        weighted(["a", "b", "c", "d"], "duckdb")


def test_a_count_of_two_equals_the_row_twice() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"y": rng.integers(0, 2, 50), "g": rng.choice(["a", "b"], 50), "s": rng.random(50)})
    times = rng.integers(1, 4, 50)
    long = frame.loc[frame.index.repeat(times)]
    options: dict[str, Any] = {"outcome": "y", "groups": "g", "score": "s"}
    counted = read(frame.assign(w=times), weight="w", weight_kind="frequency", **options)
    assert counted.fingerprint == read(long, **options).fingerprint
    a = read(frame.assign(w=times), weight="w", weight_kind="frequency", rows="cells", **options)
    b = read(long, rows="cells", **options)
    assert a.count.tolist() == b.count.tolist()
    assert a.moments is not None
    assert b.moments is not None
    for name, moments in a.moments.items():
        np.testing.assert_allclose(moments.wwvv, b.moments[name].wwvv, rtol=1e-11)
