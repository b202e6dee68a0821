"""Intake: anything that holds decisions about people becomes `AuditData`, checked and coded."""

from evenhand.intake.data import Attribute, AuditData, Moments, RowCounts
from evenhand.intake.reader import read

__all__ = ["Attribute", "AuditData", "Moments", "RowCounts", "read"]
