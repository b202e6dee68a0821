"""Anything that decides becomes a model with one face."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.models import Model, as_model

X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X @ [1.0, -1.0, 0.5] + 0.3 * np.random.default_rng(1).normal(size=200) > 0).astype(int)


def test_callable_of_one_or_two_columns():
    one = as_model(lambda x: x[:, 0], threshold=0.2)
    two = as_model(lambda x: np.column_stack([1 - x[:, 0], x[:, 0]]), threshold=0.2)
    np.testing.assert_array_equal(one.decide(X), (X[:, 0] >= 0.2).astype(float))
    np.testing.assert_array_equal(one.decide(X), two.decide(X))


def test_a_model_is_returned_as_it_is():
    model = as_model(lambda x: x[:, 0])
    assert isinstance(model, Model)
    assert as_model(model) is model


def test_wrong_number_of_scores_is_refused():
    with pytest.raises(DataError, match="gave 1 scores for 200 rows"):
        as_model(lambda x: np.ones(1)).score(X)


def test_something_else_is_refused():
    with pytest.raises(UsageError, match="not a model"):
        as_model(3)
    with pytest.raises(UsageError, match="not an ONNX file"):
        as_model("model.pkl")


def test_onnx_session_by_its_face():
    class Entry:
        name, type = "input", "tensor(float)"

    class Session:
        def get_inputs(self):
            return [Entry()]

        def run(self, outputs, feed):
            p = 1 / (1 + np.exp(-feed["input"][:, 0]))
            return [(p > 0.5).astype(int), [{0: 1 - v, 1: v} for v in p]]

    model = as_model(Session())
    np.testing.assert_allclose(model.score(X), 1 / (1 + np.exp(-X[:, 0])), rtol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "svc", "tree", "forest"])
def test_estimators_decide_as_they_predict(name):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    kinds = {
        "logistic": LogisticRegression(),
        "svc": SVC(),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "forest": RandomForestClassifier(8, random_state=0),
    }
    fitted = kinds[name].fit(X, Y)
    np.testing.assert_array_equal(as_model(fitted).decide(X), fitted.predict(X))


def test_threshold_and_positive_class():
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(X, np.where(Y == 1, "yes", "no"))
    probability = fitted.predict_proba(X)
    strict = as_model(fitted, threshold=0.8)
    np.testing.assert_array_equal(strict.decide(X), (probability[:, 1] >= 0.8).astype(float))
    other = as_model(fitted, positive="no")
    np.testing.assert_array_equal(other.decide(X), (fitted.predict(X) == "no").astype(float))
    assert np.all((other.score(X) >= 0) == (other.decide(X) == 1))


def test_three_classes_are_refused():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(UsageError, match="3 classes"):
        as_model(LogisticRegression().fit(X, np.arange(200) % 3))


def test_estimator_fitted_on_a_frame_gets_its_columns_by_name():
    pandas = importlib.import_module("pandas")
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(pandas.DataFrame(X, columns=["a", "b", "c"]), Y)
    shuffled = as_model(fitted, features=["c", "a", "b"])
    np.testing.assert_array_equal(shuffled.decide(X[:, [2, 0, 1]]), as_model(fitted).decide(X))
