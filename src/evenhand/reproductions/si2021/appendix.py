"""Appendix B.1: the statistic of a fair classifier against its limit law."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from scipy import special, stats

from evenhand.arrays import FloatArray
from evenhand.audits.projection import audit_projection
from evenhand.intake.data import AuditData
from evenhand.kernels.shared.seeds import published_stream
from evenhand.kernels.transport.limit_law import limit_law
from evenhand.report.document import Block, Table
from evenhand.report.figures import Frame, axis, figure, lines, number
from evenhand.report.theme import SERIES
from evenhand.reproductions.paper import Claim, Parts, Result, Settings, near

SETTINGS = {"sizes": [30, 100, 500, 1000, 2000], "samples": 2000, "alpha": 0.05, "seed": 2021}
SHORT = {**SETTINGS, "sizes": [30, 500], "samples": 200}

_CELLS = ((1, 1, 0.4), (0, 1, 0.1), (1, 0, 0.4), (0, 0, 0.1))  # group, outcome, share
_VARIANCE = 5.0  # of the feature that decides; the other feature does not matter
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_EDGES = np.linspace(0.0, 4.0, 21)


def limit_weight() -> float:
    """Return the weight of the limit law from the design: half the variance over the density at the boundary."""
    opportunity = sum(1 / share for _, outcome, share in _CELLS if outcome == 1)  # E phi^2
    density = 1 / math.sqrt(2 * math.pi * _VARIANCE)
    law = limit_law(np.array([[density * opportunity]]), np.array([[0.25 * opportunity]]), 1.0)
    return float(law.weights[0])


def run_appendix(settings: Settings, parts: Parts) -> Result:
    """Draw samples of each size and compare the statistic with its limit."""
    return {str(n): parts.keep(f"N-{n}", {**settings, "n": n}, partial(_size, n, settings)) for n in settings["sizes"]}


def _size(n: int, settings: Settings) -> dict[str, Any]:
    rng = published_stream(settings["seed"], n)
    many = [round(n * share) for _, _, share in _CELLS]
    group = np.repeat([str(a) for a, _, _ in _CELLS], many)
    outcome = np.repeat([y for _, y, _ in _CELLS], many)
    found, rejected = [], 0
    for _ in range(settings["samples"]):
        x = rng.normal(0.0, math.sqrt(_VARIANCE), n)
        data = AuditData.from_arrays(outcome=outcome, decision=(x >= 0).astype(int), groups={"a": group})
        result = audit_projection(
            data, criterion="equal_opportunity", distance=np.abs(x), alpha=settings["alpha"], beside=False
        )
        if result.evidence[0].statistic is not None:
            found.append(result.evidence[0].statistic)
            rejected += result[0].pvalue <= settings["alpha"]
    statistic, weight = np.array(found), limit_weight()
    cut = weight * float(stats.chi2.isf(settings["alpha"], 1))
    return {
        "samples": len(found),
        "not computable": settings["samples"] - len(found),
        "rejected": int(rejected),
        "beyond the limit": int(np.sum(statistic > cut)),
        "mean": float(statistic.mean()),
        "deviation": float(statistic.std(ddof=1)),
        "quantiles": np.quantile(statistic, _LEVELS).tolist(),
        "histogram": np.histogram(statistic, bins=_EDGES)[0].tolist(),
        "distance": float(stats.kstest(statistic, _limit, args=(weight,)).statistic),
    }


def _limit(x: FloatArray, weight: float) -> FloatArray:
    return np.asarray(special.chdtr(1.0, np.maximum(x, 0.0) / weight))


def claim_appendix(result: Result, settings: Settings) -> list[Claim]:
    """Compare the weight, the rejections and the shape with the limit law."""
    weight = limit_weight()
    claims = [
        Claim(
            claim="the limit is 0.7006 times a chi-square with one degree of freedom",
            printed="0.7006",
            ours=f"{weight:.4f}",
            reached="yes" if round(weight, 4) == 0.7006 else "no",
            rule="equal after rounding; computed from the design",
        )
    ]
    for n, line in result.items():
        share, used = line["rejected"] / line["samples"], line["samples"]
        error = math.sqrt(settings["alpha"] * (1 - settings["alpha"]) / used)
        lost = f" {line['not computable']} samples could not be tested." if line["not computable"] else ""
        claims.append(
            Claim(
                claim=f"N = {n}: rejection at the nominal level",
                printed=f"{settings['alpha']:g}",
                ours=f"{share:.4f} ± {error:.4f}",
                reached=near(settings["alpha"], share, error),
                rule="within three standard errors",
                remark=f"With the threshold of the limit law itself, {line['beyond the limit'] / used:.4f}.{lost}",
            )
        )
    largest = max(result, key=int)
    bound = float(stats.kstwobign.isf(0.001)) / math.sqrt(result[largest]["samples"])
    distances = {n: line["distance"] for n, line in result.items()}
    claims.append(
        Claim(
            claim=f"N = {largest}: the statistic has the shape of the limit law",
            printed="histogram only",
            ours=f"largest difference of the distribution functions {distances[largest]:.4f}",
            reached="yes" if distances[largest] <= bound else "no",
            rule=f"at most {bound:.4f}, which chance alone exceeds once in a thousand (Kolmogorov)",
            remark="At the sizes: " + ", ".join(f"N = {n} {d:.4f}" for n, d in distances.items()) + ".",
        )
    )
    return claims


def draw_appendix(result: Result) -> list[Block]:
    """Draw quantiles against the limit's, and the histograms with the limit's expectation."""
    weight = limit_weight()
    limit = [weight * float(stats.chi2.ppf(level, 1)) for level in _LEVELS]
    rows = [
        {"x": number(x), "y": number(y), "series": f"N = {n}"}
        for n, line in result.items()
        for x, y in zip(limit, line["quantiles"], strict=True)
    ]
    rows += [{"x": number(x), "y": number(x), "series": "limit law"} for x in limit]
    blocks: list[Block] = [
        lines(
            "Quantiles of the statistic against those of its limit",
            "A sample whose statistic follows the limit lies on its line.",
            rows,
            Frame(x="quantile of the limit law", y="quantile of the statistic", points=True),
        )
    ]
    expected = np.diff(_limit(_EDGES, weight))
    for n, line in result.items():
        blocks.append(_shape(n, line, expected))
    blocks.append(
        Table(
            title="Mean and standard deviation of the statistic",
            head=("N", "Samples", "Mean", "Deviation", "Mean of the limit", "Deviation of the limit"),
            rows=tuple(
                (n, s["samples"], s["mean"], s["deviation"], weight, weight * math.sqrt(2)) for n, s in result.items()
            ),
        )
    )
    return blocks


def _shape(n: str, line: dict[str, Any], expected: FloatArray) -> Block:
    rows = [
        {
            "low": number(a),
            "high": number(b),
            "count": c,
            "middle": number((a + b) / 2),
            "expected": number(e * line["samples"]),
        }
        for a, b, c, e in zip(_EDGES[:-1], _EDGES[1:], line["histogram"], expected, strict=True)
    ]
    x = {**axis("low", "statistic"), "bin": {"binned": True}, "axis": {"grid": False}}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "bar", "color": SERIES[0], "opacity": 0.45, "binSpacing": 1},
            "encoding": {"x": x, "x2": {"field": "high"}, "y": axis("count", "samples", axis={"tickCount": 3})},
        },
        {
            "mark": {"type": "line", "color": SERIES[1], "strokeWidth": 2, "point": True},
            "encoding": {"x": axis("middle", "statistic"), "y": axis("expected", "samples")},
        },
    ]
    columns = {"low": "From", "high": "To", "count": "Samples", "expected": "Expected under the limit law"}
    return figure(
        f"N = {n}: the statistic and its limit",
        "Bars: samples. Line: what the limit law expects in each bar.",
        rows, layers, columns=columns, height=120,
        legend=(("samples", SERIES[0]), ("limit law", SERIES[1])),
    )  # fmt: skip
