"""A run for the tools that people already use: MLflow, model cards, and the pages of a pull request."""

from evenhand.sharing.annotations import github_annotations
from evenhand.sharing.model_card import to_model_card
from evenhand.sharing.sarif import to_sarif
from evenhand.sharing.tracking import log_to_mlflow

__all__ = ["github_annotations", "log_to_mlflow", "to_model_card", "to_sarif"]
