"""Gradient flows: moving points, their losses, ratios of losses."""
