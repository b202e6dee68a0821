"""ECD-Fair against an enumerated space and the tail audit, resumed, on many learners, and refusing."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.kernels.shared.seeds import stream
from evenhand.mitigation.counterfactual_rows import CounterfactualRows, recorded_like
from evenhand.mitigation.ecd_fair import ECDFair
from evenhand.mitigation.estimator import check_training
from evenhand.mitigation.held_out import held_out

SPACE = {"C": [0.001, 0.003, 0.01, 0.1, 1.0, 30.0], "class_weight": [None, "balanced"], "fit_intercept": [True, False]}


def people(size: int = 1500, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One sex gets better labels; its column is the last."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=size)
    X = np.column_stack([rng.normal(size=(size, 2)), sex])
    y = (X[:, 0] + 0.4 * X[:, 1] + 0.6 * sex + 0.7 * rng.normal(size=size) > 0.2).astype(int)
    return X, y, sex


def by_hand(learner: Any, X: np.ndarray, y: np.ndarray, sex: np.ndarray, horizon: float) -> tuple[float, float]:
    """Return accuracy and absolute ECD with plain numpy: a Hazen quantile of the changes of each group."""
    flipped = X.copy()
    flipped[:, -1] = 1 - flipped[:, -1]
    change = learner.predict_proba(flipped)[:, 1] - learner.predict_proba(X)[:, 1]
    levels = [np.quantile(change[sex == s], 1 - 1 / horizon, method="hazen") for s in (0, 1)]
    return float(np.mean(learner.predict(X) == y)), abs(float(levels[0] - levels[1]))


@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.05])
def test_it_finds_the_best_of_an_enumerated_space(tolerance: float) -> None:
    X, y, sex = people()
    learner = LogisticRegression()
    method = ECDFair(learner, space=SPACE, attribute=2, trials=60, tolerance=tolerance)
    method.fit(X, y, sensitive_features=sex)
    kept = held_out(check_training(X, y, sex, None), 0.3, stream(0, "ecd_fair/split"))
    measured = {}
    for values in itertools.product(*SPACE.values()):
        setting = dict(zip(SPACE, values, strict=True))
        fitted = clone(learner).set_params(**setting).fit(X[~kept], y[~kept])
        measured[values] = by_hand(fitted, X[kept], y[kept], sex[kept], method.horizon_)
    assert len(method.trials_) == len(measured) == 24  # nothing is tried twice, and the search ends
    default = measured[1.0, None, True]
    assert (method.trials_[0]["accuracy"], method.trials_[0]["ecd"]) == pytest.approx(default)
    best = min(e for a, e in measured.values() if a >= default[0] - tolerance - 1e-12)
    chosen = {"C": 1.0, "class_weight": None, "fit_intercept": True} | method.settings_
    assert measured[tuple(chosen.values())][1] == pytest.approx(best)
    assert best < default[1]
    assert chosen["C"] == method.decides_as_.C


def test_evolution_finds_the_best_of_a_large_space_in_fewer_trials_than_it_has_settings() -> None:
    X, y, sex = people(800, seed=1)
    space = {
        "C": np.geomspace(1e-4, 1, 25).tolist(),
        "class_weight": [None, "balanced"],
        "fit_intercept": [True, False],
    }
    short = ECDFair(LogisticRegression(), space=space, trials=25).fit(X, y, sensitive_features=sex)
    whole = ECDFair(LogisticRegression(), space=space, trials=200).fit(X, y, sensitive_features=sex)
    assert len(whole.trials_) == 100  # the default is the last C of the list
    first, best = whole.trials_[0]["ecd"], ecd_of(whole)
    assert best <= ecd_of(short) <= best + 0.3 * (first - best)


def ecd_of(method: ECDFair) -> float:
    """Return the chosen trial's ECD."""
    return float(next(t["ecd"] for t in method.trials_ if t["settings"] == method.settings_))


def test_steps_before_the_last_are_fitted_once_unless_they_are_searched() -> None:
    X, y, sex = people(400, seed=4)
    learner = make_pipeline(StandardScaler(), LogisticRegression())
    chosen = {"C": [0.01, 0.1, 1.0]}
    apart = ECDFair(learner, space=chosen, trials=3).fit(X, y, sensitive_features=sex)
    searched = chosen | {"standardscaler__with_mean": [True]}
    whole = ECDFair(learner, space=searched, trials=3).fit(X, y, sensitive_features=sex)
    single = ECDFair(Pipeline([("model", LogisticRegression())]), space=chosen, trials=3)
    single.fit(X, y, sensitive_features=sex)
    measured = [{t["settings"].get("logisticregression__C", 1.0): t["ecd"] for t in m.trials_} for m in (apart, whole)]
    assert measured[0] == pytest.approx(measured[1])
    assert len(measured[0]) == 3
    assert apart.settings_["logisticregression__C"] == apart.decides_as_[-1].C
    assert {t["settings"].get("model__C", 1.0) for t in single.trials_} == {0.01, 0.1, 1.0}


def test_its_ecd_is_the_tail_audits() -> None:
    X, y, sex = people(3000, seed=2)
    model = LogisticRegression().fit(X, y)
    for favourable in ("high", "low"):
        rows = CounterfactualRows(check_training(X, y, sex, None), [2], horizon=100, favourable=favourable)
        data = eh.AuditData.from_arrays(
            outcome=y, groups={"sex": sex}, features={"a": X[:, 0], "b": X[:, 1], "sex": X[:, 2]}
        )
        found = eh.audit_tail(data, model=model, attribute="sex", horizon=100, favourable=favourable, rng=0)
        assert abs(found[0].estimate) == pytest.approx(rows.largest_ecd(model), rel=1e-9)
    beyond = CounterfactualRows(check_training(X, y, sex, None), [2], horizon=100_000)
    far = eh.audit_tail(data, model=model, attribute="sex", horizon=100_000, rng=0)
    assert abs(far[0].estimate) == pytest.approx(beyond.largest_ecd(model), abs=1e-3)


def test_a_stopped_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    X, y, sex = people(600)
    settings: dict[str, Any] = {"attribute": 2, "random_state": 5}
    whole = ECDFair(trials=9, **settings).fit(X, y, sensitive_features=sex)
    place = tmp_path / "search.json"
    ECDFair(trials=4, checkpoint=place, **settings).fit(X, y, sensitive_features=sex)
    kept = json.loads(place.read_text())
    kept["trials"][2]["accuracy"] = 0.123  # shows that it is not measured again
    place.write_text(json.dumps(kept))
    resumed = ECDFair(trials=9, checkpoint=place, **settings).fit(X, y, sensitive_features=sex)
    assert resumed.trials_[2]["accuracy"] == 0.123
    kept["trials"][2]["accuracy"] = whole.trials_[2]["accuracy"]
    place.write_text(json.dumps(kept))
    resumed = ECDFair(trials=9, checkpoint=place, **settings).fit(X, y, sensitive_features=sex)
    assert resumed.trials_ == whole.trials_
    assert json.loads(place.read_text())["trials"] == whole.trials_
    with pytest.raises(UsageError, match=r"another search: labels, rows differ"):
        ECDFair(trials=9, checkpoint=place, **settings).fit(X[:500], y[:500], sensitive_features=sex[:500])
    place.write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        ECDFair(checkpoint=place, **settings).fit(X, y, sensitive_features=sex)


def test_time_ends_a_search_after_the_learner_as_given() -> None:
    X, y, sex = people(300)
    method = ECDFair(seconds=0, attribute=2).fit(X, y, sensitive_features=sex)
    assert [t["settings"] for t in method.trials_] == [{}]


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(20),
        HistGradientBoostingClassifier(max_iter=20),
        MLPClassifier((8,), max_iter=20),
        CalibratedClassifierCV(SVC(), ensemble=False, cv=3),
        make_pipeline(StandardScaler(), CalibratedClassifierCV(LinearSVC(), ensemble=False, cv=3)),
    ],
    ids=["forest", "boosting", "network", "svm", "linear svm in a pipeline"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_common_learners_have_a_space(learner: Any) -> None:
    X, y, sex = people(300)
    method = ECDFair(learner, trials=4).fit(X, y, sensitive_features=sex)
    assert [t["problem"] for t in method.trials_] == [""] * 4
    assert all(0 <= t["ecd"] <= 1 for t in method.trials_)
    assert np.mean(method.predict(X) == y) > 0.6
    again = ECDFair(learner, trials=4).fit(X, y, sensitive_features=sex)
    assert again.trials_ == method.trials_  # also for learners that draw and were given no seed


def test_a_setting_that_the_learner_refuses_is_noted_and_passed_over() -> None:
    X, y, sex = people(300)
    method = ECDFair(LogisticRegression(), space={"C": [-1.0, 0.5]}, trials=5).fit(X, y, sensitive_features=sex)
    problems = {t["settings"].get("C"): t["problem"] for t in method.trials_}
    assert "'C' parameter" in problems[-1.0]
    assert problems[0.5] == ""
    assert method.settings_.get("C") != -1.0


def test_frames_are_recorded_as_the_other_group() -> None:
    sex = pd.Series(pd.Categorical(["F", "M", "M"]), index=[7, 7, 9])
    frame = pd.DataFrame({"x": [1, 2, 3], "sex": sex}, index=[7, 7, 9])
    changed = recorded_like(frame, ["sex"], frame, 1)
    assert changed["sex"].tolist() == ["M", "M", "M"]
    assert changed["sex"].dtype == frame["sex"].dtype
    assert changed["x"].tolist() == [1, 2, 3]
    assert frame["sex"].tolist() == ["F", "M", "M"]
    other = pl.DataFrame({"x": [1, 2], "sex": ["F", "M"]})
    assert recorded_like(other, ["sex"], other, 0)["sex"].to_list() == ["F", "F"]


def test_three_groups_are_compared_pair_by_pair() -> None:
    rng = np.random.default_rng(3)
    race = rng.integers(3, size=900)
    X = np.column_stack([rng.normal(size=900), race])
    y = (X[:, 0] + 0.5 * race + rng.normal(size=900) > 0.5).astype(int)
    model = LogisticRegression().fit(X, y)
    rows = CounterfactualRows(check_training(X, y, race, None), [1], horizon=20)
    expected = []
    for a, b in itertools.combinations(range(3), 2):
        levels = []
        for own, other in ((a, b), (b, a)):
            mine, changed = X[race == own], X[race == own].copy()
            changed[:, 1] = other
            change = model.predict_proba(changed)[:, 1] - model.predict_proba(mine)[:, 1]
            levels.append(np.quantile(change, 0.95, method="hazen"))
        expected.append(abs(levels[0] - levels[1]))
    assert rows.largest_ecd(model) == pytest.approx(max(expected))


def test_without_the_group_among_the_features_the_learner_stays_and_that_is_said() -> None:
    X, y, sex = people(300)
    method = ECDFair().fit(X[:, :2], y, sensitive_features=sex)
    assert "No column of `X` records the group" in method.reason_
    assert (method.trials_, method.settings_) == ([], {})
    with pytest.raises(DataError, match="the group must be a feature"):
        ECDFair(attribute=2).fit(X[:, :2], y, sensitive_features=sex)
    with pytest.raises(DataError, match="one to one"):
        ECDFair(attribute=0).fit(X, y, sensitive_features=sex)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trials": 0}, "at least 1"),
        ({"validation": 1.0}, "between 0 and 1"),
        ({"horizon": 1}, "more than 1"),
        ({"favourable": "up"}, "`high` and `low`"),
        ({"estimator": GaussianNB()}, "No search space is known for the learner GaussianNB"),
        ({"space": {"depth": [1]}}, "`depth`, which LogisticRegression does not have"),
        ({"space": {"C": 3}}, "a list of values"),
    ],
)
def test_wrong_settings_are_refused_in_a_sentence(settings: dict[str, Any], message: str) -> None:
    X, y, sex = people(60)
    with pytest.raises(UsageError, match=message):
        ECDFair(**settings).fit(X, y, sensitive_features=sex)
