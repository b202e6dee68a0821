"""Models: anything that decides becomes `AuditedModel`: a score towards decision 1, a decision, asked in columns."""

from evenhand.models.adapter import adapt, audited_model
from evenhand.models.audited import AuditedModel
from evenhand.models.distances import BoundaryDistance, boundary_distance
from evenhand.models.files import load_model
from evenhand.models.moves import Moves

__all__ = [
    "AuditedModel",
    "BoundaryDistance",
    "Moves",
    "adapt",
    "audited_model",
    "boundary_distance",
    "load_model",
]
