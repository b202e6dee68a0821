from __future__ import annotations

import importlib

import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.models import adapt
from evenhand.models.counterfactual import flip_values, recorded_as


def test_estimators_are_asked_in_the_columns_they_were_fitted_on() -> None:
    pd = importlib.import_module("pandas")
    linear = importlib.import_module("sklearn.linear_model")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    y = (frame["a"] + rng.normal(size=80) > 0).to_numpy()
    model = linear.LogisticRegression().fit(frame, y)
    columns = {"unused": np.zeros(80), "b": frame["b"].to_numpy(), "a": frame["a"].to_numpy()}
    scorer = adapt(model, columns)
    np.testing.assert_allclose(scorer.score(columns), model.predict_proba(frame)[:, 1])
    assert scorer.probability
    other = adapt(model, columns, positive=False)
    np.testing.assert_allclose(other.score(columns), model.predict_proba(frame)[:, 0])
    with pytest.raises(UsageError, match="classes are `False` and `True`"):
        adapt(model, columns, positive="yes")
    with pytest.raises(DataError, match="data lack 1 of them: `a`"):
        adapt(model, {"b": columns["b"]})


def test_scores_that_are_no_scores_are_refused() -> None:
    columns = {"x": np.arange(3.0)}
    with pytest.raises(DataError, match="gave 2 scores for 3 rows"):
        adapt(lambda X: X[:2, 0], columns).score(columns)
    with pytest.raises(DataError, match="1 of 3 scores that are not finite"):
        adapt(lambda X: np.array([0.0, np.nan, 1.0]), columns).score(columns)
    with pytest.raises(UsageError, match="is not a model"):
        adapt(3, columns)


def test_a_model_that_raises_is_named_with_what_it_was_asked() -> None:
    def broken(X: np.ndarray) -> np.ndarray:
        raise RuntimeError("no weights loaded")

    columns = {"x": np.arange(3.0), "sex": np.array([0, 1, 1])}
    with pytest.raises(DataError, match="`broken` raised RuntimeError when asked about 3 rows of columns x, sex: no w"):
        adapt(broken, columns).score(columns)


@pytest.mark.parametrize("columns", [{"x": np.arange(4.0), "sex": np.array([0, 1, 0, 1])},
                                     {"x": np.arange(4.0), "sex": np.array(["0", "1", "0", "1"])}])  # fmt: skip
def test_change_is_the_difference_of_two_scores(columns: dict[str, np.ndarray]) -> None:
    def model(given: object) -> np.ndarray:  # returns a part of what it was given
        return given[:, 1] if isinstance(given, np.ndarray) else given["sex"].astype(float)  # type: ignore[index]

    flipped = recorded_as(columns, "1", 1, [{"sex": columns["sex"][0]}, {"sex": columns["sex"][1]}])
    scorer = adapt(model, columns)
    before = {n: c.copy() for n, c in columns.items()}
    np.testing.assert_array_equal(scorer.change(columns, flipped), [1, 0, 1, 0])
    np.testing.assert_array_equal(scorer.change(columns, flipped), scorer.score(flipped) - scorer.score(columns))
    for n, c in columns.items():
        np.testing.assert_array_equal(c, before[n])


def test_an_intersection_flips_both_columns() -> None:
    columns = {"sex": np.array(["F", "M", "F"]), "race": np.array([0, 0, 1]), "x": np.arange(3.0)}
    values = flip_values(columns, "sex × race", ["F × 0", "M × 0", "F × 1"], np.array([0, 1, 2]), None)
    assert isinstance(values, list)
    flipped = recorded_as(columns, "M × 0", 1, values)
    assert flipped["sex"].tolist() == ["M"] * 3
    assert flipped["race"].tolist() == [0] * 3
    assert columns["sex"].tolist() == ["F", "M", "F"]


def test_a_long_label_is_not_cut() -> None:
    columns = {"sex": np.array(["F", "F"]), "x": np.arange(2.0)}
    values = [{"sex": "F"}, {"sex": "Female to male"}]
    assert recorded_as(columns, "b", 1, values)["sex"].tolist() == ["Female to male"] * 2
