"""Influence functions: functionals, nuisance models, what a feature does to them."""
