"""A model on a matrix, and the columns it was fitted on."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.models import adapt
from evenhand.models.fitted_columns import check_columns, expected_columns
from evenhand.models.surface import matrix_surface

X = np.random.default_rng(0).normal(size=(200, 3))
Y = (X @ [1.0, -1.0, 0.5] + 0.3 * np.random.default_rng(1).normal(size=200) > 0).astype(int)


COLUMNS = dict(zip("abc", X.T, strict=True))


def surface(model, **said):
    return matrix_surface(adapt(model, COLUMNS, **said), list(COLUMNS))


def test_callable_of_one_or_two_columns():
    one = surface(lambda x: x[:, 0], threshold=0.2)
    two = surface(lambda x: np.column_stack([1 - x[:, 0], x[:, 0]]), threshold=0.2)
    np.testing.assert_array_equal(one.decide(X), (X[:, 0] >= 0.2).astype(float))
    np.testing.assert_array_equal(one.decide(X), two.decide(X))


def test_onnx_session_by_its_face():
    class Entry:
        name, type = "input", "tensor(float)"

    class Session:
        def get_inputs(self):
            return [Entry()]

        def run(self, outputs, feed):
            p = 1 / (1 + np.exp(-feed["input"][:, 0]))
            return [(p > 0.5).astype(int), [{0: 1 - v, 1: v} for v in p]]

    model = adapt(Session(), COLUMNS)
    np.testing.assert_allclose(model.score(COLUMNS), 1 / (1 + np.exp(-X[:, 0])), rtol=1e-6)


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
    np.testing.assert_array_equal(surface(fitted).decide(X), fitted.predict(X))
    np.testing.assert_array_equal(adapt(fitted, COLUMNS).decide(COLUMNS), fitted.predict(X))


def test_threshold_and_positive_class():
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression().fit(X, np.where(Y == 1, "yes", "no"))
    probability = fitted.predict_proba(X)
    strict = surface(fitted, threshold=0.8)
    np.testing.assert_array_equal(strict.decide(X), (probability[:, 1] >= 0.8).astype(float))
    other = surface(fitted, positive="no")
    np.testing.assert_array_equal(other.decide(X), (fitted.predict(X) == "no").astype(float))
    assert np.all((other.score(X) >= 0) == (other.decide(X) == 1))


def test_three_classes_are_refused():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(DataError, match="3 classes"):
        adapt(LogisticRegression().fit(X, np.arange(200) % 3), COLUMNS).score(COLUMNS)


def test_estimator_fitted_on_a_frame_gets_its_columns_by_name():
    pandas = importlib.import_module("pandas")
    from sklearn.linear_model import LogisticRegression

    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    fitted = LogisticRegression().fit(frame, Y)
    shuffled = matrix_surface(adapt(fitted, COLUMNS), ["c", "a", "b"])
    np.testing.assert_array_equal(shuffled.decide(X[:, [2, 0, 1]]), fitted.predict(frame))


class Port:
    def __init__(self, name, shape, kind="tensor(float)"):
        self.name, self.shape, self.type = name, shape, kind


class NamedSession:
    """An ONNX session with one input per column, one of them text, as pipelines are exported."""

    def get_inputs(self):
        return [Port("age", [None, 1]), Port("job", [None, 1], "tensor(string)"), Port("n", [None], "tensor(int64)")]

    def run(self, outputs, feed):
        assert feed["age"].dtype == np.float32
        assert feed["n"].shape == (len(feed["age"]),)
        assert feed["job"].dtype.kind == "U"
        p = np.clip(feed["age"][:, 0] / 100 + 0.1 * (feed["job"][:, 0] == "b") + 0.01 * feed["n"], 0, 1)
        return [np.zeros(len(p)), np.column_stack([1 - p, p])]


def test_onnx_inputs_are_fed_by_name():
    import pandas as pd

    from evenhand.models.onnx import OnnxClassifier

    model = OnnxClassifier(NamedSession())
    assert expected_columns(model) == (("age", "job", "n"), 3)
    frame = pd.DataFrame({"n": [1, 2], "extra": [9, 9], "job": ["a", "b"], "age": [20.0, 60.0]})
    np.testing.assert_allclose(model.predict_proba(frame)[:, 1], [0.21, 0.72], rtol=1e-6)
    assert model.predict(frame).tolist() == [0, 1]


def test_onnx_output_that_is_no_probability_is_refused():
    from evenhand.models.onnx import OnnxClassifier

    class Regression(NamedSession):
        def run(self, outputs, feed):
            return [feed["age"]]

    import pandas as pd

    with pytest.raises(DataError, match="is no probability of two classes"):
        OnnxClassifier(Regression()).predict_proba(pd.DataFrame({"age": [20.0], "job": ["a"], "n": [1]}))


def test_expected_columns_of_estimators_and_pipelines():
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"age": np.arange(20.0), "job": np.array(["a", "b"] * 10)})
    encode = ColumnTransformer([("job", OneHotEncoder(), ["job"])], remainder="passthrough")
    pipeline = make_pipeline(encode, LogisticRegression()).fit(frame, np.arange(20) % 2)
    assert expected_columns(pipeline) == (("age", "job"), 2)
    assert expected_columns(LogisticRegression().fit(X, Y)) == (None, 3)
    assert check_columns(pipeline, {"job": [], "age": []}) == []
    assert check_columns(pipeline, {"job": [], "age": [], "id": []}) == ["Not an input of the model `Pipeline`: `id`."]
    with pytest.raises(DataError, match=r"fitted on 2 columns and the data lack 1 of them: `age`. Did you mean `Age`"):
        check_columns(pipeline, {"job": [], "Age": []})
    (note,) = check_columns(LogisticRegression().fit(X, Y), dict.fromkeys("abc"))
    assert "by position; they were taken in the order `a`, `b`, `c`" in note
    with pytest.raises(DataError, match="takes 3 columns by position and the data have 2"):
        check_columns(LogisticRegression().fit(X, Y), dict.fromkeys("ab"))
    with pytest.raises(UsageError, match="is not fitted"):
        check_columns(LogisticRegression(), dict.fromkeys("ab"))
    with pytest.raises(UsageError, match="is a class"):
        check_columns(LogisticRegression, dict.fromkeys("ab"))
    with pytest.raises(UsageError, match="float is not a model"):
        check_columns(3.0, dict.fromkeys("ab"))
