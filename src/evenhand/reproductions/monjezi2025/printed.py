"""What print still says: the type of each of table IV's 80 tails.

The digits of the text are lost, but the words of table IV are not: each row ends in "iii finite linear", "i log skewed"
or "ii infinite heavy tail". Four are heavy, and 76 of 80 is the 95 % of the abstract.
"""

from __future__ import annotations

# Rows of table IV in print's order: (first group, second group) of each data set.
_ORDER = (
    ("census-race", "White", "Black"), ("census-sex", "Male", "Female"), ("credit-sex", "Male", "Female"),
    ("bank-age", "young", "old"), ("compas-race", "Caucasian", "Other"), ("default-sex", "Male", "Female"),
    ("heart-sex", "Male", "Female"), ("meps15-sex", "Male", "Female"), ("meps16-sex", "Male", "Female"),
    ("students-sex", "M", "F"),
)  # fmt: skip
_TYPES = {
    "dnn": "III III  I III  III III  II I  I I  II III  III III  III III  I III  III III",
    "lr": "I III  III III  III III  III III  III III  III III  III III  III III  III III  III III",
    "svm": "III III  III III  III III  I I  II I  I III  III I  III III  III III  II I",
    "rf": "III III  I III  III I  III III  III III  III III  III III  III III  III III  III III",
}
#: Printed type of each tail, by model, data set and group.
TYPES = {
    (model, case, group): kind
    for model, words in _TYPES.items()
    for (case, *groups), pair in zip(_ORDER, words.split("  "), strict=True)
    for group, kind in zip(groups, pair.split(), strict=True)
}
#: Shares of the abstract, known from elsewhere: valid tails, ECD-Fair improves the tail, MiniMax-Fairness worsens it.
VALID_TAILS, ECD_FAIR_BETTER, MINIMAX_WORSE = 0.95, 0.90, 0.30
