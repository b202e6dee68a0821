"""More rows for a group whose own do not show enough tail: what they suggest, marked as a suggestion."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.generators.adapter import make_generator
from evenhand.generators.columns import Columns
from evenhand.generators.realism import realism
from evenhand.kernels.extremes.pareto_tail import choose_k, fit_tail
from evenhand.kernels.extremes.ties import count_ties, spread_ties

ROUNDS = 10
LEAST = 1000  # rows per round


def extend_tail(
    rows: Columns,
    change: Callable[[Columns], FloatArray],
    generator: Any,
    *,
    horizon: float,
    upper: float,
    seed: int,
    time_limit: float = 60.0,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Generate rows like a group's until its tail passes the exponentiality test. [monjezi2025] Algorithm 1.

    Parameters
    ----------
    rows : mapping of str to ndarray
        The group's own rows.
    change : callable
        From rows to the change of score when they are recorded as the other group.
    generator : str or object
        See `make_generator`.
    horizon : float
        For the return level.
    upper : float
        Largest possible change.
    seed : int
        For the generator.
    time_limit : float
        Seconds; when they are over the search stops between rounds, and training where the generator allows it.
    progress : callable, optional
        Called with a short text each round.

    Returns
    -------
    dict
        ``rows`` generated, ``rounds``, whether it ``passed``, ``stopped`` by time, the ``level`` at the horizon and
        its ``k``, ``shape`` and ``threshold`` (None when it did not pass), and the rows' ``realism``.
    """
    began = time.monotonic()
    own = change(rows)
    maker = make_generator(generator, seed=seed)
    if hasattr(maker, "time_limit"):
        maker.time_limit = min(maker.time_limit, time_limit)
    maker.fit(rows)
    suggestion: dict[str, Any] = {
        "generator": generator if isinstance(generator, str) else type(generator).__name__,
        "rows": 0, "rounds": 0, "passed": False, "stopped": bool(getattr(maker, "stopped", False)),
        "level": None, "k": None, "shape": None, "threshold": None, "horizon": horizon,
    }  # fmt: skip
    values, first = own, None
    while suggestion["rounds"] < ROUNDS and not suggestion["passed"]:
        if suggestion["rounds"] and time.monotonic() - began > time_limit:
            suggestion["stopped"] = True
            break
        made = maker.sample(max(LEAST, own.size))
        first = made if first is None else first
        values = np.concatenate([values, change(made)])
        suggestion["rounds"] += 1
        suggestion["rows"] = int(values.size - own.size)
        if progress is not None:
            progress(f"tail: {suggestion['rows']:,} rows generated")
        ties = count_ties(values, 50)
        if ties.atoms:
            continue
        spread = spread_ties(values, upper=upper) if ties.tied else values
        k, _ = choose_k(spread)
        if k:
            tail = fit_tail(spread, k, upper=upper)
            suggestion.update(passed=True, level=tail.level(horizon), k=k, shape=tail.shape, threshold=tail.threshold)
    if first is not None:
        suggestion["realism"] = realism(rows, first, seed=seed)
    return suggestion
