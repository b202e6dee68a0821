"""Count tables with fixed margins: their probability, their enumeration, random draws of them.

Permuting the group labels of rows that fall into few cells changes nothing but the table of counts,
group by cell. Given the margins such a table follows a (multivariate) hypergeometric law, so a
permutation costs what the cells cost, whatever the number of rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand.arrays import FloatArray, IntArray

# numpy refuses hypergeometric draws from a population above this size.
NUMPY_LIMIT = 10**9


def _stirling_excess(n: FloatArray) -> FloatArray:
    """Return log n! - (n log n - n), and 0 for n = 0, to full relative precision at any size."""
    n = np.asarray(n, dtype=np.float64)
    safe = np.maximum(n, 1.0)
    square = safe * safe
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / (1188 * square)) / square) / square) / square) / safe
    large = series + 0.5 * np.log(2 * np.pi * safe)
    small = special.gammaln(np.minimum(n, 16.0) + 1) - special.xlogy(np.minimum(n, 16.0), safe) + np.minimum(n, 16.0)
    return np.where(n > 16, large, small)  # type: ignore[no-any-return]


def log_probability(table: ArrayLike) -> FloatArray:
    """Return the log probability of each table given its own margins.

    Differences of log-gamma functions lose all digits at 1e9 rows. Here their large parts are
    combined into the likelihood ratio against independence, which is small, before anything is rounded.

    Parameters
    ----------
    table : array_like of int, shape (..., K, C)
        Counts, groups by cells.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> round(float(np.exp(log_probability([[3, 1], [1, 3]]))), 6)  # the lady tasting tea: 16/70
    0.228571
    """
    counts = np.asarray(table, dtype=np.float64)
    rows, columns = counts.sum(-1), counts.sum(-2)
    total = rows.sum(-1)
    expected = rows[..., :, None] * (columns / np.maximum(total, 1.0)[..., None])[..., None, :]
    drift = np.where(expected > 0, (counts - expected) / np.where(expected > 0, expected, 1.0), 0.0)
    drift = np.maximum(drift, -1.0)
    ratio = (expected * (special.xlog1py(1 + drift, drift) - drift)).sum((-1, -2))
    return np.asarray(
        _stirling_excess(rows).sum(-1)
        + _stirling_excess(columns).sum(-1)
        - _stirling_excess(total)
        - _stirling_excess(counts).sum((-1, -2))
        - ratio
    )


def hypergeometric_tail(value: int, good: int, bad: int, sample: int, *, upper: bool) -> tuple[float, float]:
    """Return P(X >= value) (or <=) and P(X = value) of a hypergeometric count, summed term by term.

    Parameters
    ----------
    value : int
        Where the tail starts; outside the support the answer is 0 or 1.
    good, bad : int
        Marked and unmarked items.
    sample : int
        Items drawn without replacement.
    upper : bool
        Which tail.

    Examples
    --------
    >>> tail, point = hypergeometric_tail(3, 4, 4, 4, upper=True)
    >>> round(tail * 70), round(point * 70)
    (17, 16)
    """
    if not upper:  # count the items not drawn from the marked ones: the lower tail becomes an upper one
        return hypergeometric_tail(sample - value, bad, good, sample, upper=True)
    low, high = max(0, sample - bad), min(good, sample)
    if value > high:
        return 0.0, 0.0
    if value < low:
        return 1.0, 0.0
    point = float(np.exp(log_probability([[value, good - value], [sample - value, bad - sample + value]])))
    total = good + bad
    spread = (sample * (good / total) * (bad / total) * ((total - sample) / max(total - 1, 1))) ** 0.5
    mean = sample * (good / total)
    if value < mean - 9 * spread and low < value:  # the other tail is the short one
        rest, _ = hypergeometric_tail(value - 1, good, bad, sample, upper=False)
        return 1.0 - rest, point
    tail, term, start = 1.0, 1.0, value
    size = int(64 + 10 * spread)
    while start < high:
        x = np.arange(start, min(start + size, high), dtype=np.float64)
        terms = term * np.cumprod((good - x) / (x + 1) * ((sample - x) / (bad - sample + x + 1)))
        tail += float(terms.sum())
        term = float(terms[-1])
        start += x.size
        if start > mean and term < 1e-18 * tail:
            break
    return min(point * tail, 1.0), point


def _hypergeometric(good: IntArray, bad: IntArray, sample: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw n hypergeometric counts, parameters scalar or one per draw, of any size."""
    if int(np.max(good + bad)) < NUMPY_LIMIT:
        return np.asarray(rng.hypergeometric(good, bad, sample, size=n), dtype=np.int64)
    good, bad, sample = (np.broadcast_to(part, (n,)) for part in (good, bad, sample))
    # Ratio of uniforms with the accurate log probability (Stadlober 1990): exact, no window.
    g, b, s = good.astype(float), bad.astype(float), sample.astype(float)
    total = g + b
    mean = s * (g / total)
    spread = np.sqrt(np.maximum(mean * (b / total) * ((total - s) / np.maximum(total - 1, 1)), 0) + 0.5)
    low, high = np.maximum(0, sample - bad), np.minimum(good, sample)
    mode = np.clip(np.floor((s + 1) * ((g + 1) / (total + 2))).astype(np.int64), low, high)
    width = 1.7155277699214135 * spread + 0.8989161620588988  # 2 sqrt(2/e), 3 - 2 sqrt(3/e)
    peak = _log_point(mode, good, bad, sample)
    out = np.empty(n, dtype=np.int64)
    open_ = np.arange(n)
    while open_.size:
        u, v = 1.0 - rng.random(open_.size), rng.random(open_.size)
        x = np.floor(mean[open_] + 0.5 + width[open_] * (v - 0.5) / u)
        inside = (x >= low[open_]) & (x <= high[open_])
        count = np.where(inside, x, mode[open_]).astype(np.int64)
        height = _log_point(count, good[open_], bad[open_], sample[open_]) - peak[open_]
        keep = inside & (2 * np.log(u) <= height)
        out[open_[keep]] = count[keep]
        open_ = open_[~keep]
    return out


def _log_point(x: IntArray, good: IntArray, bad: IntArray, sample: IntArray) -> FloatArray:
    """Return the log probability of hypergeometric counts."""
    drawn = np.stack([x, sample - x], -1)
    left = np.stack([good - x, bad - sample + x], -1)
    return log_probability(np.stack([drawn, left], -2))


def _check(table: ArrayLike, strata: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return table and strata as whole numbers of matching shape."""
    counts = np.asarray(table, dtype=np.int64)
    labels = np.asarray(strata, dtype=np.int64)
    if counts.ndim != 2 or labels.shape != counts.shape[1:]:
        raise ValueError(f"`table` must be (K, C) and `strata` (C,); got {counts.shape} and {labels.shape}.")
    if counts.size and counts.min() < 0:
        raise ValueError(f"`table` must hold counts of at least 0; got {int(counts.min())}.")
    return counts, labels


def draw_tables(table: ArrayLike, strata: ArrayLike, n: int, rng: np.random.Generator) -> IntArray:
    """Draw the tables that random permutations of the group labels would give.

    Inside each stratum of cells the cell totals and each group's total stay as they are.

    Parameters
    ----------
    table : array_like of int, shape (K, C)
        Observed counts, groups by cells.
    strata : array_like of int, shape (C,)
        The stratum of each cell; cells with -1 stay as they are.
    n : int
        Number of draws.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int, shape (n, K, C)
        The draws do not depend on the order of the groups, except that their axis follows it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tables = draw_tables([[3, 1], [1, 3]], [0, 0], 1000, rng)
    >>> tables.shape, tables.sum(2).tolist()[0], tables.sum(1).tolist()[0]
    ((1000, 2, 2), [4, 4], [4, 4])
    """
    counts, labels = _check(table, strata)
    order = np.lexsort(counts.T[::-1])  # canonical: whoever names the groups first does not matter
    out = np.empty((n, *counts.shape), dtype=np.int64)
    out[:, :, labels < 0] = counts[:, labels < 0]
    for stratum in np.unique(labels[labels >= 0]):
        cells = np.flatnonzero(labels == stratum)
        part = _draw_stratum(counts[np.ix_(order, cells)], n, rng)
        out[:, order[:, None], cells] = part
    return out


def _draw_stratum(counts: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw one stratum: group after group, cell after cell, from what is left."""
    groups, cells = counts.shape
    rows, columns = counts.sum(1), counts.sum(0)
    out = np.empty((n, groups, cells), dtype=np.int64)
    if cells == 2 and int(rows.sum()) < NUMPY_LIMIT:  # one call: the first cell's rows spread over the groups
        out[:, :, 0] = rng.multivariate_hypergeometric(rows, int(columns[0]), size=n, method="marginals")
        out[:, :, 1] = rows - out[:, :, 0]
        return out
    pool: IntArray = columns if groups == 2 else np.broadcast_to(columns, (n, cells)).copy()
    for k in range(groups - 1):
        left: IntArray = np.asarray(rows[k])
        rest: IntArray = pool.sum(-1)
        for j in range(cells - 1):
            rest = rest - pool[..., j]
            out[:, k, j] = _hypergeometric(pool[..., j], rest, left, n, rng)
            left = left - out[:, k, j]
        out[:, k, cells - 1] = left
        pool = pool - out[:, k]
    out[:, groups - 1] = pool if groups > 1 else columns
    return out


def enumerate_tables(
    table: ArrayLike, strata: ArrayLike, *, limit: int = 200_000
) -> tuple[IntArray, FloatArray] | None:
    """List every table that permutations of the group labels can give, with its probability.

    Parameters
    ----------
    table, strata
        As in `draw_tables`.
    limit : int
        The most tables to list.

    Returns
    -------
    tables : ndarray of int, shape (M, K, C)
    probability : ndarray, shape (M,)
        Or None instead of both when there are more than `limit` tables.

    Examples
    --------
    >>> tables, probability = enumerate_tables([[3, 1], [1, 3]], [0, 0])
    >>> tables[:, 0, 0].tolist(), (probability * 70).round().tolist()
    ([0, 1, 2, 3, 4], [1.0, 16.0, 36.0, 16.0, 1.0])
    >>> enumerate_tables([[3, 1], [1, 3]], [0, 0], limit=4) is None
    True
    """
    counts, labels = _check(table, strata)
    tables = counts[None].copy()
    log_weight = np.zeros(1)
    for stratum in np.unique(labels[labels >= 0]):
        cells = np.flatnonzero(labels == stratum)
        part = _enumerate_stratum(counts[:, cells], limit // len(tables))
        if part is None:
            return None
        m = len(part)
        tables, log_weight = np.repeat(tables, m, axis=0), np.repeat(log_weight, m)
        repeats = len(tables) // m
        tables[:, :, cells] = np.tile(part, (repeats, 1, 1))
        log_weight = log_weight + np.tile(log_probability(part), repeats)
    weight = np.exp(log_weight)
    return tables, weight / weight.sum()


def _enumerate_stratum(counts: IntArray, limit: int) -> IntArray | None:
    """List the tables of one stratum; every partial table kept can be completed, so none is wasted."""
    groups, cells = counts.shape
    rows, columns = counts.sum(1), counts.sum(0)
    out = np.zeros((1, groups, cells), dtype=np.int64)
    pool = columns[None].copy()  # (M, C)
    for k in range(groups - 1):
        left = np.full(len(out), rows[k])
        for j in range(cells):
            room = pool[:, j + 1 :].sum(1)
            low, high = np.maximum(0, left - room), np.minimum(pool[:, j], left)
            ways = high - low + 1
            size = int(ways.sum())
            if size > limit:
                return None
            source = np.repeat(np.arange(len(out)), ways)
            step = np.arange(size) - np.repeat(np.cumsum(ways) - ways, ways)
            value = low[source] + step
            out, pool, left = out[source], pool[source], left[source] - value
            out[:, k, j] = value
            pool[:, j] -= value
    out[:, groups - 1] = pool
    return out
