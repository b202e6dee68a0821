"""What print still says: the type of each of table IV's 80 tails, and the algorithm that made them.

The digits of the text are lost, but the words of table IV are not: each row ends in "iii finite linear", "i log skewed"
or "ii infinite heavy tail". Four are heavy, and 76 of 80 is the 95 % of the abstract.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.generators import make_generator
from evenhand.kernels.extremes.exponentiality import PRINTED, residual_variation
from evenhand.kernels.extremes.pareto_tail import fit_tail, tail_intervals
from evenhand.kernels.shared.seeds import stream

FloatArray = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

KMIN, KMAX, ROUNDS = 10, 50, 10

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
# Printed type of each tail, by model, data set and group.
TYPES = {
    (model, case, group): kind
    for model, words in _TYPES.items()
    for (case, *groups), pair in zip(_ORDER, words.split("  "), strict=True)
    for group, kind in zip(groups, pair.split(), strict=True)
}


def passes(values: FloatArray, reading: str) -> bool:
    """Apply the test of Algorithm 1 to the largest values.

    The text says "select top k, average, std" (`reading` "values": their own coefficient of variation). The method it
    builds on takes the excesses over the k-th largest value ("excesses").
    """
    if values.size <= KMAX:
        return False
    top = -np.sort(-values)[:KMAX]
    k = np.arange(KMIN, KMAX + 1)
    if reading == "excesses":
        variation = residual_variation(top, KMIN)
    else:
        mean = np.array([top[:j].mean() for j in k])
        deviation = np.array([top[:j].std(ddof=1) for j in k])
        variation = deviation / np.where(mean > 0, mean, math.nan)
    return not bool((variation > 1 + PRINTED / np.sqrt(k)).any())


def algorithm_1(
    rows: Columns, change: Callable[[Columns], FloatArray], config: dict[str, Any], reading: str, upper: float
) -> dict[str, Any]:
    """Add generated rows to a group's own until the test passes, then fit kmax excesses of all of them, as print does.

    Steps are fitted like any other value, and generated rows count as observed: neither is done in our audit.
    """
    own = change(rows)
    values, maker, rounds, began = own, None, 0, time.monotonic()
    while not (passed := passes(values, reading)) and rounds < ROUNDS:
        if maker is None:
            maker = make_generator(config["generators"]["of_algorithm_1"], seed=config["seed"])
            maker.time_limit = config["generators"]["seconds"]  # type: ignore[attr-defined]
            maker.fit(rows)
        values = np.concatenate([values, change(maker.sample(max(1000, own.size)))])
        rounds += 1
    out = {
        "passed": passed, "generated": int(values.size - own.size), "rounds": rounds, "type": None, "shape": None,
        "location": None, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    if not passed:
        return out
    ordered = -np.sort(-values)
    if ordered[0] - ordered[KMAX] < 1e-9:  # all the same: the tail ends there
        return out | {"type": "III", "location": float(ordered[0])}
    tail = fit_tail(values, KMAX, upper=upper)
    found = tail_intervals(tail, np.array([1000.0]), level=0.95, rng=stream(config["seed"], "monjezi2025"))
    return out | {"type": found.type, "shape": tail.free_shape, "location": tail.level(1000)}
