"""Synthetic decisions whose true rates are known, to see whether an audit finds what was planted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.errors import UsageError
from evenhand.intake.data import AuditData
from evenhand.kernels.shared.seeds import RngLike, seed_of, stream

Rates = Sequence[float] | float  # one for all groups, or one for each
WEIGHTS = ("none", "random", "design")
# In the "design" sample a wrong decision is this many times as likely to be sampled as a right one.
OVERSAMPLING = 2.0


def planted(
    rows: int = 2000,
    *,
    groups: Sequence[str] = ("A", "B"),
    shares: Sequence[float] | None = None,
    base_rates: Rates = 0.4,
    fnr: Rates = 0.2,
    fpr: Rates = 0.1,
    scores: bool = True,
    weights: str = "none",
    rng: RngLike = 0,
) -> AuditData:
    """Draw decisions about people with planted error rates.

    Rows are independent. A row's group comes from `shares`, its outcome from the group's base rate, its
    decision from the group's error rates, and its score uniformly from [0.5, 1) after decision 1 and from
    [0, 0.5) after decision 0. `planted_values` gives the true value of each metric.

    Parameters
    ----------
    rows : int
        How many.
    groups : sequence of str
        Labels of the attribute `group`.
    shares : sequence of float, optional
        Share of each group; equal when not given.
    base_rates, fnr, fpr : sequence of float or float
        Of each group: share with outcome 1, false negative rate, false positive rate. One number stands for
        all groups.
    scores : bool
        Whether rows carry a score.
    weights : {"none", "random", "design"}
        ``"random"``: sampling weights between 0.5 and 1.5 that have nothing to do with the row.
        ``"design"``: wrong decisions are sampled twice as often and weigh half as much; weighted values are
        the planted ones, unweighted values are not.
    rng : int, Generator or None
        Seed.

    Returns
    -------
    AuditData

    Examples
    --------
    >>> data = planted(1000, fnr=(0.2, 0.4), rng=1)
    >>> data.rows.rows_used, data.attributes[0].labels
    (1000, ('A', 'B'))
    """
    base, miss, alarm = _rates(base_rates, fnr, fpr, len(groups))
    share = np.full(len(groups), 1.0) if shares is None else np.asarray(shares, dtype=np.float64)
    if share.shape != (len(groups),) or not np.all(np.isfinite(share)) or np.any(share <= 0):
        raise UsageError(f"`shares` must hold one positive number for each of {len(groups)} groups; got {shares!r}.")
    if weights not in WEIGHTS:
        raise UsageError(f"`weights` must be one of {', '.join(WEIGHTS)}; got {weights!r}.")
    if rows < 1 or not groups:
        raise UsageError(f"`rows` and `groups` must not be empty; got {rows} rows and {len(groups)} groups.")

    # Cell (outcome, decision, group) holds its probability.
    cells = np.array([[(1 - base) * (1 - alarm), (1 - base) * alarm], [base * miss, base * (1 - miss)]])
    cells = cells * (share / share.sum())
    if weights == "design":
        cells[[0, 1], [1, 0]] *= OVERSAMPLING
    generator = stream(seed_of(rng), "planted")
    drawn = generator.choice(cells.size, size=rows, p=cells.ravel() / cells.sum())
    outcome, decision, group = np.unravel_index(drawn, cells.shape)
    score = (decision + generator.random(rows)) / 2
    weight: FloatArray | None = None
    if weights == "random":
        weight = generator.uniform(0.5, 1.5, rows)
    elif weights == "design":
        weight = np.where(outcome == decision, 1.0, 1.0 / OVERSAMPLING)
    return AuditData.from_arrays(
        outcome=outcome.astype(np.float64),
        decision=decision.astype(np.float64),
        score=score if scores else None,
        groups={"group": np.asarray([str(g) for g in groups])[group]},
        weight=weight,
    )


def planted_values(*, base_rates: Rates = 0.4, fnr: Rates = 0.2, fpr: Rates = 0.1) -> dict[str, FloatArray]:
    """Return the true value of each metric in each group that `planted` draws from.

    Parameters
    ----------
    base_rates, fnr, fpr : sequence of float or float
        As for `planted`.

    Returns
    -------
    dict of str to ndarray
        Metric name to one value per group (one for all when no argument is a sequence). A rate nobody can
        have, such as precision without decisions of 1, is NaN.

    Examples
    --------
    >>> truth = planted_values(fnr=(0.2, 0.4))
    >>> truth["tpr"].tolist(), truth["auc"].round(3).tolist()
    ([0.8, 0.6], [0.85, 0.75])
    """
    lengths = [np.size(v) for v in (base_rates, fnr, fpr)]
    base, miss, alarm = _rates(base_rates, fnr, fpr, max(lengths))
    tp, fn = base * (1 - miss), base * miss
    fp, tn = (1 - base) * alarm, (1 - base) * (1 - alarm)
    selected, right = tp + fp, tp + tn
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, npv = tp / selected, tn / (tn + fn)
        f1 = 2 * tp / (2 * tp + fp + fn)
    log2 = math.log(2)
    return {
        "selection_rate": selected,
        "tpr": 1 - miss,
        "fpr": alarm,
        "tnr": 1 - alarm,
        "fnr": miss,
        "precision": precision,
        "npv": npv,
        "fdr": 1 - precision,
        "for": 1 - npv,
        "accuracy": right,
        "error_rate": 1 - right,
        "balanced_accuracy": 1 - (miss + alarm) / 2,
        "f1": f1,
        # Scores are uniform on either half, so rows decided alike win half the time.
        "auc": (1 - miss) * (1 - alarm) + ((1 - miss) * alarm + miss * (1 - alarm)) / 2,
        # With u uniform on [0, 1/2): right decisions lose u² and -log(1 - u), wrong ones (1 - u)² and -log u.
        "brier": right / 12 + (1 - right) * 7 / 12,
        "log_loss": right * (1 - log2) + (1 - right) * (1 + log2),
        "mean_score": 0.25 + selected / 2,
    }


def _rates(base_rates: Rates, fnr: Rates, fpr: Rates, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    out = []
    for name, given in (("base_rates", base_rates), ("fnr", fnr), ("fpr", fpr)):
        values = np.asarray(given, dtype=np.float64)
        if values.ndim > 1 or (values.ndim == 1 and values.size != size):
            raise UsageError(f"`{name}` must be one number or one for each of {size} groups; got {given!r}.")
        if not np.all((values >= 0) & (values <= 1)):
            raise UsageError(f"`{name}` must lie between 0 and 1; got {given!r}.")
        out.append(np.broadcast_to(values, (size,)))
    return out[0], out[1], out[2]
