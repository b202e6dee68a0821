"""Records in, sufficient statistics out."""

from evenhand.summaries.sums import SortedRecords, Sums, WeightedTable, cells_of, group_sizes, weight_sums

__all__ = ["SortedRecords", "Sums", "WeightedTable", "cells_of", "group_sizes", "weight_sums"]
