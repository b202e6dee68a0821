"""Power and sample size of the group audit, before the audit."""

from evenhand.sizing.power import power
from evenhand.sizing.prospects import Prospect, Prospects, margin_in_people, prospects
from evenhand.sizing.result import Goal, PowerResult, PowerRow

__all__ = ["Goal", "PowerResult", "PowerRow", "Prospect", "Prospects", "margin_in_people", "power", "prospects"]
