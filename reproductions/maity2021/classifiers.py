"""The four classifiers of [maity2021] with the settings of its experiments."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from evenhand.mitigation.exponentiated_gradient import ExponentiatedGradient
from evenhand.mitigation.project import ProjectSensitive, sensitive_directions
from evenhand.mitigation.sensr import SenSR

NAMES = ("Baseline", "Project", "Reduction", "SenSR")


def directions(case: Case, part: str) -> np.ndarray:
    """Sensitive directions from the train or test inputs, by converged regressions (penalty 1)."""
    X, sex, race = (getattr(case, f"{k}_{part}") for k in ("X", "sex", "race"))
    if case.name == "adult":
        return sensitive_directions(X, np.column_stack([sex, race]))
    rest = sensitive_directions(X[:, 2:], np.column_stack([sex, race]))
    return np.vstack([np.eye(X.shape[1])[:2], np.hstack([np.zeros((len(rest), 2)), rest])])


def train(case: Case, name: str, split: int, settings: dict[str, Any]) -> Any:
    """Train one classifier on one split."""
    X, y = case.X_train, case.y_train
    group = case.sex_train + 2 * case.race_train
    if name in ("Baseline", "Project"):
        plain = SenSR(
            (50,), steps=settings["baseline_steps"], batch_size=250, balanced=True, learning_rate=1e-4,
            subspace_steps=0, full_steps=0, bias=0.0, encoder="passthrough", random_state=split,
        )  # fmt: skip
        if name == "Baseline":
            return plain.fit(X, y, sensitive_features=group).decides_as_
        project = ProjectSensitive(directions(case, "train")).fit(X)
        return make_pipeline(project, plain.fit(project.transform(X), y, sensitive_features=group).decides_as_)
    if name == "Reduction":
        return _reduction(case, settings["reduction_eps"]).fit(X, y, sensitive_features=group).decides_as_
    sensr = SenSR(
        (100,),
        steps=settings["sensr_steps"],
        batch_size=1000,
        balanced=True,
        learning_rate=settings["sensr_rate"],
        subspace_steps=10,
        subspace_rate=settings["sensr_subspace_rate"],
        full_steps=settings["sensr_full_steps"],
        full_rate=settings["sensr_full_rate"],
        budget=1e-3,
        penalty=2.0,
        directions=directions(case, "train"),
        encoder="passthrough",
        random_state=split,
    )
    return sensr.fit(X, y, sensitive_features=group).decides_as_


class BalancedByCount(LogisticRegression):
    """Balanced class weights from the number of labels, as in scikit-learn before 1.7, not from the sample weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit with the weights of rows times those of their classes."""
        counts = np.bincount(np.asarray(y, dtype=int), minlength=2)
        each = len(y) / (2 * np.maximum(counts, 1))
        return super().fit(X, y, sample_weight=np.asarray(sample_weight) * each[np.asarray(y, dtype=int)])


def _reduction(case: Case, eps: float) -> ExponentiatedGradient:
    """Logistic regressions mixed by exponentiated gradient, audited as the mean of their probabilities.

    Two libraries have changed since the paper. In fairlearn before 0.5 `eps` was also the allowed violation, as it is
    in `ExponentiatedGradient` here. And balanced class weights came from the number of labels; without both T_n on
    Adult is 2.2 instead of 5.8.
    """
    base = BalancedByCount if case.name == "adult" else LogisticRegression
    return ExponentiatedGradient(base(solver="liblinear"), eps=eps, max_iter=50, form="probability")
