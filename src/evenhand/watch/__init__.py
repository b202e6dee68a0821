"""Watches one model over time: batches in, evidence and alarms out, a small state file between."""

from evenhand.watch.answers import Answer, Question
from evenhand.watch.monitor import Watch

__all__ = ["Answer", "Question", "Watch"]
