"""Mitigation: repaired models as scikit-learn estimators, one file per method, loaded when first asked for."""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

#: Each method by the word that `evenhand.mitigate` and the command line take: its file and its class.
METHODS = {
    "reweighing": "Reweighing",
    "counterfactual_weights": "CounterfactualWeights",
    "fair_smote": "FairSMOTE",
    "exponentiated_gradient": "ExponentiatedGradient",
    "project": "Project",
    "sensr": "SenSR",
    "linear_constraint": "LinearConstraint",
    "minimax": "Minimax",
    "ecd_fair": "ECDFair",
    "maat": "MAAT",
    "stealth": "STEALTH",
    "threshold_optimizer": "ThresholdOptimizer",
}
_FILES = {name: word for word, name in METHODS.items()} | {"Mixture": "mixture"}


def __getattr__(name: str) -> _typing.Any:
    if name in _FILES:
        return getattr(_import_module(f"evenhand.mitigation.{_FILES[name]}"), name)
    raise AttributeError(f"module 'evenhand.mitigation' has no attribute {name!r}")


__all__ = ["METHODS", *_FILES]
