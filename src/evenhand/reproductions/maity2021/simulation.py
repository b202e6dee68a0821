"""Figures 1 and 3: two groups in the plane, and T_n of logistic models over a grid of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize, special

from evenhand.arrays import FloatArray
from evenhand.audits.individual import audit_individual
from evenhand.intake import AuditData
from evenhand.kernels.flow.gradient_flow import step_sizes
from evenhand.kernels.shared.seeds import published_stream
from evenhand.report.document import Block
from evenhand.report.figures import axis, figure, layer, word
from evenhand.report.heat_map import HeatFrame, heat_map
from evenhand.report.theme import colour_of, legend_of
from evenhand.reproductions.paper import Claim, Parts, Result, Settings

ALPHA, TOLERANCE, PENALTY = 0.05, 1.25, 100.0
DEGREES = (0, 5, 10)
_ROWS, _STEP, _STEPS = 400, 0.02, 400
_COMPARED = ((1.2, 0.0), (2.0, 2.0))  # models on which Euler steps are compared with adaptive ones
_CROSSINGS = {
    "theta_1 > 0": (1, 1.0),
    "theta_1 < 0": (1, -1.0),
    "theta_1 > 0, intercept twice": (2, 1.0),
    "theta_1 < 0, intercept twice": (2, -1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Features, labels and groups of appendix E.1."""

    X: FloatArray  # (people, 2)
    y: FloatArray
    group: FloatArray

    @property
    def data(self) -> AuditData:
        """The same as data to audit."""
        return AuditData.from_arrays(outcome=self.y, features=self.X, groups={"group": self.group.astype(int)})


def draw(seed: int) -> Sample:
    """Draw a sample, with labels from features centred by group; as printed every label would be 1."""
    rng = published_stream(2021, seed)
    g = (rng.random(_ROWS) < 0.1).astype(float)
    mean = np.column_stack([np.where(g == 1, 1.5, -1.5), np.zeros(_ROWS)])
    X = mean + 0.25 * rng.normal(size=(_ROWS, 2))
    y = (((X - mean) * _weights(g)).sum(axis=1) + 0.01 * rng.normal(size=_ROWS) > 0).astype(float)
    return Sample(X=X, y=y, group=g)


def fitted_intercept(sample: Sample, theta: FloatArray) -> float:
    """Return the intercept that fits best for given coefficients."""
    z = sample.X @ theta
    return float(optimize.brentq(lambda b: special.expit(z + b).sum() - sample.y.sum(), -60, 60, xtol=1e-12))


def logistic_model(sample: Sample, theta: Sequence[float], times: int = 1) -> Any:
    """Return a logistic regression with given coefficients and the intercept that fits best, or a multiple of it."""
    from sklearn.linear_model import LogisticRegression

    bias = fitted_intercept(sample, np.asarray(theta))
    model = LogisticRegression()
    model.coef_, model.intercept_ = np.array([theta], dtype=float), np.array([times * bias])
    model.classes_, model.n_features_in_ = np.array([0, 1]), 2
    return model


def statistic(
    sample: Sample, theta: Sequence[float], degrees: float = 0.0, *, times: int = 1, method: str = "euler"
) -> float:
    """Return T_n of one model by the individual audit, under the rank-one metric turned by so many degrees."""
    turn = np.radians(degrees)
    kept = np.array([-np.sin(turn), np.cos(turn)])  # the direction that is not discounted
    adaptive = {"method": "adaptive", "step": float(step_sizes(_STEP, _STEPS, "decay").sum()) / _STEPS}
    euler = {"method": "euler", "step": _STEP, "schedule": "decay", "allow_unstable": True}
    result = audit_individual(
        sample.data,
        model=logistic_model(sample, theta, times),
        similarity=np.outer(kept, kept),
        tolerance=TOLERANCE,
        alpha=ALPHA,
        limits="normal",
        scale="none",
        limit="none",
        penalty=PENALTY,
        steps=_STEPS,
        flow_tolerance=1e-6,
        refits=0,
        correction="none",
        rng=0,
        **(adaptive if method == "adaptive" else euler),
    )
    return float(result.evidence[0].to_dict()["T_n"])


def crossing(sample: Sample, times: int = 1, sign: float = 1.0) -> float:
    """Return the smallest |theta_1| (theta_2 = 0, theta_1 of the given sign) at which T_n passes the tolerance."""

    def excess(size: float) -> float:
        return statistic(sample, (sign * size, 0.0), times=times) - TOLERANCE

    high = next(size for size in np.arange(0.2, 4.01, 0.2) if excess(size) > 0)
    return float(optimize.brentq(excess, high - 0.2, high, xtol=1e-4))


def run_figure_1(settings: Settings, parts: Parts) -> Result:
    """Return the three maps of one sample, the crossings over samples, and Euler steps against adaptive ones."""
    cells, samples = settings["cells"], settings["samples"]
    grid = np.linspace(-4, 4, cells)
    maps = {
        str(degrees): parts.keep(f"map {degrees}", {"cells": cells, "degrees": degrees}, partial(_map, grid, degrees))
        for degrees in DEGREES
    }
    crossings = {}
    for name, (times, sign) in _CROSSINGS.items():
        told = {"samples": samples, "times": times, "sign": sign}
        crossings[name] = parts.keep(f"crossings {times} {sign:+.0f}", told, partial(_crossings, **told))
    both = {m: [statistic(draw(0), theta, method=m) for theta in _COMPARED] for m in ("euler", "adaptive")}
    return {"grid": grid.round(9).tolist(), "maps": maps, "crossings": crossings, "methods": both}


def _map(grid: FloatArray, degrees: int) -> list[list[float]]:
    sample = draw(0)
    return [[float(f"{statistic(sample, (a, b), degrees):.5g}") for b in grid] for a in grid]


def _crossings(samples: int, times: int, sign: float) -> list[float]:
    return [crossing(draw(seed), times=times, sign=sign) for seed in range(samples)]


def claims_of_figure_1(result: Result, settings: Settings) -> Sequence[Claim]:
    """Judge what the text says of the maps."""
    grid, maps = np.array(result["grid"]), {d: np.array(result["maps"][str(d)]) for d in DEGREES}
    right = maps[0]  # (theta_1, theta_2)
    fair = np.abs(grid) < 1e-9
    spread = float((right.max(axis=1) / right.min(axis=1) - 1).max())
    decided = (right > TOLERANCE).any(axis=1) == (right > TOLERANCE).all(axis=1)
    rows = right.mean(axis=1)
    rising = bool((np.diff(rows[grid >= -1e-9]) > 0).all() and (np.diff(rows[grid <= 1e-9]) < 0).all())
    largest = {d: float(m[fair].max()) for d, m in maps.items()}
    more = {d: int(((maps[d] > TOLERANCE) & (right <= TOLERANCE)).sum()) for d in DEGREES[1:]}
    fewer = {d: int(((maps[d] <= TOLERANCE) & (right > TOLERANCE)).sum()) for d in DEGREES[1:]}
    euler, adaptive = result["methods"]["euler"], result["methods"]["adaptive"]
    return [
        *(_crossing_claim(name, values) for name, values in result["crossings"].items()),
        Claim(
            claim="T_n grows with |theta_1| under the right metric",
            printed="increases as theta_1 deviates from 0",
            ours="it does" if rising else "it does not",
            reached="yes" if rising else "no",
            rule="the mean over theta_2 grows at each step of the grid, on both sides",
        ),
        Claim(
            claim="T_n does not depend on theta_2 under the right metric",
            printed="independent of theta_2",
            ours=f"varies by up to {100 * spread:.0f} %; the decision is the same for all theta_2 at "
            f"{int(decided.sum())} of {grid.size} values of theta_1",
            reached="yes" if spread < 0.05 else "in part" if decided.all() else "no",
            rule="varies by less than 5 %; in part: the decision never changes",
            remark="The intercept is fitted anew for each pair, and the loss is not linear.",
        ),
        *(
            Claim(
                claim=f"theta_1 = 0 is not rejected, metric turned by {d} degrees",
                printed="not rejected",
                ours=f"largest T_n {largest[d]:.3f}",
                reached="yes" if largest[d] <= TOLERANCE else "no",
                rule="T_n at most 1.25 for every theta_2",
            )
            for d in DEGREES
        ),
        *(
            Claim(
                claim=f"Turned by {d} degrees, models with larger |theta_2| begin to be rejected",
                printed="yes",
                ours=f"{more[d]} cells more rejected, {fewer[d]} fewer, of {right.size}",
                reached="yes" if more[d] > 0 else "no",
                rule="some cell is rejected that is not under the right metric",
            )
            for d in DEGREES[1:]
        ),
        Claim(
            claim="With a tolerance near 1 all models with theta_1 other than 0 are rejected, and none with 0",
            printed="yes",
            ours=f"smallest T_n {right[~fair].min():.3f} elsewhere, largest {largest[0]:.3f} at 0",
            reached="yes" if right[~fair].min() > largest[0] else "no",
            rule="a tolerance exists that parts the two",
            remark="People also move a little along the priced coordinate, which raises T_n where theta_2 is large.",
        ),
        Claim(
            claim="The decaying Euler steps follow the flow (two models)",
            printed="–",
            ours=f"T_n {euler[0]:.4f} and {euler[1]:.4f}; adaptive {adaptive[0]:.4f} and {adaptive[1]:.4f}",
            reached="not claimed",
            rule="adaptive steps with an error of 1e-6",
            remark="The first two steps exceed the stability limit of .01, which the audit refuses unless allowed.",
        ),
    ]


def _crossing_claim(name: str, values: Sequence[float]) -> Claim:
    found = np.array(values)
    spread = f" ± {found.std(ddof=1):.3f}" if found.size > 1 else ""
    first = name == "theta_1 > 0"
    remarks = {
        "theta_1 > 0": "The model as stated. The printed value was read off a map in steps of .4.",
        "theta_1 > 0, intercept twice": "A slip in the authors' script. It moves the crossing towards the printed "
        "value and spreads it over samples.",
    }
    return Claim(
        claim=f"T_n crosses 1.25 at |theta_1| ({name}, theta_2 = 0)",
        printed="approximately 1.5" if first else "–",
        ours=f"{found.mean():.3f}{spread} over {found.size} samples",
        reached=("yes" if abs(found.mean() - 1.5) <= 0.2 else "no") if first else "not claimed",
        rule="within .2, half a step of the printed grid" if first else "none printed",
        remark=remarks.get(name, ""),
    )


def figures_of_figure_1(result: Result) -> Sequence[Block]:
    """Draw the three maps."""
    grid = result["grid"]
    frame = HeatFrame(
        x="theta 1", y="theta 2", value="T_n", threshold=TOLERANCE, below="not rejected", above="rejected"
    )
    caption = (
        "Lower limit T_n of the loss ratio of a logistic model with these coefficients. The line parts the models that "
        "are rejected, T_n above 1.25; the farther from 1.25, the stronger the colour, each side on its own scale."
    )
    return [
        heat_map(
            f"Figure 1: the metric {'as it should be' if degrees == 0 else f'turned by {degrees} degrees'}",
            caption,
            grid,
            grid,
            np.array(result["maps"][str(degrees)]).T.tolist(),
            frame,
        )
        for degrees in DEGREES
    ]


def run_figure_3(settings: Settings, parts: Parts) -> Result:
    """Return one sample, and for several seeds the shares of the smaller group and of label 1."""
    drawn = [draw(seed) for seed in range(settings["samples"])]
    return {
        "points": drawn[0].X.round(4).tolist(),
        "label": drawn[0].y.astype(int).tolist(),
        "group": drawn[0].group.astype(int).tolist(),
        "minority": [float(s.group.mean()) for s in drawn],
        "positive": [float(s.y.mean()) for s in drawn],
        "differences": [(s.X[s.group == 1].mean(axis=0) - s.X[s.group == 0].mean(axis=0)).tolist() for s in drawn],
        "printed_positive": [_printed_labels(seed) for seed in range(settings["samples"])],
    }


def _printed_labels(seed: int) -> float:
    """Return the share of label 1 when labels are drawn as E.1 prints them, from features that are not centred."""
    sample = draw(seed)
    noise = 0.01 * published_stream(2021, seed, 1).normal(size=_ROWS)
    return float(((sample.X * _weights(sample.group)).sum(axis=1) + noise > 0).mean())


def _weights(group: FloatArray) -> FloatArray:
    return np.column_stack([np.where(group == 1, 0.2, -0.2), np.full(group.size, -0.01)])


def claims_of_figure_3(result: Result, settings: Settings) -> Sequence[Claim]:
    """Judge the shape of the simulated data."""
    minority, gaps = np.array(result["minority"]), np.array(result["differences"])
    error = float(np.sqrt(0.1 * 0.9 / (_ROWS * minority.size)))
    printed = float(np.mean(result["printed_positive"]))
    return [
        Claim(
            claim="Group 1 is the minority",
            printed=".1",
            ours=f"{minority.mean():.3f} over {minority.size} samples",
            reached="yes" if abs(minority.mean() - 0.1) <= 3 * error else "no",
            rule=f"within three binomial standard errors of {error:.3f}",
        ),
        Claim(
            claim="The groups differ mainly in the first coordinate",
            printed="3 and 0",
            ours=f"{gaps[:, 0].mean():.2f} and {gaps[:, 1].mean():.2f}",
            reached="yes" if np.abs(gaps[:, 0]).min() > 10 * np.abs(gaps[:, 1]).max() else "no",
            rule="in each sample the first difference of means is more than ten times any second one",
        ),
        Claim(
            claim="Labels drawn as E.1 prints them take both values",
            printed="implied",
            ours=f"{100 * printed:.1f} % are 1",
            reached="yes" if printed < 0.95 else "no",
            rule="at most 95 % are 1",
            remark=f"Features must be centred by group first; then {100 * np.mean(result['positive']):.1f} % are 1.",
        ),
    ]


def figures_of_figure_3(result: Result) -> Sequence[Block]:
    """Draw the sample."""
    names = {
        (0, 0): "group 0, label 0",
        (0, 1): "group 0, label 1",
        (1, 0): "group 1, label 0",
        (1, 1): "group 1, label 1",
    }
    rows = [
        {"x": x, "y": y, "series": names[group, label]}
        for (x, y), label, group in zip(result["points"], result["label"], result["group"], strict=True)
    ]
    rows.sort(key=lambda row: str(row["series"]))
    series = [str(row["series"]) for row in rows]
    points = layer(
        {"type": "point", "filled": True, "size": 28, "opacity": 0.7},
        x=axis("x", "first coordinate", axis={"grid": False}),
        y=axis("y", "second coordinate"),
        color=colour_of("series", series),
        tooltip=[word("series", "series"), axis("x", "first"), axis("y", "second")],
    )
    columns = {"series": "Series", "x": "First coordinate", "y": "Second coordinate"}
    caption = "400 people in two groups that differ in the first coordinate, which should not matter."
    return [figure("Figure 3: simulated data", caption, rows, [points], columns=columns, legend=legend_of(series))]
