"""Models: anything that decides becomes `AuditedModel`: a score towards decision 1, a decision, asked in columns."""

from evenhand.models.adapter import adapt, audited_model
from evenhand.models.audited import AuditedModel
from evenhand.models.files import load_model

__all__ = ["AuditedModel", "adapt", "audited_model", "load_model"]
