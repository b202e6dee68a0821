"""Thresholds per group against enumeration, a linear program over all thresholds, and fairlearn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from fairlearn.postprocessing import ThresholdOptimizer as FairlearnThresholds
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from evenhand.errors import DataError, UsageError
from evenhand.mitigation.estimator import probability_of
from evenhand.mitigation.threshold_optimizer import CONSTRAINTS, ThresholdOptimizer


def people(size: int, seed: int = 0, groups: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Groups whose numbers and labels differ."""
    rng = np.random.default_rng(seed)
    group = rng.integers(groups, size=size)
    x = rng.normal(size=size) + 0.7 * group
    noise = np.array([0.4, 1.2, 0.8])[group]
    y = (x + noise * rng.normal(size=size) > 0.5).astype(int)
    return x[:, None], y, group


def rates(accepts: np.ndarray, y: np.ndarray, group: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rates of each group by their definitions."""
    of = [group == g for g in np.unique(group)]
    return {
        "selection_rate": np.array([accepts[m].mean() for m in of]),
        "tpr": np.array([accepts[m & (y == 1)].mean() for m in of]),
        "fpr": np.array([accepts[m & (y == 0)].mean() for m in of]),
    }


def by_program(score: np.ndarray, y: np.ndarray, group: np.ndarray, constraint: str, objective: str) -> float:
    """Return the best objective of all mixtures of all thresholds that satisfy a constraint."""
    gain, equal = [], {r: [] for r in CONSTRAINTS[constraint]}
    codes = np.unique(group)
    starts, size = [], 0
    for g in codes:
        cuts = np.r_[np.inf, np.unique(score[group == g])]
        starts.append((size, size + cuts.size))
        size += cuts.size
        for cut in cuts:
            accepts = (score >= cut).astype(float)
            mine = group == g
            if objective == "accuracy":
                gain.append((accepts == y)[mine].sum() / len(y))
            else:
                ones, zeros = mine & (y == 1), mine & (y == 0)
                gain.append(accepts[ones].sum() / y.sum() / 2 + (1 - accepts[zeros]).sum() / (1 - y).sum() / 2)
            for r, values in equal.items():
                values.append(rates(accepts, y, group)[r][list(codes).index(g)])
    rows, right = [], []
    for start, stop in starts:
        rows.append(np.zeros(size))
        rows[-1][start:stop] = 1
        right.append(1)
    for values in equal.values():
        for start, stop in starts[1:]:
            rows.append(np.zeros(size))
            first = slice(*starts[0])
            rows[-1][first] = np.array(values)[first]
            rows[-1][start:stop] = -np.array(values)[start:stop]
            right.append(0)
    return -linprog(-np.array(gain), A_eq=np.array(rows), b_eq=right).fun


def reached(accepts: np.ndarray, y: np.ndarray, objective: str) -> float:
    """Return the expected objective of chances of acceptance."""
    if objective == "accuracy":
        return float(np.where(y == 1, accepts, 1 - accepts).mean())
    return float(accepts[y == 1].mean() + 1 - accepts[y == 0].mean()) / 2


@pytest.mark.parametrize("objective", ["accuracy", "balanced_accuracy"])
@pytest.mark.parametrize("constraint", list(CONSTRAINTS))
@pytest.mark.parametrize("groups", [2, 3])
def test_no_mixture_of_thresholds_is_better(constraint: str, objective: str, groups: int) -> None:
    X, y, group = people(60, seed=groups, groups=groups)
    method = ThresholdOptimizer(constraint=constraint, objective=objective, tolerance=0, held_out=0)
    method.fit(X, y, sensitive_features=group)
    accepts = method.predict_proba(X, sensitive_features=group)[:, 1]
    for rate in CONSTRAINTS[constraint]:
        assert np.ptp(rates(accepts, y, group)[rate]) < 1e-9
    best = by_program(probability_of(method.learner_, X), y, group, constraint, objective)
    assert reached(accepts, y, objective) == pytest.approx(best, abs=1e-9)
    assert method.objective_ == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("constraint", ["demographic_parity", "tpr_parity", "fpr_parity"])
def test_one_threshold_per_group_is_as_good_as_any_enumerated_but_for_the_tolerance(constraint: str) -> None:
    X, y, group = people(80, seed=5)
    method = ThresholdOptimizer(constraint=constraint, tolerance=0.04, held_out=0)
    method.fit(X, y, sensitive_features=group)
    assert not method.randomised_
    score = probability_of(method.learner_, X)
    (rate,) = CONSTRAINTS[constraint]
    best = 0.0
    for cuts in itertools.product(*(np.r_[np.inf, score[group == g]] for g in (0, 1))):
        accepts = (score >= np.array(cuts)[group]).astype(float)
        if np.ptp(rates(accepts, y, group)[rate]) <= 0.04:
            best = max(best, reached(accepts, y, "accuracy"))
    decided = method.predict(X, sensitive_features=group)
    assert np.ptp(rates(decided, y, group)[rate]) <= 0.04
    assert best - 0.04 <= np.mean(decided == y) <= best


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("demographic_parity", "demographic_parity"),
        ("equalized_odds", "equalized_odds"),
        ("tpr_parity", "true_positive_rate_parity"),
        ("fpr_parity", "false_positive_rate_parity"),
    ],
)
def test_fairlearn_reaches_the_same_accuracy(ours: str, theirs: str) -> None:
    X, y, group = people(3000, seed=1)
    learner = LogisticRegression().fit(X, y)
    peer = FairlearnThresholds(
        estimator=learner, constraints=theirs, objective="accuracy_score", prefit=True, predict_method="predict_proba"
    ).fit(X, y, sensitive_features=group)
    their_chance = peer._pmf_predict(X, sensitive_features=group)[:, 1]
    method = ThresholdOptimizer(LogisticRegression(), constraint=ours, tolerance=0, held_out=0)
    accepts = method.fit(X, y, sensitive_features=group).predict_proba(X, sensitive_features=group)[:, 1]
    mine, fairlearns = reached(accepts, y, "accuracy"), reached(their_chance, y, "accuracy")
    assert mine == pytest.approx(fairlearns, abs=0.002)
    assert mine >= fairlearns - 1e-9  # fairlearn looks at a grid of a thousand places, ours at all


def test_drawn_decisions_have_the_chances_that_are_stated() -> None:
    X, y, group = people(400, seed=2)
    method = ThresholdOptimizer(tolerance=0).fit(X, y, sensitive_features=group)
    assert method.randomised_
    many = np.tile(X, (50, 1))
    of = np.tile(group, 50)
    decided = method.predict(many, sensitive_features=of)
    chance = method.predict_proba(many, sensitive_features=of)[:, 1]
    drawn = (chance > 0.01) & (chance < 0.99)
    assert drawn.any()
    assert decided[drawn].mean() == pytest.approx(chance[drawn].mean(), abs=4 / np.sqrt(drawn.sum()))
    np.testing.assert_array_equal(decided[chance == 1], 1)


def test_a_forest_needs_rows_it_has_not_seen_for_equal_false_positive_rates() -> None:
    X, y, group = people(6000, seed=3)
    new = people(6000, seed=4)
    gaps = {}
    for held_out in (0.0, 0.3):
        method = ThresholdOptimizer(
            RandomForestClassifier(30, random_state=0), constraint="fpr_parity", held_out=held_out
        ).fit(X, y, sensitive_features=group)
        decided = method.predict(new[0], sensitive_features=new[2])
        gaps[held_out] = np.ptp(rates(decided, new[1], new[2])["fpr"])
    assert gaps[0.3] < 0.1 < 0.15 < gaps[0.0]


def test_the_group_is_read_from_its_column() -> None:
    X, y, group = people(300, seed=6)
    frame = pd.DataFrame({"x": X[:, 0], "sex": np.where(group == 1, "M", "F")})
    sex = frame["sex"]
    blind = ThresholdOptimizer(group_column="sex").fit(frame, y, sensitive_features=sex)
    np.testing.assert_array_equal(blind.predict(frame), blind.predict(frame, sensitive_features=sex))
    assert list(blind.learner_.feature_names_in_) == ["x"]
    seeing = ThresholdOptimizer(group_column="sex", learner_sees_group=True).fit(frame, y, sensitive_features=sex)
    assert list(seeing.learner_.feature_names_in_) == ["x", "sex"]
    array = np.column_stack([X, group])
    by_place = ThresholdOptimizer(group_column=1).fit(array, y, sensitive_features=array[:, 1])
    np.testing.assert_array_equal(by_place.predict(array), by_place.predict(array, sensitive_features=array[:, 1]))


def test_it_is_saved_and_loaded(tmp_path: Any) -> None:
    X, y, group = people(300, seed=7)
    method = ThresholdOptimizer().fit(X, y, sensitive_features=group)
    skops.io.dump(method, tmp_path / "model.skops")
    strange = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert strange == ["evenhand.mitigation.threshold_optimizer.ThresholdOptimizer"]
    loaded = skops.io.load(tmp_path / "model.skops", trusted=strange)
    np.testing.assert_array_equal(
        loaded.predict(X, sensitive_features=group), method.predict(X, sensitive_features=group)
    )


def test_what_cannot_be_done_is_said() -> None:
    X, y, group = people(200, seed=8)
    fitted = ThresholdOptimizer().fit(X, y, sensitive_features=group)
    with pytest.raises(DataError, match="decides with the group"):
        fitted.predict(X)
    with pytest.raises(DataError, match="Group `7` was not among"):
        fitted.predict(X, sensitive_features=np.full(200, 7))
    with pytest.raises(UsageError, match="Did you mean `equalized_odds`"):
        ThresholdOptimizer(constraint="equalised_odds").fit(X, y, sensitive_features=group)
    with pytest.raises(UsageError, match="at least 0 and below 1"):
        ThresholdOptimizer(held_out=1).fit(X, y, sensitive_features=group)
    with pytest.raises(DataError, match="Group `1` has no row of class 1"):
        ThresholdOptimizer().fit(X, np.where(group == 1, 0, y), sensitive_features=group)
    with pytest.raises(DataError, match="does not hold the labels"):
        ThresholdOptimizer(group_column=0).fit(X, y, sensitive_features=group)
    with pytest.raises(DataError, match="must be a column's position"):
        ThresholdOptimizer(group_column="sex").fit(X, y, sensitive_features=group)
