"""The four classifiers of [maity2021] with the settings of its experiments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from cases import Case
from scipy import special

from evenhand.kernels.perceptron import Perceptron
from evenhand.mitigation.project import ProjectSensitive, sensitive_directions
from evenhand.mitigation.sensr import SenSRClassifier
from evenhand.models.gradient import CallableGradient, GradientModel

NAMES = ("Baseline", "Project", "Reduction", "SenSR")


def directions(case: Case, part: str) -> np.ndarray:
    """Sensitive directions from the train or test inputs, by converged regressions (penalty 1)."""
    X, sex, race = (getattr(case, f"{k}_{part}") for k in ("X", "sex", "race"))
    if case.name == "adult":
        return sensitive_directions(X, np.column_stack([sex, race]))
    rest = sensitive_directions(X[:, 2:], np.column_stack([sex, race]))
    return np.vstack([np.eye(X.shape[1])[:2], np.hstack([np.zeros((len(rest), 2)), rest])])


def train(case: Case, name: str, split: int, settings: dict[str, Any]) -> Any:
    """Train one classifier on one split; returns something `view` understands."""
    X, y = case.X_train, case.y_train
    if name in ("Baseline", "Project"):
        plain = SenSRClassifier(
            (50,), steps=settings["baseline_steps"], batch_size=250, learning_rate=1e-4, subspace_steps=0,
            full_steps=0, bias=0.0, random_state=split,
        )  # fmt: skip
        if name == "Baseline":
            return plain.fit(X, y).network_
        project = ProjectSensitive(directions=directions(case, "train")).fit(X)
        net = plain.fit(project.transform(X), y).network_
        Q = project.basis_
        first = net.weights[0] - Q @ (Q.T @ net.weights[0])  # the projection folded into the first layer
        return Perceptron(weights=(first, *net.weights[1:]), biases=net.biases)
    if name == "Reduction":
        return _reduction(case, settings)
    return (
        SenSRClassifier(
            (100,),
            steps=settings["sensr_steps"],
            batch_size=1000,
            learning_rate=settings["sensr_rate"],
            subspace_steps=10,
            subspace_rate=settings["sensr_subspace_rate"],
            full_steps=settings["sensr_full_steps"],
            full_rate=1e-4,
            budget=1e-3,
            penalty=2.0,
            directions=directions(case, "train"),
            random_state=split,
        )
        .fit(X, y)
        .network_
    )


def _reduction(case: Case, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """Logistic regressions and their weights: the randomised classifier of exponentiated gradient."""
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    balanced = {"class_weight": "balanced"} if case.name == "adult" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ExponentiatedGradient(
            LogisticRegression(solver="liblinear", **balanced), EqualizedOdds(),
            eps=settings["reduction_eps"], max_iter=50,
        )  # fmt: skip
        found.fit(case.X_train, case.y_train, sensitive_features=case.sex_train + 2 * case.race_train)
    used = [(w, p) for w, p in zip(found.weights_, found.predictors_, strict=True) if w > 0]
    return {
        "weight": np.array([w for w, _ in used]),
        "coef": np.array([p.coef_.ravel() for _, p in used]),
        "intercept": np.array([p.intercept_[0] for _, p in used]),
    }


def view(fitted: Any) -> GradientModel | CallableGradient:
    """Return the classifier with its gradients; Reductions as its members' weighted mean."""
    if isinstance(fitted, Perceptron):
        return GradientModel(network=fitted, link="logit", classes=(0, 1), name="network")
    w, C, b = fitted["weight"], fitted["coef"], fitted["intercept"]

    def probability(X: np.ndarray) -> np.ndarray:
        out: np.ndarray = special.expit(X @ C.T + b) @ w
        return out

    def jacobian(X: np.ndarray) -> np.ndarray:
        p = special.expit(X @ C.T + b)
        out: np.ndarray = (p * (1 - p) * w) @ C
        return out

    return CallableGradient(probability, jacobian, link="probability", classes=(0, 1))
