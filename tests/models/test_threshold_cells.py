"""A model of trees that is asked about one row of each cell gives the answers it gives about every row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression

from evenhand.models.leaves import nodes_of
from evenhand.models.threshold_cells import asked_by_cell

MODELS = {
    "forest": RandomForestClassifier(20, random_state=0),
    "extra": ExtraTreesClassifier(20, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "histogram": HistGradientBoostingClassifier(max_iter=20, random_state=0),
}


def fitted(name: str, inputs: int = 6) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, inputs))
    X[:, 1] = (X[:, 1] > 0).astype(float)
    return MODELS[name].fit(X, X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=600) > 0), X


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("inputs", [6, 90])  # the codes of ninety columns need several words
def test_answers_are_the_model_s_own_to_the_last_bit(name: str, inputs: int) -> None:
    model, X = fitted(name, inputs)
    asked: list[int] = []

    def ask(X: np.ndarray) -> np.ndarray:
        asked.append(len(X))
        return np.asarray(model.predict_proba(X))

    nodes = nodes_of(model)
    assert nodes is not None
    # Rows with values at the thresholds themselves, and one step of double precision beside them.
    edge = X[:300].copy()
    for j in range(inputs):
        cuts = nodes.threshold[nodes.column == j]
        if cuts.size:
            edge[:100, j] = np.resize(cuts, 100)
            edge[100:200, j] = np.nextafter(np.resize(cuts, 100), np.inf)
            edge[200:, j] = np.nextafter(np.resize(cuts, 100), -np.inf)
    # Lines of places, as a search asks about them.
    lines = (X[:50, None, :] + np.linspace(0, 0.002, 17)[None, :, None]).reshape(-1, inputs)
    for rows in (X, edge, lines):
        np.testing.assert_array_equal(asked_by_cell(ask, model)(rows), model.predict_proba(rows))
    if inputs == 6:
        assert asked[2] < len(lines) / 2


def test_missing_values_are_asked_about_as_they_are() -> None:
    model, X = fitted("histogram")
    X[::3, 0] = np.nan
    np.testing.assert_array_equal(asked_by_cell(model.predict_proba, model)(X), model.predict_proba(X))


def test_other_models_are_asked_about_every_row() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    ask = model.predict_proba
    assert asked_by_cell(ask, model) is ask
