"""What every mitigator promises: the shape of a scikit-learn classifier, on numbers and text, with weights."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone

from evenhand import mitigation
from evenhand.errors import DataError
from evenhand.mitigation.estimator import Mitigator
from evenhand.models.files import load_model

#: Settings that make a method quick enough for a test; they change nothing that is tested here.
QUICK: dict[str, dict[str, Any]] = {
    "ecd_fair": {"trials": 3},
    "minimax": {"rounds": 5},
    "exponentiated_gradient": {"max_iter": 5},
    "sensr": {"hidden": (10,), "steps": 200, "batch_size": 60, "learning_rate": 0.01},
}


def rows(size: int = 240, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """People with two numbers and a text, a group that shifts one of them, and labels as words."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], size)
    frame = pd.DataFrame(
        {
            "skill": rng.normal(size=size) + 0.8 * (group == "a"),
            "noise": rng.normal(size=size),
            "town": rng.choice(["north", "south"], size),
        }
    )
    y = np.where(frame["skill"] + 0.5 * rng.normal(size=size) > 0, "yes", "no")
    return frame, y, group


def make(word: str) -> Mitigator:
    """Return a quick version of a method."""
    made: Mitigator = getattr(mitigation, mitigation.METHODS[word])(**QUICK.get(word, {}))
    return made


def ready() -> list[str]:
    """Return the methods."""
    return list(mitigation.METHODS)


def deciding(method: Mitigator, group: np.ndarray) -> dict[str, Any]:
    """Return what `predict` needs beside the features."""
    return {"sensitive_features": group} if method.about.decides_with_group else {}


@pytest.mark.parametrize("word", ready())
def test_a_frame_with_text_is_learned_from_and_decided_about(word: str) -> None:
    frame, y, group = rows()
    method = make(word)
    fitted = method.fit(frame, y, sensitive_features=group)
    assert fitted is method
    decided = fitted.predict(frame, **deciding(method, group))
    assert set(decided) <= {"no", "yes"}
    assert np.mean(decided == y) > 0.6
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    if hasattr(fitted, "predict_proba"):
        probability = fitted.predict_proba(frame, **deciding(method, group))
        assert probability.shape == (len(frame), 2)
        np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)
        assert (probability >= 0).all()


@pytest.mark.parametrize("word", ready())
def test_the_same_seed_gives_the_same_decisions_and_inputs_stay_as_they_were(word: str) -> None:
    frame, y, group = rows()
    kept = frame.copy()
    first, second = (make(word).fit(frame, y, sensitive_features=group) for _ in range(2))
    more = deciding(first, group)
    np.testing.assert_array_equal(first.predict(frame, **more), second.predict(frame, **more))
    pd.testing.assert_frame_equal(frame, kept)


@pytest.mark.parametrize("word", ready())
def test_it_is_cloned_and_its_settings_can_be_read_and_set(word: str) -> None:
    method = make(word)
    copy = clone(method)
    assert repr(copy.get_params()) == repr(method.get_params())
    assert not hasattr(copy, "classes_")
    assert copy.set_params(**method.get_params()) is copy
    for settings in method.about.grid:
        make(word).set_params(**settings)


@pytest.mark.parametrize("word", ready())
def test_plain_numbers_are_enough(word: str) -> None:
    frame, y, group = rows()
    # Skill alone predicts the group: a method that removes what predicts it needs something else to learn from.
    merit = (y == "yes") + np.random.default_rng(1).normal(size=len(y))
    X = np.column_stack([frame[["skill", "noise"]].to_numpy(), merit])
    method = make(word).fit(X, y == "yes", sensitive_features=group)
    decided = method.predict(X, **deciding(method, group))
    assert np.mean(decided == (y == "yes")) > 0.6


@pytest.mark.parametrize("word", ready())
def test_a_weight_of_zero_is_a_row_that_is_not_there(word: str) -> None:
    frame, y, group = rows()
    weight = np.ones(len(y))
    strange = np.flatnonzero((y == "yes") & (group == "b"))[:5]
    weight[strange] = 0
    with_weights = make(word).fit(frame, y, sensitive_features=group, sample_weight=weight)
    decided = with_weights.predict(frame, **deciding(with_weights, group))
    assert np.mean(decided == y) > 0.6


@pytest.mark.parametrize("word", ready())
def test_bad_input_is_refused_in_a_sentence(word: str) -> None:
    frame, y, group = rows()
    with pytest.raises(DataError, match="single group `a`"):
        make(word).fit(frame, y, sensitive_features=np.full(len(y), "a"))
    with pytest.raises(DataError, match="exactly 2"):
        make(word).fit(frame, np.full(len(y), "yes"), sensitive_features=group)
    with pytest.raises(DataError, match="one group for each"):
        make(word).fit(frame, y, sensitive_features=group[:-1])
    with pytest.raises(DataError, match="missing values"):
        make(word).fit(frame, y, sensitive_features=np.where(group == "a", None, group))


@pytest.mark.parametrize("word", ready())
def test_it_is_saved_and_loaded_without_trusting_anything_by_hand(word: str, tmp_path: Path) -> None:
    frame, y, group = rows()
    method = make(word).fit(frame, y, sensitive_features=group)
    skops.io.dump(method, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert type(loaded) is type(method)
    more = deciding(method, group)
    np.testing.assert_array_equal(loaded.predict(frame, **more), method.predict(frame, **more))
    if hasattr(method, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(frame, **more), method.predict_proba(frame, **more))


@pytest.mark.parametrize("word", ready())
def test_the_table_knows_it(word: str) -> None:
    cls = getattr(import_module(f"evenhand.mitigation.{word}"), mitigation.METHODS[word])
    assert cls.about.stage in ("before", "in", "after")
    assert cls.about.needs
    assert cls.about.changes
    assert cls.about.cost
    assert cls.about.grid
