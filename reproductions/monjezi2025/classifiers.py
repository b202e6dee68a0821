"""Logistic regression, SVM, random forest and the six-layer network, all asked in named columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
NAMES = ("dnn", "lr", "svm", "rf")


def _prepare(columns: dict[str, NDArray[Any]]) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [n for n, c in columns.items() if c.dtype.kind in "iuf"]
    texts = [n for n in columns if n not in numbers]
    return ColumnTransformer(
        [
            ("n", StandardScaler(), numbers),
            ("t", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
        ]
    )


class Network:
    """The paper's fully connected network on one-hot coded columns; the last two units give its score by softmax."""

    classes_ = np.array([0, 1])

    def __init__(self, config: dict[str, Any], seed: int) -> None:
        self.config, self.seed = config, seed

    def fit(self, frame: Any, outcome: FloatArray, weight: FloatArray | None = None) -> Network:
        """Train with Adam on the (weighted) cross entropy."""
        import torch
        from torch import nn

        self.coder = _prepare({n: frame[n].to_numpy() for n in frame}).fit(frame)
        x = torch.as_tensor(self.coder.transform(frame), dtype=torch.float32)
        y = torch.as_tensor(outcome.astype(np.int64))
        w = torch.ones(len(y)) if weight is None else torch.as_tensor(weight, dtype=torch.float32)
        torch.manual_seed(self.seed)
        torch.set_num_threads(1)
        parts, size = [], x.shape[1]
        for width in self.config["layers"]:
            parts += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.net = nn.Sequential(*parts[:-1])  # the last layer of two units gives the logits
        adam = torch.optim.Adam(self.net.parameters(), lr=self.config["rate"])
        loss = nn.CrossEntropyLoss(reduction="none")
        batches = math.ceil(len(y) / self.config["batch"])
        for _ in range(max(self.config["epochs"], math.ceil(self.config["least_steps"] / batches))):
            for rows in torch.randperm(len(y)).split(self.config["batch"]):
                adam.zero_grad()
                (loss(self.net(x[rows]), y[rows]) * w[rows]).mean().backward()
                adam.step()
        return self

    def predict_proba(self, frame: Any) -> FloatArray:
        """Return the two probabilities of each row."""
        import torch

        with torch.no_grad():
            x = torch.as_tensor(self.coder.transform(frame), dtype=torch.float32)
            return torch.softmax(self.net(x).double(), dim=1).numpy()

    def predict(self, frame: Any) -> FloatArray:
        """Return the likelier class of each row."""
        return self.predict_proba(frame).argmax(axis=1)


def train(name: str, frame: Any, outcome: FloatArray, config: dict[str, Any], weight: FloatArray | None = None) -> Any:
    """Fit one of the four models with its library's defaults."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    if name == "dnn":
        for attempt in range(10):  # six narrow layers of ReLU sometimes die and give everybody one score: train again
            network = Network(config["network"], config["seed"] + attempt).fit(frame, outcome, weight)
            if np.ptp(network.predict_proba(frame)[:, 1]) > 1e-6:
                break
        return network
    seed = config["seed"]
    if name == "svm":  # Platt's sigmoid makes its margin a probability
        inner: Any = CalibratedClassifierCV(SVC(), ensemble=False, cv=3)
        most = config["svm"]["rows"]
        frame, outcome = frame[:most], outcome[:most]
    else:
        inner = LogisticRegression(max_iter=1000) if name == "lr" else RandomForestClassifier(random_state=seed)
    return make_pipeline(_prepare({n: frame[n].to_numpy() for n in frame}), inner).fit(frame, outcome)
