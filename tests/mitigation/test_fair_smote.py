"""Fair-SMOTE: balanced cells, children that their families allow, and situation testing against a plain flip."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from evenhand.errors import DataError, UsageError
from evenhand.kernels.shared.seeds import stream
from evenhand.mitigation.estimator import check_training, fit_learner, to_numbers
from evenhand.mitigation.fair_smote import FairSMOTE, balance, changes_with_group

RNG = np.random.default_rng(1)
N = 500
SEX = RNG.choice(["f", "m"], N, p=[0.3, 0.7])
FRAME = pd.DataFrame(
    {
        "skill": RNG.normal(size=N) + 0.7 * (SEX == "m"),
        "hours": RNG.integers(10, 60, N),
        "married": RNG.integers(0, 2, N),
        "own": RNG.random(N) < 0.4,
        "town": RNG.choice(["north", "south", "west"], N),
        "sex": SEX,
    }
)
Y = (FRAME["skill"] + 0.4 * (SEX == "m") + 0.5 * RNG.normal(size=N) > 0.3).to_numpy()
CELL = 2 * (SEX == "m") + Y


def balanced(X=FRAME, weight=None, crossover=0.8):
    return balance(check_training(X, Y, SEX, weight), 5, 0.8, crossover, np.random.default_rng(0))


def test_every_group_has_as_many_rows_of_each_label():
    rows = balanced()
    counts = np.bincount(2 * rows.group + rows.y)
    assert counts.tolist() == [np.bincount(CELL).max()] * 4
    assert rows.weight is None
    weight = RNG.random(N) + 0.2
    weighted = balanced(weight=weight)
    mass = np.bincount(2 * weighted.group + weighted.y, weights=weighted.weight)
    np.testing.assert_allclose(mass, np.bincount(CELL, weights=weight).max())
    np.testing.assert_array_equal(weighted.weight[:N], weight)
    np.testing.assert_allclose(weighted.weight[N:], weight.mean(), rtol=0.05)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_children_have_values_that_their_cell_allows(make):
    rows = balanced(make(dict(FRAME)) if make is pd.DataFrame else pl.from_dict(FRAME.to_dict("list")))
    assert isinstance(rows.X, make)
    made = rows.X if make is pd.DataFrame else pd.DataFrame(rows.X.to_dict(as_series=False))
    pd.testing.assert_frame_equal(made[:N].reset_index(drop=True), FRAME, check_dtype=False)
    assert [str(d) for d in made.dtypes] == [str(d) for d in made[:N].dtypes]
    cell = 2 * rows.group + rows.y
    for code in range(4):
        old, new = FRAME[code == CELL], made[N:][cell[N:] == code]
        for name in ("skill", "hours"):
            assert new[name].between(old[name].min(), old[name].max()).all()
        for name in ("married", "own", "town", "sex"):
            assert set(new[name]) <= set(old[name])
    assert (made["hours"] == made["hours"].round()).all()
    assert not made["skill"][N:].isin(FRAME["skill"]).all()


def test_columns_may_be_called_by_numbers():
    numbers = FRAME[["skill", "hours", "married"]]
    method, same = (
        FairSMOTE().fit(X, Y, sensitive_features=SEX) for X in (numbers, numbers.set_axis([0, 1, 2], axis="columns"))
    )
    np.testing.assert_array_equal(
        method.predict_proba(numbers), same.predict_proba(numbers.set_axis([0, 1, 2], axis="columns"))
    )


def test_without_crossover_children_are_their_parents():
    rows = balanced(crossover=0.0)
    known = set(FRAME.itertuples(index=False, name=None))
    assert all(row in known for row in rows.X.itertuples(index=False, name=None))


def test_a_child_is_its_parent_moved_along_two_of_its_neighbours():
    size = 40
    X = RNG.normal(size=(size, 2))
    y, group = np.arange(size) % 2, np.where(np.arange(size) < 12, "a", "b")
    rows = balance(check_training(X, y, group, None), 3, 0.8, 1.0, np.random.default_rng(0))
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    for child, label, code in zip(rows.X[size:], rows.y[size:], rows.group[size:], strict=True):
        inside = np.flatnonzero((y == label) & (group == "ab"[code]))
        possible = []
        for parent in inside:
            far = np.linalg.norm(scaled[inside] - scaled[parent], axis=1)
            near = inside[np.argsort(far)][1:4]
            possible += [X[parent] + 0.8 * (X[one] - X[two]) for one, two in permutations(near, 2)]
        kept = np.clip(possible, X[inside].min(axis=0), X[inside].max(axis=0))
        assert np.abs(kept - child).max(axis=1).min() < 1e-12


def brute_force(frame, column, weight):
    """Give every row the other value of the attribute and ask the same model again."""
    model = make_pipeline(to_numbers(frame), LogisticRegression(max_iter=1000))
    model.fit(frame, Y, logisticregression__sample_weight=weight)
    flipped = frame.assign(**{column: ["m" if value == "f" else "f" for value in frame[column]]})
    return model.predict(flipped) != model.predict(frame)


def test_situation_testing_finds_the_rows_that_a_plain_flip_finds():
    weight = np.where(Y, 4.0, 1.0)
    expected, weighted = brute_force(FRAME, "sex", np.ones(N)), brute_force(FRAME, "sex", weight)
    assert 0 < expected.sum() < N / 2
    assert (weighted != expected).any()
    # Without the attribute among the features the testing model gets it, with the same answer.
    for X in (FRAME, FRAME.drop(columns="sex")):
        np.testing.assert_array_equal(changes_with_group(check_training(X, Y, SEX, None)), expected)
        np.testing.assert_array_equal(changes_with_group(check_training(X, Y, SEX, weight)), weighted)


def test_rows_that_hang_on_the_group_are_not_learned_from():
    method = FairSMOTE(random_state=3).fit(FRAME, Y, sensitive_features=SEX)
    rows = balance(check_training(FRAME, Y, SEX, None), 5, 0.8, 0.8, stream(3, "fair_smote"))
    changed = changes_with_group(rows)
    assert method.synthetic_rows_ == 4 * np.bincount(CELL).max() - N
    assert method.removed_rows_ == changed.sum() > 0
    kept = fit_learner(None, rows.take(~changed))
    np.testing.assert_array_equal(method.predict_proba(FRAME), kept.predict_proba(FRAME))
    assert FairSMOTE(situation_testing=False).fit(FRAME, Y, sensitive_features=SEX).removed_rows_ == 0


def test_a_learner_without_weights_is_enough_when_none_are_given():
    learner = make_pipeline(to_numbers(FRAME), KNeighborsClassifier())
    assert FairSMOTE(learner).fit(FRAME, Y, sensitive_features=SEX).predict(FRAME).shape == (N,)
    with pytest.raises(UsageError, match="takes no sample weights"):
        FairSMOTE(learner).fit(FRAME, Y, sensitive_features=SEX, sample_weight=np.ones(N))


def test_one_row_of_a_kind_and_none():
    rows = np.flatnonzero((CELL != 1) | (np.cumsum(CELL == 1) == 1))
    method = FairSMOTE().fit(FRAME.iloc[rows], Y[rows], sensitive_features=SEX[rows])
    assert method.synthetic_rows_ == 4 * np.bincount(CELL).max() - len(rows)
    none = CELL != 1
    with pytest.raises(DataError, match="Group `f` has no rows with label `True`"):
        FairSMOTE().fit(FRAME[none], Y[none], sensitive_features=SEX[none])
    with pytest.raises(UsageError, match="`n_neighbors` of at least 1"):
        FairSMOTE(n_neighbors=0).fit(FRAME, Y, sensitive_features=SEX)
