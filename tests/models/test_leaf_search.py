"""Forests and boosted trees taken apart: sums against the models, distances against every cell, order of rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand.models import adapt
from evenhand.models.distances import boundary_distance
from evenhand.models.ground import find_ground
from evenhand.models.leaf_boxes import LeafBoxes
from evenhand.models.leaf_search import nearest_leaves
from evenhand.models.leaf_space import _edges, leaf_space
from evenhand.models.leaves import WHOLE, additive
from evenhand.models.moves import Moves, length
from evenhand.models.search import search_boundary

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=400) > 0.3).astype(int)
COLUMNS = {f"x{j}": column for j, column in enumerate(X.T)}
MODELS = {
    "forest": RandomForestClassifier(20, random_state=0),
    "extra trees": ExtraTreesClassifier(20, min_samples_leaf=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=20, random_state=0),
}


def ground_of(model, columns=COLUMNS, threshold=None):
    return find_ground(adapt(model, columns, threshold=threshold), columns)


def space_of(ground, norm="l2"):
    return leaf_space(ground.surface, ground.E, ground.A, np.ones(len(ground.A)), ground.decision, norm)


@pytest.mark.parametrize("name", MODELS)
def test_the_sum_over_leaves_is_the_models_score_at_any_point(name):
    model = MODELS[name].fit(X, Y)
    ground = ground_of(model)
    trees = additive(ground.surface, X)
    assert trees is not None
    elsewhere = RNG.normal(size=(300, 4)) * 2
    for moving in ((), (1, 3), (0, 1, 2, 3)):
        boxes = LeafBoxes(trees.boxes.nodes, elsewhere, moving)
        total = boxes.total(np.arange(300), boxes.at, trees.worth)
        np.testing.assert_array_equal(trees.sign * (total - trees.level) > 1e-9 * WHOLE, model.predict(elsewhere) == 1)


def test_a_threshold_on_probabilities_and_a_regressor_are_sums_too():
    boosted = MODELS["histogram boosting"].fit(X, Y)
    assert additive(ground_of(boosted, threshold=0.3).surface, X) is not None
    assert additive(ground_of(RandomForestRegressor(5, random_state=0).fit(X, Y), threshold=0.5).surface, X) is not None


def test_models_that_are_no_sum_of_known_trees_are_left_to_the_search():
    several = HistGradientBoostingClassifier(max_iter=3).fit(X, np.arange(400) % 3)
    linear = LogisticRegression().fit(X, Y)
    for model in (several, linear):
        surface = ground_of(linear).surface
        assert additive(type(surface)(name="m", source=model, score=surface.score, decide=surface.decide,
                                      threshold=surface.threshold), X) is None  # fmt: skip


def every_cell(model, points, norm):
    """Return the exact distances of points with few features, by asking the model in every cell of its grid."""
    p = points.shape[1]
    nodes = additive(ground_of(model, dict(list(COLUMNS.items())[:p])).surface, X[:, :p]).boxes.nodes
    cuts = [np.unique(nodes.threshold[nodes.column == j]) for j in range(p)]
    low = [np.concatenate([[-np.inf], c]) for c in cuts]
    high = [np.concatenate([c, [np.inf]]) for c in cuts]
    inside = [
        np.where(np.isinf(a), b - 1, np.where(np.isinf(b), a + 1, (a + b) / 2)) for a, b in zip(low, high, strict=True)
    ]
    grid = np.stack(np.meshgrid(*inside, indexing="ij"), axis=-1).reshape(-1, p)
    decided = model.predict(grid)
    bottom = np.stack(np.meshgrid(*low, indexing="ij"), axis=-1).reshape(-1, p)
    top = np.stack(np.meshgrid(*high, indexing="ij"), axis=-1).reshape(-1, p)
    own = model.predict(points)
    far = [length(np.maximum(np.maximum(bottom - x, x - top), 0.0), norm) for x in points]
    return np.array([f[decided != mine].min() for f, mine in zip(far, own, strict=True)])


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@pytest.mark.parametrize("name", MODELS)
def test_distances_against_every_cell_of_a_small_model(name, norm):
    model = MODELS[name].set_params(max_depth=4).fit(X[:, :2], Y)
    columns = {"x0": X[:, 0], "x1": X[:, 1]}
    found = boundary_distance(adapt(model, columns), columns, Moves(norm=norm, scale="none"))
    exact = every_cell(model, X[:, :2], norm)
    assert np.all(found.distance >= exact - 1e-6)
    assert np.mean(found.distance <= exact + 1e-6) > 0.97
    assert found.distance.mean() < 1.02 * exact.mean()
    assert "exact along each column alone" in found.described["accuracy"]


@pytest.mark.parametrize("name", ["forest", "boosting"])
def test_distances_against_every_cell_where_three_columns_move(name):
    model = clone(MODELS[name]).set_params(max_depth=3, n_estimators=10).fit(X[:, :3], Y)
    columns = {n: COLUMNS[n] for n in ("x0", "x1", "x2")}
    found = boundary_distance(adapt(model, columns), columns, Moves(scale="none"))
    exact = every_cell(model, X[:, :3], "l2")
    assert np.all(found.distance >= exact - 1e-6)
    assert np.mean(found.distance <= exact + 1e-6) > 0.9
    assert found.distance.mean() < 1.02 * exact.mean()
    assert np.all(found.distance <= 3 * exact + 1e-6)


@pytest.mark.parametrize("name", ["forest", "histogram boosting"])
def test_no_longer_than_the_search_from_outside_and_confirmed_by_the_model(name):
    jobs = np.array(["a", "b", "c"])[RNG.integers(3, size=400)]
    columns = {**COLUMNS, "job": jobs}
    encoded = make_column_transformer((StandardScaler(), list(COLUMNS)), (OneHotEncoder(), ["job"]))
    import pandas as pd

    model = make_pipeline(encoded, MODELS[name]).fit(pd.DataFrame(columns), (Y + (jobs == "b") > 0.5).astype(int))
    ground = ground_of(model, columns)
    found = boundary_distance(adapt(model, columns), columns, Moves(scale="none"))
    outside = search_boundary(ground.decide, ground.margin, ground.X, Moves())
    reached = np.isfinite(outside.distance)
    assert np.isfinite(found.distance[reached]).all()
    assert found.distance[reached].mean() < outside.distance[reached].mean()
    assert np.mean(found.distance[reached] > outside.distance[reached] + 1e-6) < 0.03
    there = found.towards(np.flatnonzero(reached))
    assert np.all(adapt(model, columns).decide(there) != ground.decision[reached])
    moved = np.column_stack([there[n] - columns[n][reached] for n in COLUMNS])
    np.testing.assert_allclose(length(moved, "l2"), found.distance[reached], rtol=1e-9, atol=1e-12)


def test_neither_order_nor_repetition_of_rows_matters():
    model = MODELS["histogram boosting"].set_params(max_depth=None).fit(X, Y)
    order = RNG.permutation(400)
    plain, mixed = space_of(ground_of(model)), space_of(ground_of(model, {n: c[order] for n, c in COLUMNS.items()}))
    twice = space_of(ground_of(model, {n: np.repeat(c, 2) for n, c in COLUMNS.items()}))
    first = nearest_leaves(plain, X, np.arange(400), Moves())
    second = nearest_leaves(mixed, X[order], np.arange(400), Moves())
    third = nearest_leaves(twice, np.repeat(X, 2, axis=0), np.arange(800), Moves())
    for k in range(2):
        np.testing.assert_array_equal(first[k][order], second[k])
        np.testing.assert_array_equal(np.repeat(first[k], 2, axis=0), third[k])


def test_neighbours_bring_nearer_points_and_rows_alone_are_never_nearer():
    model = MODELS["forest"].set_params(max_depth=None).fit(X, Y)
    space = space_of(ground_of(model))
    whole = nearest_leaves(space, X, np.arange(400), Moves())[0]
    alone = np.array([nearest_leaves(space, X, np.array([row]), Moves())[0][0] for row in range(0, 400, 4)])
    assert np.all(whole[::4] <= alone)
    assert np.any(whole[::4] < alone)


@pytest.mark.parametrize("name", ["forest", "boosting"])
def test_many_columns_give_the_same_bytes_each_time_and_points_that_the_model_confirms(name):
    wide = np.random.default_rng(5).normal(size=(300, 10))
    y = (wide[:, 0] + wide[:, 1] * wide[:, 2] + wide[:, 3] > 0).astype(int)
    columns = {f"x{j}": column for j, column in enumerate(wide.T)}
    ground = ground_of(clone(MODELS[name]).fit(wide, y), columns)
    space = space_of(ground)
    found, point = nearest_leaves(space, wide, np.arange(300), Moves())
    noise = np.full(10**6, np.nan)  # what freed memory holds must not matter
    del noise
    np.testing.assert_array_equal(found, nearest_leaves(space, wide, np.arange(300), Moves())[0])
    assert np.isfinite(found).all()
    assert np.mean(ground.decide(point, np.arange(300)) != ground.decision) > 0.99  # the rest is at the level itself


def cells_at(model, points, value, cuts, norm):
    """Return the exact distances of points in two columns where a third one has a value, over every cell."""
    edges = [np.concatenate([[-np.inf], c, [np.inf]]) for c in cuts]
    low, high = (np.stack(np.meshgrid(*[e[s] for e in edges], indexing="ij"), axis=-1).reshape(-1, 2)
                 for s in (slice(None, -1), slice(1, None)))  # fmt: skip
    inside = np.where(np.isinf(low), high - 1, np.where(np.isinf(high), low + 1, (low + high) / 2))
    decided = model.predict(np.column_stack([inside, np.full(len(inside), value)]))
    own = model.predict(np.column_stack([points, np.full(len(points), value)]))
    far = [length(np.maximum(np.maximum(low - x, x - high), 0.0), norm) for x in points]
    return np.array([f[decided != mine].min(initial=np.inf) for f, mine in zip(far, own, strict=True)])


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@pytest.mark.parametrize("name", MODELS)
def test_distances_where_a_column_stays_against_every_cell_of_each_of_its_values(name, norm):
    stay = (np.arange(400) % 2).astype(float)
    model = clone(MODELS[name]).set_params(max_depth=3).fit(np.column_stack([X[:, :2], stay]), Y ^ (stay > 0))
    ground = ground_of(model, {"x0": X[:, 0], "x1": X[:, 1], "x2": stay})
    space = leaf_space(ground.surface, ground.E, ground.A[:2], np.ones(2), ground.decision, norm)
    found = nearest_leaves(space, X[:, :2], np.arange(400), Moves(norm=norm), True)[0]
    exact = np.empty(400)
    for value in (0.0, 1.0):
        mine = np.flatnonzero(stay == value)
        exact[mine] = cells_at(model, X[mine, :2], value, space.boxes.cuts, norm)
    assert np.all(found >= exact - 1e-6)
    assert np.mean(found <= exact + 1e-6) > 0.97


def test_sums_along_a_column_are_told_where_they_change_nearest_to_home():
    boxes = additive(ground_of(MODELS["forest"].set_params(max_depth=3).fit(X, Y)).surface, X, (0, 1, 2, 3)).boxes
    worth = np.rint(boxes.nodes.value * 2**40)
    rows = np.arange(40)
    home, at = boxes.at[rows], boxes.at[rows + 40]
    first, last = np.zeros_like(home), np.tile([cuts.size for cuts in boxes.cuts], (40, 1))
    here = boxes.total(rows, at, worth)
    for tile in boxes.tiles(rows, first, last):
        mine = tile.rows
        line, place, change = tile.along(np.arange(mine.size), at[mine], home[mine], first[mine], last[mine], worth)
        for row in range(mine.size):
            for k, cuts in enumerate(boxes.cuts):
                told = line == k * mine.size + row
                moved = np.tile(at[mine[row]], (cuts.size + 1, 1))
                moved[:, k] = np.arange(cuts.size + 1)
                sums = boxes.total(np.full(len(moved), mine[row]), moved, worth) - here[mine[row]]
                np.testing.assert_array_equal(change[told], sums[place[told]])
                own = home[mine[row], k]
                up = own + 1 + np.flatnonzero(np.diff(sums[own:]))
                down = np.flatnonzero(np.diff(sums[: own + 1]))
                assert {*up, *down} <= {*place[told]}
                assert at[mine[row], k] == own or own in place[told]


def test_a_number_that_no_tree_asks_for_does_not_move():
    model = RandomForestClassifier(10, max_depth=2, random_state=0).fit(np.column_stack([X[:, 0], 0 * X[:, 1]]), Y)
    columns = {"x0": X[:, 0], "x1": X[:, 1]}
    found = boundary_distance(adapt(model, columns), columns, Moves(scale="none"))
    rows = np.flatnonzero(np.isfinite(found.distance))
    np.testing.assert_array_equal(found.towards(rows)["x1"], X[rows, 1])


def test_trees_that_never_change_the_decision_are_infinitely_far():
    model = RandomForestRegressor(10, max_depth=2, random_state=0).fit(X, 0.4 * Y)
    assert np.isinf(boundary_distance(adapt(model, COLUMNS, threshold=0.5), COLUMNS, Moves()).distance).all()


def test_no_point_is_put_between_thresholds_that_single_precision_cannot_tell_apart():
    cuts = np.array([1.0, 1.0 + 1e-12, 2.0])
    low, high = _edges(cuts, 1.0, single=True)
    np.testing.assert_array_equal([low[1], high[1]], [np.inf, -np.inf])  # nothing is there
    for place in (0, 2, 3):
        for value in (low[place], high[place]):
            if np.isfinite(value):
                assert np.searchsorted(cuts, float(np.float32(value))) == place
