"""Forests and boosted trees asked once about rows that no threshold tells apart.

A search along lines asks about many places that lie between the same thresholds of all trees. Such places have one
answer, bit by bit, so that one of them is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.models.leaves import nodes_of

_BITS = 62  # of one word of codes


def asked_by_cell(ask: Callable[[FloatArray], FloatArray], model: Any) -> Callable[[FloatArray], FloatArray]:
    """Return a function with the same answers that asks a model of trees about one row of each cell.

    Parameters
    ----------
    ask : callable
        From a matrix of the model's inputs to its answers, a row each.
    model : object
        The estimator; one whose thresholds are not known is asked about every row.

    Returns
    -------
    callable

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X = np.arange(20.0)[:, None]
    >>> forest = RandomForestClassifier(3, max_depth=1, random_state=0).fit(X, X[:, 0] > 9)
    >>> rows = []
    >>> ask = asked_by_cell(lambda X: rows.append(len(X)) or forest.predict_proba(X), forest)
    >>> bool((ask(X) == forest.predict_proba(X)).all()), rows[0] < 6
    (True, True)
    """
    nodes = nodes_of(model)
    if nodes is None:
        return ask
    cuts = {int(j): np.unique(nodes.threshold[nodes.column == j]) for j in np.unique(nodes.column)}
    single = nodes.single

    def score(X: FloatArray) -> FloatArray:
        if not np.isfinite(X).all():  # some trees have places for missing values, which no threshold names
            return ask(X)
        cell = np.zeros(len(X), dtype=np.int64)
        for word in _words(X, cuts, single):
            numbers, place = np.unique(word, return_inverse=True)
            cell = np.unique(cell * numbers.size + place, return_inverse=True)[1]
        first = np.zeros(int(cell.max(initial=-1)) + 1, dtype=np.int64)
        first[cell[::-1]] = np.arange(len(X))[::-1]
        return ask(X[first])[cell]

    return score


def _words(X: FloatArray, cuts: dict[int, FloatArray], single: bool) -> list[IntArray]:
    """Return how many thresholds of each column are below each row's value, many columns in one number."""
    words, room = [np.zeros(len(X), dtype=np.int64)], _BITS
    for j, cut in cuts.items():
        bits = int(cut.size).bit_length()
        if bits > room:
            words, room = [*words, np.zeros(len(X), dtype=np.int64)], _BITS
        # Trees of single precision compare inputs that were rounded to it.
        column = X[:, j].astype(np.float32).astype(np.float64) if single else X[:, j]
        words[-1] = (words[-1] << bits) | np.searchsorted(cut, column, side="left")
        room -= bits
    return words
