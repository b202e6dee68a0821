"""Optimal-transport projections: the programme, its dual, its limit law."""
