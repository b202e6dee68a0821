"""Designs in which the null is true: two groups with one value of a metric that differ in everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand import METRICS
from evenhand.inference.auc import AucSamples
from evenhand.inference.calibration import CalibrationSamples
from evenhand.inference.count_functions import average_odds, balanced_accuracy
from evenhand.inference.count_tables import TableSamples
from evenhand.inference.means import MeanSamples
from evenhand.inference.rates.averages import RateAverage
from evenhand.inference.rates.gaps import RateGaps
from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Samples

SIZES = ((30, 30), (100, 30), (300, 300), (1000, 100), (10000, 300))
BASES = ((0.5, 0.5), (0.8, 0.2), (0.2, 0.02), (0.02, 0.8))
LEVELS = (0.1, 0.5)  # the common value of a rate

POSITIVES, NEGATIVES = ("tpr", "fnr"), ("tnr", "fpr")
CHOSEN, PASSED = ("precision", "fdr"), ("npv", "for")
EVERYONE = ("selection_rate", "accuracy", "error_rate")
MEANS = ("brier", "log_loss", "mean_score", "mae", "mse", "mean_residual")


@dataclass(frozen=True)
class Design:
    """One metric under one true null.

    Parameters
    ----------
    metric : str
        A name of the catalogue.
    sizes : tuple of int
        Rows of the two groups.
    base : tuple of float
        Share of each group that the denominator holds, or the base rate.
    level : float
        The common value, or the shape of the scores.
    kind : str
        What else differs: "plain", "ties", "spread", "weights", "miscalibrated".
    """

    metric: str
    sizes: tuple[int, int]
    base: tuple[float, float] = (0.5, 0.5)
    level: float = 0.5
    kind: str = "plain"

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        (n, m), (p, q) = self.sizes, self.base
        return f"{self.metric} n={n}/{m} base={p}/{q} level={self.level} {self.kind}"


def cells(metric: str, base: float, p: float, group: int) -> np.ndarray:
    """Return the four cell probabilities of a group in which the metric's rate is `p`."""
    other = (0.1, 0.35)[group]  # what the null leaves free differs between the groups
    if metric in POSITIVES:
        hit = p if metric == "tpr" else 1 - p
        return np.array([(1 - base) * (1 - other), (1 - base) * other, base * (1 - hit), base * hit])
    if metric in NEGATIVES:
        wrong = p if metric == "fpr" else 1 - p
        return np.array([base * (1 - wrong), base * wrong, (1 - base) * other, (1 - base) * (1 - other)])
    if metric in CHOSEN:
        right = p if metric == "precision" else 1 - p
        return np.array([(1 - base) * (1 - other), base * (1 - right), (1 - base) * other, base * right])
    if metric in PASSED:
        right = p if metric == "npv" else 1 - p
        return np.array([base * right, (1 - base) * other, base * (1 - right), (1 - base) * (1 - other)])
    if metric == "selection_rate":
        return np.array([(1 - p) * (1 - base), p * (1 - base), (1 - p) * base, p * base])
    if metric in ("accuracy", "error_rate"):
        right = p if metric == "accuracy" else 1 - p
        return np.array([(1 - base) * right, (1 - base) * (1 - right), base * (1 - right), base * right])
    if metric == "f1":
        j = p / (2 - p)
        return np.array([1 - base, base * (1 - j) * (1 - other), base * (1 - j) * other, base * j])
    if metric in ("aod", "aod_abs"):
        # One mean of tpr and fpr; of the absolute difference's null both are equal too.
        apart = 0.15 if metric == "aod_abs" or group == 0 else min(0.4, 0.99 - p, p - 0.01)
        tpr, fpr = p + apart, p - apart
        return np.array([(1 - base) * (1 - fpr), (1 - base) * fpr, base * (1 - tpr), base * tpr])
    # Balanced accuracy: the groups swap sensitivity and specificity.
    up, down = min(p + 0.15, 0.99), p - 0.15 if p + 0.15 <= 0.99 else 2 * p - 0.99
    tpr, tnr = (up, down) if group == 0 else (down, up)
    return np.array([(1 - base) * tnr, (1 - base) * (1 - tnr), base * (1 - tpr), base * tpr])


def rows(design: Design, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw scored rows of two groups in which the metric has one value."""
    parts = []
    for group, (n, base) in enumerate(zip(design.sizes, design.base, strict=True)):
        y = rng.random(n) < base
        wide = design.kind == "spread" and group == 1
        if design.metric == "auc":
            # The same AUC with scores three times as wide: only ranks within a group matter.
            score = rng.normal(size=n) + y * np.sqrt(2) * _normal_quantile(design.level)
            score = score * 3 + 1 if wide else score
            score = np.round(score) if design.kind == "ties" else score
        elif design.metric == "calibration_error":
            shift = 0.1 if design.kind == "miscalibrated" else 0.0  # every score is too high by as much
            raw = rng.beta(*((2, 2) if group == 0 else (1, 3)), size=n) * (1 - shift)
            y = rng.random(n) < raw
            score = raw + shift
        else:
            score = None
        parts.append({"y": y.astype(float), "score": score, "g": np.full(n, group)})
    if design.metric in MEANS:
        return _mean_rows(design, rng)
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}


def _mean_rows(design: Design, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw per-row values with one mean: skewed for losses, with unequal spread on request."""
    values, groups, weights = [], [], []
    for group, n in enumerate(design.sizes):
        wide = 3.0 if design.kind == "spread" and group == 1 else 1.0
        if design.metric == "log_loss":  # mean 0.5, skewed; shape 1 or 1/4
            shape = 1.0 if wide == 1.0 else 0.25
            v = rng.gamma(shape, 0.5 / shape, n)
        elif design.metric in ("brier", "mse", "mae"):  # mean 0.2 on [0, 1]; U-shaped when wide
            a = 1.0 if wide == 1.0 else 0.2
            v = rng.beta(a, 4 * a, n)
        else:
            v = rng.normal(0, wide, n)
        values.append(np.round(v, 1) if design.kind == "ties" else v)
        weights.append(rng.gamma(2, 0.5, n) + 0.1)
        groups.append(np.full(n, group))
    return {"v": np.concatenate(values), "g": np.concatenate(groups), "w": np.concatenate(weights)}


def samples(design: Design, rng: np.random.Generator) -> Samples:
    """Draw one data set of a design and return its two samples."""
    metric = METRICS[design.metric]
    if metric.kind in ("rate", "table", "gaps"):
        table = np.stack(
            [rng.multinomial(n, cells(metric.name, b, design.level, g))
             for g, (n, b) in enumerate(zip(design.sizes, design.base, strict=True))]
        )  # fmt: skip
        if design.kind == "weights":
            cell = np.concatenate([np.repeat(np.arange(4), row) for row in table])
            group = np.repeat([0, 1], table.sum(axis=1))
            inside = np.isin(cell, metric.denominator)
            weight = rng.gamma(2, 0.5, cell.size) + 0.1
            value = np.isin(cell, metric.numerator).astype(float)
            return MeanSamples(value=value[inside], codes=group[inside], n_groups=2, weight=weight[inside])
        if metric.name == "aod":
            return RateAverage(table, average_odds())
        if metric.kind == "table":
            return TableSamples(table, balanced_accuracy())
        if metric.kind == "gaps":
            rates = [METRICS[name] for name in metric.parts]
            parts = {r.name: RateSamples(table, numerator=r.numerator, denominator=r.denominator) for r in rates}
            return RateGaps(parts)
        return RateSamples(
            table, numerator=metric.numerator, denominator=metric.denominator, transform=metric.transform
        )
    data = rows(design, rng)
    if metric.kind == "mean":
        weight = data["w"] if design.kind == "weights" else None
        return MeanSamples(value=data["v"], codes=data["g"], n_groups=2, weight=weight)
    if metric.kind == "auc":
        return AucSamples(score=data["score"], outcome=data["y"], codes=data["g"], n_groups=2)
    return CalibrationSamples(score=data["score"], outcome=data["y"], codes=data["g"], n_groups=2)


def grid() -> Iterator[Design]:
    """Yield the full grid."""
    for name in (*POSITIVES, *NEGATIVES, *CHOSEN, *PASSED, *EVERYONE, "f1"):
        for sizes in SIZES:
            for base in BASES:
                for level in LEVELS if name in ("fnr", "selection_rate", "f1") else (0.2,):
                    yield Design(name, sizes, base, level)
            if name in ("fnr", "selection_rate"):
                yield Design(name, sizes, (0.5, 0.2), 0.3, "weights")
    for sizes in SIZES:
        for base in BASES:
            for level in (0.7, 0.84):
                yield Design("balanced_accuracy", sizes, base, level)
    for name in ("aod", "aod_abs"):
        for sizes in SIZES:
            for base in BASES:
                yield Design(name, sizes, base, 0.5 if name == "aod" else 0.3)
    for sizes in SIZES:
        for base in ((0.5, 0.5), (0.8, 0.2), (0.3, 0.1)):
            for level in (0.7, 0.95):
                yield Design("auc", sizes, base, level)
        for kind in ("ties", "spread"):
            yield Design("auc", sizes, (0.5, 0.3), 0.8, kind)
    for name in MEANS:
        whole = name in ("brier", "log_loss", "mean_score")  # the others average values of the same kinds
        for sizes in SIZES if whole else SIZES[1:4]:
            for kind in ("plain", "spread", "ties", "weights") if whole else ("plain", "spread"):
                yield Design(name, sizes, kind=kind)
            if whole and sizes[0] != sizes[1]:
                yield Design(name, sizes[::-1], kind="spread")
    for sizes in SIZES:
        for kind in ("plain", "miscalibrated"):
            yield Design("calibration_error", sizes, kind=kind)


def short() -> Iterator[Design]:
    """Yield one hard design per metric."""
    for name in (*POSITIVES, *NEGATIVES, *CHOSEN, *PASSED, *EVERYONE, "f1"):
        yield Design(name, (150, 60), (0.5, 0.1), 0.2)
    yield Design("fnr", (150, 60), (0.5, 0.3), 0.2, "weights")
    yield Design("balanced_accuracy", (150, 60), (0.5, 0.2), 0.75)
    yield Design("aod", (60, 40), (0.5, 0.3), 0.4)
    yield Design("aod_abs", (60, 40), (0.5, 0.3), 0.4)
    yield Design("auc", (150, 80), (0.5, 0.25), 0.8)
    yield Design("auc", (150, 80), (0.5, 0.25), 0.8, "ties")
    for name in MEANS:
        yield Design(name, (150, 60), kind="spread" if name != "log_loss" else "plain")
    yield Design("calibration_error", (300, 150))


def _normal_quantile(p: float) -> float:
    from scipy import special

    return float(special.ndtri(p))
