"""Rows kept from the learner, to choose thresholds or settings by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.mitigation.estimator import Training


def held_out(rows: Training, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which rows are kept: the same share of each class in each group, drawn at random.

    Parameters
    ----------
    rows : Training
        All rows.
    share : float
        Share to keep, below 1.
    rng : Generator
        Draws them.

    Returns
    -------
    ndarray of bool

    Examples
    --------
    >>> from evenhand.kernels.shared.seeds import stream
    >>> y, group = np.array([0, 0, 1, 1]), np.zeros(4, dtype=int)
    >>> rows = Training(np.zeros((4, 1)), y, np.array([0, 1]), group, ("a",))
    >>> int(held_out(rows, 0.5, stream(0, "example"))[:2].sum())
    1
    """
    order = rng.permutation(rows.y.size)
    cell = (2 * rows.group + rows.y)[order]
    kept = np.zeros(rows.y.size, dtype=bool)
    for code in np.unique(cell).tolist():
        mine = order[cell == code]
        kept[mine[: round(share * mine.size)]] = True
    return kept
