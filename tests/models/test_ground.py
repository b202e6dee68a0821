"""Distances of models on rows with text columns, against brute force over the whole pipeline."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from evenhand.errors import DataError, UsageError
from evenhand.models import adapt
from evenhand.models.distances import boundary_distance
from evenhand.models.ground import category_columns
from evenhand.models.moves import Moves, length

NUMBERS, TEXT = ["age", "hours", "gain"], ["job", "region"]


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "job": rng.choice(["craft", "farm", "sales"], n),
            "hours": rng.normal(40, 10, n),
            "region": rng.choice(["east", "west"], n),
            "gain": np.exp(rng.normal(size=n)),
        }
    )
    signal = 0.05 * (frame.age - 45) + 0.08 * (frame.hours - 40) - 1.0 * (frame.job == "farm") + 0.4 * frame.gain
    return frame, (signal + rng.normal(size=n) > 0.3).astype(int)


FRAME, Y = table()
COLUMNS = {name: FRAME[name].to_numpy() for name in FRAME}
X = FRAME[NUMBERS].to_numpy(dtype=float)
UNIT = X.std(axis=0)


def pipeline(last, numbers=None):
    encode = ColumnTransformer(
        [("n", numbers or StandardScaler(), NUMBERS), ("c", OneHotEncoder(handle_unknown="ignore"), TEXT)]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(encode, last).fit(FRAME, Y)


def measured(model, columns, *, threshold=None, **how):
    return boundary_distance(adapt(model, columns, threshold=threshold), columns, Moves(**how))


def changes(model, i, moves):
    """Ask the whole pipeline whether moves of the numbers (in standard deviations) change row i's decision."""
    frame = FRAME.iloc[[i] * len(moves)].reset_index(drop=True)
    frame[NUMBERS] = X[i] + moves * UNIT
    return model.predict(frame) != model.predict(FRAME.iloc[[i]])


def directions(norm, seed=1, many=3000):
    moves = np.random.default_rng(seed).normal(size=(many, len(NUMBERS))) ** 3
    corners = np.array(list(itertools.product([-1, 0, 1], repeat=len(NUMBERS)))) * 1.0
    moves = np.vstack([moves, corners[np.any(corners, axis=1)]])
    return moves / length(moves, norm)[:, None]


@pytest.mark.parametrize(("norm", "dual"), [("l2", 2), ("l1", np.inf), ("linf", 1)])
@pytest.mark.parametrize("last", [LogisticRegression(), LinearSVC()])
def test_linear_pipeline_is_exact_with_the_categories_as_they_are(last, norm, dual):
    model = pipeline(last)
    found = measured(model, COLUMNS, norm=norm)
    slope = model[-1].coef_[0][:3] / model[0].named_transformers_["n"].scale_ * UNIT
    margin = model.decision_function(FRAME)
    np.testing.assert_allclose(found.distance, np.abs(margin) / np.linalg.norm(slope, ord=dual), rtol=1e-7)
    assert found.method == "linear"
    assert found.described["moving_columns"] == NUMBERS
    assert found.described["frozen_columns"] == TEXT
    rays = directions(norm)
    for i in range(0, 400, 57):
        assert not changes(model, i, rays * found.distance[i] * (1 - 1e-6)).any()
        assert changes(model, i, rays * found.distance[i] * 1.05).any()


def test_threshold_on_a_probability_keeps_the_formula():
    model = pipeline(LogisticRegression())
    found = measured(model, COLUMNS, threshold=0.3)
    slope = model[-1].coef_[0][:3] / model[0].named_transformers_["n"].scale_ * UNIT
    margin = model.decision_function(FRAME) - np.log(0.3 / 0.7)
    np.testing.assert_allclose(found.distance, np.abs(margin) / np.linalg.norm(slope), rtol=1e-6)
    np.testing.assert_array_equal(found.decision, (model.predict_proba(FRAME)[:, 1] >= 0.3).astype(float))


@pytest.mark.parametrize("jumps", ["together", "each"])
@pytest.mark.parametrize("named", [["job"], ["region", "job"]])
def test_jumps_against_all_categories(jumps, named):
    model, delta = pipeline(LogisticRegression()), 0.3
    found = measured(model, COLUMNS, categorical=named, delta=delta, jumps=jumps)
    steep = np.linalg.norm(model[-1].coef_[0][:3] / model[0].named_transformers_["n"].scale_ * UNIT)
    margin = model.decision_function(FRAME)
    expected = np.abs(margin) / steep
    for values in itertools.product(*[sorted(set(FRAME[name])) for name in named]):
        other = model.decision_function(FRAME.assign(**dict(zip(named, values, strict=True))))
        changed = sum((FRAME[name] != value).to_numpy().astype(int) for name, value in zip(named, values, strict=True))
        price = delta * (np.minimum(changed, 1) if jumps == "together" else changed)
        left = np.where(margin >= 0, np.maximum(other, 0), np.maximum(-other, 0))
        expected = np.minimum(expected, price + left / steep)
    np.testing.assert_allclose(found.distance, expected, rtol=1e-6)
    assert found.described["jumping_columns"] == named
    assert found.described["frozen_columns"] == [name for name in TEXT if name not in named]


def test_network_against_constrained_optimisation():
    model = pipeline(MLPClassifier((8,), activation="tanh", max_iter=300, random_state=0))
    found = measured(model, COLUMNS)
    assert found.method == "search"
    (first, second), (b1, b2) = model[-1].coefs_, model[-1].intercepts_
    E = np.asarray(model[0].transform(FRAME))
    scale = UNIT / model[0].named_transformers_["n"].scale_
    rng = np.random.default_rng(2)
    ratio = []
    for i in range(3, 400, 20):

        def margin(move, i=i):
            row = E[i].copy()
            row[:3] += move * scale
            return float((np.tanh(row @ first + b1) @ second + b2)[0])

        best = np.inf
        for _ in range(4):
            start = rng.normal(size=3) * found.distance[i]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                done = optimize.minimize(
                    lambda v: v @ v, start, constraints=[{"type": "eq", "fun": margin}], options={"ftol": 1e-10}
                )
            if abs(margin(done.x)) < 1e-5:
                best = min(best, float(np.linalg.norm(done.x)))
        ratio.append(found.distance[i] / best)
    assert np.median(ratio) == pytest.approx(1, abs=1e-3)
    assert max(ratio) < 1.05


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_tree_is_exact_with_the_categories_as_they_are(norm):
    model = pipeline(DecisionTreeClassifier(max_leaf_nodes=15, random_state=0))
    found = measured(model, COLUMNS, norm=norm)
    assert found.method == "tree"
    rays = directions(norm)
    lengths = np.random.default_rng(3).random((len(rays), 1))
    for i in range(0, 400, 57):
        assert np.isfinite(found.distance[i])
        assert not changes(model, i, rays * lengths * found.distance[i] * (1 - 1e-5)).any()
    searched = measured(model, COLUMNS, norm=norm, method="search").distance
    assert np.all(searched >= found.distance - 1e-5)
    assert np.median(searched / found.distance) < 1.05


def test_search_agrees_with_the_formula_and_asks_the_encoder_a_few_times_only():
    model = pipeline(LogisticRegression())
    calls = []
    encoder = model[0].named_transformers_["c"]
    original = encoder.transform
    encoder.transform = lambda frame: (calls.append(len(frame)), original(frame))[1]
    searched = measured(model, COLUMNS, method="search")
    assert len(calls) < 15
    np.testing.assert_allclose(searched.distance, measured(model, COLUMNS).distance, rtol=1e-4)
    assert searched.described["excess_high"] < 1e-3


def test_forest_and_grid_search_are_taken_apart():
    forest = pipeline(RandomForestClassifier(5, min_samples_leaf=10, random_state=0))
    found = measured(forest, COLUMNS, starts=1, rounds=1)
    np.testing.assert_array_equal(found.decision, forest.predict(FRAME))
    assert found.method == "search"
    rays = directions("l2", many=500)
    assert not changes(forest, 11, rays * 1e-9).any()
    grid = GridSearchCV(pipeline(LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2).fit(FRAME, Y)
    alone = measured(pipeline(LogisticRegression()), COLUMNS)
    np.testing.assert_allclose(measured(grid, COLUMNS).distance, alone.distance, rtol=1e-9)


@pytest.mark.parametrize("step", [FunctionTransformer(np.log1p), PolynomialFeatures(2, include_bias=False)])
def test_steps_that_bend_the_numbers_are_searched_through_the_whole_pipeline(step):
    positive = {**COLUMNS, "hours": np.abs(COLUMNS["hours"])}
    model = make_pipeline(
        ColumnTransformer([("n", step, ["hours"]), ("c", OneHotEncoder(), ["job"])]), LogisticRegression(max_iter=5000)
    ).fit(pd.DataFrame(positive)[["hours", "job"]], positive["hours"] + 8 * (FRAME.job == "farm") > 42)
    columns = {name: positive[name][:80] for name in ("hours", "job")}
    found = measured(model, columns, scale="none")
    assert found.method == "search"
    # One number moves, so the nearest change of the decision on a fine grid is the answer.
    grid = np.linspace(0.0, 100.0, 20_001)
    for i in range(0, 80, 9):
        decided = model.predict(pd.DataFrame({"hours": grid, "job": columns["job"][i]}))
        other = grid[decided != found.decision[i]]
        assert found.distance[i] == pytest.approx(np.abs(other - columns["hours"][i]).min(), abs=0.006)


def test_people_out_of_reach_are_infinitely_far():
    by_job = make_pipeline(
        ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["job"])]),
        DecisionTreeClassifier(random_state=0),
    ).fit(FRAME[["age", "job"]], (FRAME.job == "farm") | ((FRAME.job == "sales") & (FRAME.age > 40)))
    columns = {name: COLUMNS[name] for name in ("age", "job")}
    for method in ("tree", "search"):
        found = measured(by_job, columns, scale="none", method=method)
        np.testing.assert_array_equal(np.isinf(found.distance), FRAME.job != "sales")
        mine = (FRAME.job == "sales").to_numpy()
        np.testing.assert_allclose(found.distance[mine], np.abs(FRAME.age[mine] - 40.5), atol=1e-5)
    flat = make_pipeline(
        ColumnTransformer([("n", "passthrough", ["age"]), ("c", OneHotEncoder(), ["job"])]), LogisticRegression()
    ).fit(FRAME[["age", "job"]], FRAME.job == "farm")
    flat[-1].coef_[0, 0] = 0.0
    assert np.isinf(measured(flat, columns).distance).all()
    np.testing.assert_allclose(measured(flat, columns, categorical=["job"], delta=2.0).distance, 2.0)


def test_only_text_cannot_move():
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(FRAME[TEXT], Y)
    columns = {name: COLUMNS[name] for name in TEXT}
    assert np.isinf(measured(model, columns).distance).all()
    assert np.isinf(measured(model, columns, method="search").distance).all()


def test_encoded_numbers_are_categories_and_missing_ones_are_refused():
    model = make_pipeline(
        ColumnTransformer([("n", StandardScaler(), ["hours"]), ("c", OneHotEncoder(), ["age"])]), LogisticRegression()
    ).fit(FRAME[["age", "hours"]], Y)
    columns = {name: COLUMNS[name] for name in ("age", "hours")}
    assert category_columns(model, columns) == ["age"]
    assert category_columns(model[-1], columns) == []
    assert measured(model, columns).described["moving_columns"] == ["hours"]
    holes = {**COLUMNS, "hours": np.where(np.arange(400) == 3, np.nan, COLUMNS["hours"])}
    with pytest.raises(DataError, match="`hours` has missing"):
        measured(pipeline(LogisticRegression()), holes)


def test_kernel_machine_keeps_its_own_space():
    model = pipeline(SVC(gamma=0.2))
    found = measured(model, COLUMNS)
    assert found.method == "kernel"
    assert found.described["frozen_columns"] == []
    machine, Z = model[-1], model[0].transform(FRAME)
    gram = np.exp(-0.2 * ((machine.support_vectors_[:, None] - machine.support_vectors_[None]) ** 2).sum(axis=2))
    a = machine.dual_coef_[0]
    np.testing.assert_allclose(found.distance, np.abs(machine.decision_function(Z)) / np.sqrt(a @ gram @ a), rtol=1e-9)


def test_requests_that_do_not_fit_are_refused():
    forest = pipeline(RandomForestClassifier(3, random_state=0))
    for method, match in (
        ("linear", "not linear in its numbers"),
        ("tree", "not a single"),
        ("kernel", "not a kernel"),
    ):
        with pytest.raises(UsageError, match=match):
            measured(forest, COLUMNS, method=method)
    with pytest.raises(UsageError, match="need a linear classifier"):
        measured(forest, COLUMNS, categorical=["job"])
    with pytest.raises(UsageError, match="`jumps` is `some`"):
        measured(pipeline(LogisticRegression()), COLUMNS, categorical=["job"], jumps="some")
    crossed = make_pipeline(
        ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(sparse_output=False), TEXT)]),
        ColumnTransformer([("n", "passthrough", [0]), ("c", PolynomialFeatures(2), [1, 2, 3, 4, 5])]),
        LogisticRegression(max_iter=1000),
    ).fit(FRAME[["age", *TEXT]], Y)
    columns = {name: COLUMNS[name] for name in ("age", *TEXT)}
    assert measured(crossed, columns).method == "linear"
    with pytest.raises(UsageError, match="do not act one by one"):
        measured(crossed, columns, categorical=TEXT)
