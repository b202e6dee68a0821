"""Comparison of groups within strata: like with like, one stratum at a time, and one answer over all of them."""
