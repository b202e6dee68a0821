"""Counts and ranks: binomial laws, count tables, permutations, AUC."""
