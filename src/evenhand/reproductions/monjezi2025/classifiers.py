"""Logistic regression, SVM, random forest and the six-layer network, all asked in named columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from evenhand.arrays import FloatArray
from evenhand.generators.columns import Columns
from evenhand.kernels.shared.seeds import published_stream
from evenhand.reproductions.monjezi2025.cases import Case
from evenhand.reproductions.paper import Settings


def _prepare(columns: Columns) -> Any:
    numbers = [n for n, c in columns.items() if c.dtype.kind in "iuf"]
    texts = [n for n in columns if n not in numbers]
    return ColumnTransformer(
        [
            ("n", StandardScaler(), numbers),
            ("t", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
        ]
    )


class Network(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The paper's fully connected network on numbers; the last two units give its score by softmax.

    Six narrow layers of ReLU sometimes die and give everybody one score; training then starts again with another seed.
    """

    def __init__(
        self,
        layers: tuple[int, ...] = (64, 32, 16, 8, 4, 2),
        epochs: int = 10,
        least_steps: int = 300,
        batch: int = 128,
        rate: float = 0.001,
        decay: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.layers, self.epochs, self.least_steps, self.batch = layers, epochs, least_steps, batch
        self.rate, self.decay, self.seed = rate, decay, seed

    def fit(self, X: FloatArray, y: NDArray[Any], sample_weight: FloatArray | None = None) -> Network:
        """Train with Adam on the (weighted) cross entropy."""
        self.classes_ = np.array([0, 1])
        for attempt in range(10):
            self._trained(X, y, sample_weight, self.seed + attempt)
            if np.ptp(self.predict_proba(X)[:, 1]) > 1e-6:
                break
        return self

    def _trained(self, X: FloatArray, y: NDArray[Any], sample_weight: FloatArray | None, seed: int) -> None:
        import torch
        from torch import nn

        x = torch.as_tensor(np.asarray(X), dtype=torch.float32)
        label = torch.as_tensor(np.asarray(y).astype(np.int64))
        w = torch.ones(len(label)) if sample_weight is None else torch.as_tensor(sample_weight, dtype=torch.float32)
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        parts, size = [], x.shape[1]
        for width in self.layers:
            parts += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.net_ = nn.Sequential(*parts[:-1])  # the last layer of two units gives the logits
        adam = torch.optim.Adam(self.net_.parameters(), lr=self.rate, weight_decay=self.decay)
        loss = nn.CrossEntropyLoss(reduction="none")
        batches = math.ceil(len(label) / self.batch)
        for _ in range(max(self.epochs, math.ceil(self.least_steps / batches))):
            for rows in torch.split(torch.randperm(len(label)), self.batch):
                adam.zero_grad()
                (loss(self.net_(x[rows]), label[rows]) * w[rows]).mean().backward()
                adam.step()

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the two probabilities of each row."""
        import torch

        with torch.no_grad():
            x = torch.as_tensor(np.asarray(X), dtype=torch.float32)
            return np.asarray(torch.softmax(self.net_(x).double(), dim=1).numpy())

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return the likelier class of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


def learner(name: str, columns: Columns, settings: Settings, seed: int) -> Any:
    """Return one of the four models with its library's defaults, not fitted, behind the coding of the columns."""
    inner: Any
    if name == "dnn":
        inner = Network(**{**settings["network"], "layers": tuple(settings["network"]["layers"])}, seed=seed)
    elif name == "svm":  # Platt's sigmoid makes its margin a probability
        inner = CalibratedClassifierCV(SVC(), ensemble=False, cv=3)
    else:
        inner = LogisticRegression(max_iter=1000) if name == "lr" else RandomForestClassifier(random_state=seed)
    return Pipeline([("numbers", _prepare(columns)), ("model", inner)])


def split(case: Case, settings: Settings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to train on and the others."""
    order = published_stream(settings["seed"]).permutation(len(case.outcome))
    cut = int(settings["train_share"] * len(order))
    return order[:cut], order[cut:]


def fitted(case: Case, name: str, settings: Settings) -> tuple[Any, float]:
    """Train a model; return it and its accuracy on the other rows."""
    rows, rest = split(case, settings)
    if name == "svm":
        rows = rows[: settings["svm_rows"]]
    frame = pd.DataFrame(case.columns)
    model = learner(name, case.columns, settings, settings["seed"])
    model.fit(frame.iloc[rows].reset_index(drop=True), case.outcome[rows])
    return model, float((model.predict(frame.iloc[rest].reset_index(drop=True)) == case.outcome[rest]).mean())
