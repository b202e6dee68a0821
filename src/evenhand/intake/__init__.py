"""Intake: anything that holds decisions about people becomes `AuditData`, checked and coded."""

from evenhand.intake.by_period import by_period
from evenhand.intake.data import AuditData
from evenhand.intake.parts import Attribute, Moments, RowCounts
from evenhand.intake.reader import read

__all__ = ["Attribute", "AuditData", "Moments", "RowCounts", "by_period", "read"]
