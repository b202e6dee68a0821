"""The classifiers by name."""

#: Those of the tables, in their order.
KINDS = ("Baseline", "Project", "Reduction", "SenSR")
#: Reduction with balanced class weights as scikit-learn makes them now; in no table.
BY_WEIGHT = "Reduction, balanced by weight"
