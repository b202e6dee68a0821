"""Rows that belong together: values, tests and intervals when whole clusters, and not rows, are drawn independently."""
