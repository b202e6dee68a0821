"""The four classifiers of [maity2021] with the settings of its experiments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from cases import Case
from scipy import special

from evenhand.kernels.flow.perceptron import Perceptron
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
            full_rate=settings["sensr_full_rate"],
            budget=1e-3,
            penalty=2.0,
            directions=directions(case, "train"),
            random_state=split,
        )
        .fit(X, y)
        .network_
    )


def _reduction(case: Case, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """Logistic regressions and their weights: the randomised classifier of exponentiated gradient.

    Two libraries have changed since the paper. In fairlearn before 0.5 `eps` was also the allowed violation, which is
    `difference_bound` now (default .01). And in scikit-learn before 1.7 balanced class weights came from the number of
    labels, not from their sample weights. Both are undone here; without that T_n on Adult is 2.2 instead of 5.8.
    """
    from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    class BalancedByCount(LogisticRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            counts = np.bincount(np.asarray(y, dtype=int), minlength=2)
            each = len(y) / (2 * np.maximum(counts, 1))
            return super().fit(X, y, sample_weight=np.asarray(sample_weight) * each[np.asarray(y, dtype=int)])

    base = BalancedByCount if case.name == "adult" else LogisticRegression
    eps = settings["reduction_eps"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ExponentiatedGradient(
            base(solver="liblinear"), EqualizedOdds(difference_bound=eps), eps=eps, max_iter=50
        )
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
