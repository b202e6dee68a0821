"""Numerical mathematics with no word of fairness in it: tables, subsets, AUC, likelihoods, seeds."""
