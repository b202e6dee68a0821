"""One meaning of 1: whatever words outcomes and classes are, every audit's numbers are those on 0 and 1."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import evenhand as eh

N = 240
# The word that intake counts as 1 comes first; five of them sort before the other word and five behind it.
PAIRS = [
    ("approved", "denied"), ("accepted", "rejected"), ("admitted", "denied"), ("hired", "rejected"),
    ("approve", "reject"), (">50K.", "<=50K."), ("good", "bad"), ("Yes ", "no"), ("success", "failure"),
    ("selected", "not selected"),
]  # fmt: skip
PLAN = eh.Plan(
    audits=("group", "projection", "individual", "proxy", "tail"),
    group={"metrics": ["selection_rate", "fnr", "accuracy", "auc", "brier"]},
    projection={"beside": False, "distances": {"starts": 1, "rounds": 1}},
    individual={"similarity": ["age"], "steps": 20},
    proxy={"folds": 2, "max_steps": 0, "max_rows": 100},
    tail={"generator": "none"},
    n_resamples=99,
    seed=3,
)


@functools.cache
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(4)
    sex = rng.integers(2, size=N)
    frame = pd.DataFrame({"age": rng.normal(40, 10, N) + 3 * sex, "debt": rng.normal(size=N), "sex": sex.astype(float)})
    signal = 0.08 * (frame["age"] - 40) - frame["debt"] + 0.5 * sex
    return frame, (rng.random(N) < 1 / (1 + np.exp(-signal))).to_numpy().astype(int)


def pipeline(frame: pd.DataFrame, y: np.ndarray) -> Any:
    encode = make_column_transformer(
        (StandardScaler(), ["age", "debt"]), (OneHotEncoder(drop="first"), ["sex"]), sparse_threshold=0
    )
    return make_pipeline(encode, LogisticRegression(solver="newton-cholesky", tol=1e-12)).fit(frame, y)


def forest(frame: pd.DataFrame, y: np.ndarray) -> Any:
    return RandomForestClassifier(7, min_samples_leaf=11, random_state=0).fit(frame, y)


def onnx(frame: pd.DataFrame, y: np.ndarray) -> Any:
    from onnxruntime import InferenceSession
    from skl2onnx import to_onnx

    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(frame.to_numpy(), y)
    made = to_onnx(fitted, frame.to_numpy().astype(np.float32), options={"zipmap": bool(y[0] == y[1])})
    return InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def torch(frame: pd.DataFrame, y: np.ndarray) -> Any:
    from torch import nn, tensor

    from evenhand.models.gradient_torch import TorchGradient

    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(frame.to_numpy(), y)
    layer = nn.Linear(3, 1).double()
    layer.weight.data, layer.bias.data = tensor(fitted.coef_), tensor(fitted.intercept_)
    return TorchGradient(layer, link="logit", classes=tuple(fitted.classes_))


def function(frame: pd.DataFrame, y: np.ndarray) -> Any:
    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-12).fit(frame.to_numpy(), y)
    one = [str(c) for c in fitted.classes_].index(str(y[rows()[1] == 1][0]))
    return lambda X: fitted.predict_proba(X)[:, one]


# An ONNX session computes in single precision, and turned around it rounds another way.
NEAR = {"onnx": 1e-4}
KINDS = {"pipeline": pipeline, "forest": forest, "onnx": onnx, "torch": torch, "function": function}


def numbers(kind: str, one: Any, zero: Any, positive: Any = None) -> dict[Any, list[float]]:
    frame, y = rows()
    words = np.where(y == 1, one, zero)
    data = eh.AuditData.from_arrays(
        outcome=words, groups={"sex": frame["sex"].astype(int).to_numpy()}, features=frame, positive=positive
    )
    run = eh.audit(data, model=KINDS[kind](frame, words), plan=PLAN)
    found = {}
    for f in run.findings:
        ends = () if f.interval is None else (f.interval.low, f.interval.high)
        found[f.audit, f.measure, f.groups] = [f.estimate, f.pvalue, f.pvalue_adjusted, *ends]
        assert f.verdict != "not_computable" or f.audit in ("tail", "proxy"), f.reason
    return found


@functools.cache
def on_numbers(kind: str) -> dict[Any, list[float]]:
    found = numbers(kind, 1, 0)
    assert {audit for audit, _, _ in found} == set(PLAN.audits)
    return found


@pytest.mark.parametrize("kind", ["pipeline", "forest", "onnx", "torch"])
@pytest.mark.parametrize("other_way", [False, True], ids=["as usual", "named"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].strip())
def test_words_give_the_numbers_of_0_and_1(pair, other_way, kind):
    one, zero = pair[::-1] if other_way else pair
    found, expected = numbers(kind, one, zero, one if other_way else None), on_numbers(kind)
    assert found.keys() == expected.keys()
    near = NEAR.get(kind, 1e-6)
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, rel=near, abs=near, nan_ok=True), key


@pytest.mark.parametrize(("one", "zero"), [(True, False), (1, -1), ("1", "0"), ("approved", "denied")])
@pytest.mark.parametrize("kind", ["pipeline", "function"])
def test_other_numbers_mean_the_same(one, zero, kind):
    found = numbers(kind, one, zero)
    for key, values in on_numbers(kind).items():
        assert found[key] == pytest.approx(values, rel=1e-6, abs=1e-6, nan_ok=True), key
