"""Records in, sufficient statistics out."""

from evenhand.summaries.sums import (
    WeightedTable,
    cells_of,
    confusion,
    group_sizes,
    weight_sums,
    weighted_confusion,
)

__all__ = ["WeightedTable", "cells_of", "confusion", "group_sizes", "weight_sums", "weighted_confusion"]
