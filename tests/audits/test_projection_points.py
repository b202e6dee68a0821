"""Where the people who would have to change would go: on the boundary, and as far as the audit says."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from evenhand.audits.projection import audit_projection
from evenhand.audits.projection.boundary import Distances
from evenhand.audits.projection.points import FEWEST, feature_changes
from evenhand.intake.data import AuditData
from evenhand.models import adapt
from evenhand.models.distances import boundary_distance
from evenhand.models.moves import NORMS, Moves
from evenhand.results import AuditResult

N = 400


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    group = rng.choice(["a", "b"], N, p=[0.7, 0.3])
    X = rng.normal(size=(N, 4)) * [1.0, 5.0, 1.0, 1.0] + 0.8 * (group == "a")[:, None]
    X[:, 2:] = rng.integers(0, 3, (N, 2))
    y = (X @ [1.0, -0.1, 0.5, 0.7] + rng.normal(size=N) > 1.2).astype(int)
    data = AuditData.from_arrays(outcome=y, groups={"g": group}, features={f"x{j}": X[:, j] for j in range(4)})
    return X, y, data


def moved(X, points):
    before, after = X[list(points.record)], X[list(points.record)].copy()
    for name, values in points.after.items():
        after[:, int(name[1])] = values
    return before, after


@pytest.mark.parametrize("norm", NORMS)
def test_linear_moves_end_on_the_boundary_and_cost_what_the_audit_says(people, norm):
    X, y, data = people
    model = LogisticRegression().fit(X, y)
    found = audit_projection(data, model=model, distances=Distances(norm=norm), rows=True, points=True)
    evidence = found.evidence[0]
    before, after = moved(X, evidence.points)
    assert len(before) == evidence.changes.people > 5
    assert np.abs(model.decision_function(after)).max() < 1e-9
    cost = np.linalg.norm((after - before) / X.std(axis=0), ord=NORMS[norm], axis=1) @ evidence.rows.share
    assert cost == pytest.approx(evidence.statistic, rel=1e-8)
    changing = {"l2": 4, "l1": 1, "linf": 4}[norm]  # the cheapest way in l1 is one feature alone
    assert len(evidence.points.after) == changing


@pytest.mark.parametrize("jumps", ["together", "each"])
@pytest.mark.parametrize("norm", NORMS)
def test_jumps_and_moves_cost_the_distance(people, norm, jumps):
    X, y, _ = people
    model = LogisticRegression().fit(X, y)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    how = Moves(norm=norm, categorical=("x2", "x3"), jumps=jumps, delta=0.3)
    found = boundary_distance(adapt(model, columns), columns, how)
    after = np.column_stack([*found.towards(np.arange(N)).values()])
    changed = after[:, 2:] != X[:, 2:]
    jumped = changed.any(axis=1) if jumps == "together" else changed.sum(axis=1)
    glide = np.linalg.norm((after - X)[:, :2] / X[:, :2].std(axis=0), ord=NORMS[norm], axis=1)
    assert np.allclose(0.3 * jumped + glide, found.distance, atol=1e-9)
    assert jumped.any()
    assert not jumped.all()
    side = np.where(found.decision == 1, 1.0, -1.0)
    assert (side * model.decision_function(after)).max() < 1e-9
    if jumps == "together":  # a combination that somebody has
        assert set(map(tuple, after[:, 2:])) <= set(map(tuple, X[:, 2:]))


TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
BOOSTED = GradientBoostingClassifier(n_estimators=10, random_state=0)


@pytest.mark.parametrize("model", [TREE, BOOSTED])
def test_moves_of_trees_and_searches_change_the_decision(people, model):
    X, y, data = people
    model = model.fit(X, y)
    found = audit_projection(data, model=model, criterion="statistical_parity", rows=True, points=True)
    evidence = found.evidence[0]
    before, after = moved(X, evidence.points)
    assert len(before) > 3
    assert np.all(model.predict(after) != model.predict(before))
    far = np.linalg.norm((after - before) / X.std(axis=0), axis=1)
    assert far == pytest.approx(evidence.rows.distance, abs=1e-6)


def test_rows_stay_untold_by_default_and_typical_changes_are_told(people):
    X, y, data = people
    model = LogisticRegression().fit(X, y)
    evidence = audit_projection(data, model=model).evidence[0]
    assert evidence.points is None
    full = audit_projection(data, model=model, points=True).evidence[0].points
    now = model.predict(X[list(full.record)])
    for line in evidence.features:
        steps = np.subtract(full.after[line.feature], full.before[line.feature])[now == line.from_]
        assert line.people == steps.size
        assert line.median_change == pytest.approx(np.median(steps) if steps.size >= FEWEST else math.nan, nan_ok=True)


def test_the_middle_change_of_a_few_people_is_not_said():
    """Fewer than five people: their middle change would be somebody's own."""
    sample = SimpleNamespace(count=np.ones(6, dtype=int), decision=np.array([0, 0, 0, 0, 0, 1]))
    before, after = np.zeros(6), np.arange(1.0, 7.0)
    five, one = feature_changes({"x": (before, after)}, sample, np.arange(6))
    assert (five.people, five.median_change) == (5, 3.0)
    assert one.people == 1
    assert math.isnan(one.median_change)


def test_distances_without_a_point_say_nothing_of_features(people):
    X, y, data = people
    kernel = audit_projection(data, model=SVC(gamma=0.1).fit(X, y), points=True).evidence[0]
    assert kernel.features is None
    assert kernel.points is None


def test_points_are_written_and_read_back(people):
    X, y, data = people
    found = audit_projection(data, model=LogisticRegression().fit(X, y), points=True)
    again = AuditResult.from_dict(found.to_dict())
    assert again.evidence[0].points.after == found.evidence[0].points.after
    assert again.evidence[0].features[0].feature == "x0"
