"""Names to data: real data with source, licence and checksum, synthetic data with known disparity."""

from __future__ import annotations

from evenhand.datasets.decided import adult, adult_table, compas, load
from evenhand.datasets.export import export
from evenhand.datasets.files import add, table
from evenhand.datasets.registry import DatasetRow, known
from evenhand.datasets.synthetic import planted, planted_values

__all__ = [
    "DatasetRow",
    "add",
    "adult",
    "adult_table",
    "compas",
    "export",
    "known",
    "load",
    "planted",
    "planted_values",
    "table",
]
