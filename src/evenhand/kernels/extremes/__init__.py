"""Extreme values: generalised Pareto tails, their checks and limits."""
