"""Mitigation: one file per method, as scikit-learn estimators, imported only with the file asked for."""
