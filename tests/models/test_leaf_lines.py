"""Scores of forests and boosted trees along a column, against the model asked at each value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import AuditData
from evenhand.audits.proxy import audit_proxy
from evenhand.models import adapt
from evenhand.models.leaf_lines import scores_along

RNG = np.random.default_rng(3)
# The second column is whole: values lie on thresholds of models that were fitted on more of them than on bins.
X = np.column_stack([RNG.normal(size=600), RNG.integers(0, 12, 600), RNG.normal(size=600), RNG.integers(0, 2, 600)])
Y = (X[:, 0] + X[:, 2] * X[:, 3] + 0.1 * X[:, 1] + 0.5 * RNG.normal(size=600) > 0.8).astype(int)
COLUMNS = {f"x{j}": column for j, column in enumerate(X.T)}
MODELS = {
    "forest": RandomForestClassifier(20, random_state=0),
    "extra trees": ExtraTreesClassifier(20, min_samples_leaf=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=20, max_bins=5, random_state=0),
}


def check(model, columns, along):
    """Ask the model at each value of each column and compare."""
    for name, (values, scores) in along.items():
        for value, score in zip(values, scores, strict=True):
            moved = model.score(columns | {name: np.full_like(columns[name], value)})
            np.testing.assert_allclose(score, moved, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_scores_along_a_column_are_the_models_own(name):
    model = adapt(MODELS[name].fit(X, Y), COLUMNS)
    values = {"x0": np.array([0.3, -9.0, 9.0, X[5, 0]]), "x1": np.arange(12.0)[::-1], "x3": np.array([0.0, 1.0])}
    along = scores_along(model, COLUMNS, values)
    assert list(along) == ["x0", "x1", "x3"]
    assert np.ptp(along["x0"], axis=0).max() > 0.1
    check(model, COLUMNS, {n: (values[n], along[n]) for n in along})


def test_a_pipeline_is_followed_along_its_numbers():
    job = RNG.choice(["a", "b", "c"], 600)
    frame = pd.DataFrame({"x0": X[:, 0], "job": job, "x1": X[:, 1]})
    encoder = make_column_transformer((StandardScaler(), ["x1", "x0"]), (OneHotEncoder(sparse_output=False), ["job"]))
    pipeline = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=15, max_bins=6, random_state=0))
    columns = {"job": job.astype(object), "x1": X[:, 1], "x0": X[:, 0]}
    model = adapt(pipeline.fit(frame, Y), columns)
    values = {"job": np.array(["a", "b"], dtype=object), "x1": np.arange(12.0), "x0": np.array([0.3, -1.0])}
    along = scores_along(model, columns, values)
    assert sorted(along) == ["x0", "x1"]
    check(model, columns, {n: (values[n], along[n]) for n in along})


def test_a_model_fitted_on_a_frame_gets_its_own_order_of_columns():
    names = ["x2", "x0", "x1"]
    forest = RandomForestClassifier(10, random_state=0).fit(pd.DataFrame(COLUMNS)[names], Y)
    model = adapt(forest, COLUMNS)
    values = {"x0": np.array([0.1, 2.0]), "x3": np.array([0.0, 1.0])}
    along = scores_along(model, COLUMNS, values)
    assert list(along) == ["x0"]  # the other column is none of the model's
    check(model, COLUMNS, {"x0": (values["x0"], along["x0"])})


def test_the_score_may_point_away_from_the_leaves():
    forest = RandomForestClassifier(10, random_state=0).fit(X, np.where(Y == 1, "no", "yes"))
    model = adapt(forest, COLUMNS, positive="no")
    values = {"x0": np.array([0.1, 2.0])}
    check(model, COLUMNS, {"x0": (values["x0"], scores_along(model, COLUMNS, values)["x0"])})


def test_nothing_is_said_where_sums_are_not_known():
    values = {"x0": np.array([0.0, 1.0])}
    assert scores_along(adapt(LogisticRegression().fit(X, Y), COLUMNS), COLUMNS, values) == {}
    gaps = COLUMNS | {"x0": np.where(np.arange(600) % 9 == 0, np.nan, X[:, 0])}
    boosted = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(np.column_stack([*gaps.values()]), Y)
    assert scores_along(adapt(boosted, gaps), gaps, values) == {}
    assert scores_along(adapt(boosted, COLUMNS), COLUMNS, {"x0": np.array([0.0, np.nan])}) == {}


class Counted:
    """A model that is only asked, and counts the rows."""

    def __init__(self, model):
        self.model, self.rows = model, 0

    def __call__(self, given):
        self.rows += len(given)
        return self.model.predict_proba(given)[:, 1]


def test_the_proxy_audit_finds_the_same_without_asking_about_each_value():
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, Y)
    data = AuditData.from_arrays(outcome=Y, groups={"g": (X[:, 2] > 0).astype(int)}, features=COLUMNS)
    counted = Counted(model)
    inside, asked = audit_proxy(data, model=model, rng=0), audit_proxy(data, model=counted, rng=0)
    assert counted.rows > 10_000
    for one, other in zip(inside, asked, strict=True):
        np.testing.assert_allclose([one.estimate, one.pvalue], [other.estimate, other.pvalue], rtol=1e-8, atol=1e-12)
