"""What the runs use. The paper's text has lost its digits: most values are ours."""

from __future__ import annotations

from typing import Any

from evenhand.reproductions.paper import Settings

#: Models by the paper's names: network, logistic regression, support vector machine, random forest.
KINDS = ("dnn", "lr", "svm", "rf")

#: Data sets and attributes of table II, in its order.
CASE_NAMES = (
    "census-race",
    "census-sex",
    "credit-sex",
    "bank-age",
    "compas-race",
    "default-sex",
    "heart-sex",
    "meps15-sex",
    "meps16-sex",
    "students-sex",
)

#: Data files behind them.
DATA = (
    "adult",
    "german",
    "bank",
    "compas",
    "default",
    "heart-cleveland",
    "meps15",
    "meps21",
    "student-mat",
    "student-por",
)

#: Of every item that trains a model; only the layers are in print.
MODELS: dict[str, Any] = {
    "seed": 2025,
    "horizon": 1000,  # decisions at which all groups are compared; the paper has no common horizon
    "n_resamples": 199,
    "train_share": 0.7,
    # At least 300 steps: on small data sets ten epochs leave the network untrained.
    "network": {"layers": [64, 32, 16, 8, 4, 2], "epochs": 10, "least_steps": 300, "batch": 128, "rate": 0.001},
    "svm_rows": 3000,  # it learns from so many at most: all of Adult takes minutes
}

#: Of CTGAN and TVAE: 1,500 training steps on 1,000 rows, 300 epochs as the authors of CTGAN use.
GENERATORS: dict[str, Any] = {"rows": 1000, "batch": 200, "epochs": 300}


def at_seed(settings: Settings, seed: int) -> dict[str, Any]:
    """Return settings with another seed."""
    return {**settings, "seed": seed}
