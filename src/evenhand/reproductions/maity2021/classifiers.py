"""The four classifiers of the experiments, with their settings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from evenhand.arrays import FloatArray
from evenhand.mitigation.exponentiated_gradient import ExponentiatedGradient
from evenhand.mitigation.mixture import Mixture
from evenhand.mitigation.project import ProjectSensitive, sensitive_directions
from evenhand.mitigation.sensr import SenSR
from evenhand.reproductions.maity2021.kinds import BY_WEIGHT
from evenhand.reproductions.maity2021.people import People, Split
from evenhand.reproductions.paper import Settings


def train(split: Split, name: str, seed: int, settings: Settings) -> Any:
    """Train one classifier on the training rows of a split."""
    X, y = split.train.X, split.train.y
    group = split.train.sex + 2 * split.train.race
    if name in ("Reduction", BY_WEIGHT):
        mixture = _reduction(split, settings, name).fit(X, y, sensitive_features=group).decides_as_
        return Mixture([_plain(m) for m in mixture.members], mixture.weights, form=mixture.form)
    if name == "SenSR":
        return _sensr(split, seed, settings).fit(X, y, sensitive_features=group).decides_as_
    plain = SenSR(
        (50,),
        steps=settings["baseline_steps"],
        batch_size=250,
        balanced=True,
        learning_rate=1e-4,
        subspace_steps=0,
        full_steps=0,
        bias=0.0,
        encoder="passthrough",
        random_state=seed,
    )
    if name == "Baseline":
        return plain.fit(X, y, sensitive_features=group).decides_as_
    project = ProjectSensitive(_directions(split.name, split.train)).fit(X)
    return make_pipeline(project, plain.fit(project.transform(X), y, sensitive_features=group).decides_as_)


def _directions(name: str, people: People) -> FloatArray:
    """Return sensitive directions by converged regressions; on COMPAS sex and race are inputs and directions too."""
    protected = np.column_stack([people.sex, people.race])
    if name == "adult":
        return sensitive_directions(people.X, protected)
    rest = sensitive_directions(people.X[:, 2:], protected)
    return np.vstack([np.eye(people.X.shape[1])[:2], np.hstack([np.zeros((len(rest), 2)), rest])])


def _sensr(split: Split, seed: int, settings: Settings) -> SenSR:
    return SenSR(
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
        directions=_directions(split.name, split.train),
        encoder="passthrough",
        random_state=seed,
    )


class BalancedByCount(LogisticRegression):  # type: ignore[misc]
    """Balanced class weights from the number of labels, as in scikit-learn before 1.7, not from the sample weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit with the weights of rows times those of their classes."""
        counts = np.bincount(np.asarray(y, dtype=int), minlength=2)
        each = len(y) / (2 * np.maximum(counts, 1))
        return super().fit(X, y, sample_weight=np.asarray(sample_weight) * each[np.asarray(y, dtype=int)])


def _plain(fitted: LogisticRegression) -> LogisticRegression:
    """Return the same regression as one of scikit-learn's own class, whose gradient the audit knows."""
    plain = LogisticRegression()
    vars(plain).update(vars(fitted))
    return plain


def _reduction(split: Split, settings: Settings, name: str) -> ExponentiatedGradient:
    """Return logistic regressions to be mixed by exponentiated gradient, audited as the mean of their probabilities.

    Two libraries have changed since the paper. In fairlearn before 0.5 `eps` was also the allowed violation, as it is
    in `ExponentiatedGradient` here; and balanced class weights came from the number of labels.
    """
    base = BalancedByCount() if split.name == "adult" else LogisticRegression()
    if name == BY_WEIGHT:
        base = LogisticRegression(class_weight="balanced")
    return ExponentiatedGradient(
        base.set_params(solver="liblinear"), eps=settings["reduction_eps"], max_iter=50, form="probability"
    )
