"""Table I, figures 1 and 2 and the quantile plots: the network on Adult by race, before and after mitigation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.report.document import Block, Table, Text
from evenhand.report.figures import Frame, Row, axis, figure, layer, lines, number, rule, word
from evenhand.report.quantile_chart import quantile_chart
from evenhand.report.theme import colour_of, legend_of
from evenhand.reproductions.monjezi2025.census import MODELS_SHOWN, maximum_density, rises, study
from evenhand.reproductions.paper import Claim, Parts, Result, Settings

_HORIZONS = (100, 1_000, 10_000, 1_000_000)
_LINEAR = 0.99  # correlation of a quantile plot that is a line
_NAMES = {
    "as trained": "network as trained",
    "expected decision": "exponentiated gradient, expected decision",
    "mean probability": "exponentiated gradient, mean probability",
}


def _kept(made: Mapping[str, Any], *fields: str) -> dict[str, Any]:
    """Return the networks with these fields of each group."""
    return {
        "members": made["members"],
        "models": {
            label: {
                **{name: value for name, value in model.items() if name != "groups"},
                "groups": {g: {f: tail[f] for f in fields} for g, tail in model["groups"].items()},
            }
            for label, model in made["models"].items()
        },
    }


def run_table_i(settings: Settings, parts: Parts) -> dict[str, Any]:
    """Return accuracy, average odds difference and return levels of each network."""
    return _kept(study(settings, parts), "rows", "mean", "maximum", "levels")


def run_figure_1(settings: Settings, parts: Parts) -> dict[str, Any]:
    """Return people's changes of score, those beyond the threshold apart."""
    made = _kept(study(settings, parts), "rows", "mean", "deviation", "doubt", "extreme", "others", "fit")
    for model in made["models"].values():
        for tail in model["groups"].values():
            fit = tail.pop("fit")
            tail["threshold"] = None if fit is None else fit["threshold"]
            tail["k"] = None if fit is None else fit["k"]
    return made


def run_figure_2(settings: Settings, parts: Parts) -> dict[str, Any]:
    """Return the laws of the largest change in the horizon."""
    made = _kept(study(settings, parts), "fit", "levels")
    for model in made["models"].values():
        for tail in model["groups"].values():
            if tail["fit"] is not None:
                tail["fit"] = {name: value for name, value in tail["fit"].items() if name != "quantiles"}
            tail["level"] = tail.pop("levels").get(f"{settings['horizon']}")
    return made


def run_quantile_plots(settings: Settings, parts: Parts) -> dict[str, Any]:
    """Return fitted and observed quantiles of each tail and what its checks say."""
    return _kept(study(settings, parts), "fit", "doubt")


def _group(model: Mapping[str, Any], label: str) -> Any:
    return next(tail for name, tail in model["groups"].items() if name.endswith(label))


def _level(model: Mapping[str, Any], label: str, horizon: int) -> list[float]:
    known: list[float] | None = _group(model, label)["levels"].get(f"{horizon}")
    return known or [math.nan] * 3


def _said(level: list[float]) -> str:
    return "not known" if math.isnan(level[0]) else f"{level[0]:.3f} [{level[1]:.3f}, {level[2]:.3f}]"


def claims_of_table_i(result: Result, settings: Settings) -> list[Claim]:
    """Judge what section II says of levels before and after mitigation."""
    models = result["models"]
    before = models["as trained"]
    black, white = (_level(before, group, settings["horizon"]) for group in ("Black", "White"))
    made = [
        Claim(
            claim="The worst case is worse for Black than for White people",
            printed="digits lost",
            ours=f"in {settings['horizon']:,} decisions Black {_said(black)}, White {_said(white)}",
            reached="yes" if rises(white, black) == "shown" else "no",
            rule="95 % intervals that do not meet",
        )
    ]
    for label in MODELS_SHOWN[1:]:
        after = models[label]
        levels = {group: _level(after, group, settings["horizon"]) for group in ("White", "Black")}
        how = {g: rises(_level(before, g, settings["horizon"]), level) for g, level in levels.items()}
        shown = sum(word_ == "shown" for word_ in how.values())
        said = {"shown": "shown to rise", "in the estimate": "higher, not shown", "no": "not higher"}
        made.append(
            Claim(
                claim=f"Exponentiated gradient raises the level of both groups: {label}",
                printed="both rise",
                ours="; ".join(f"{g} {_said(levels[g])}, {said[how[g]]}" for g in levels),
                reached="yes" if shown == 2 else "in part" if shown else "no",
                rule=f"intervals at {settings['horizon']:,} decisions that do not meet, in both groups; in part: in "
                "one",
                remark="The paper repeats its queries and averages, which is the expected decision."
                if label == "expected decision"
                else "",
            )
        )
    after = models["expected decision"]
    made.append(
        Claim(
            claim="Exponentiated gradient improves the average odds difference at little loss of accuracy",
            printed="digits lost",
            ours=f"AOD {before['aod']:.3f} to {after['aod']:.3f}, accuracy {before['accuracy']:.3f} to "
            f"{after['accuracy']:.3f}",
            reached="yes"
            if abs(after["aod"]) < abs(before["aod"]) and before["accuracy"] - after["accuracy"] <= 0.01
            else "no",
            rule="AOD smaller in size on other rows, at most one point of accuracy lost",
        )
    )
    return made


def figures_of_table_i(result: Result) -> list[Block]:
    """Draw and list the return levels."""
    rows: list[Row] = []
    cells = []
    for label, model in result["models"].items():
        for group, tail in model["groups"].items():
            name = f"{group.split('=')[1]}, {'as trained' if label == 'as trained' else 'EG, ' + label}"
            levels = {float(m): level for m, level in tail["levels"].items()}
            rows += [
                {"x": m, "y": number(v[0]), "low": number(v[1]), "high": number(v[2]), "series": name}
                for m, v in levels.items()
            ]
            cells.append(
                (_NAMES[label], group, model["accuracy"], *(_said(levels.get(m, [math.nan] * 3)) for m in _HORIZONS))
            )
    caption = (
        "The change of score that one person in so many decisions exceeds, had they been recorded as the other group, "
        "with "
        "95 % intervals. Horizons without a level are left out: the rows do not reach them and the fit is not believed."
    )
    chart = lines(
        "Table I: return levels of the network on Adult by race",
        caption,
        rows,
        Frame(
            x="decisions",
            y="change of score",
            none=0.0,
            x_log=True,
            x_values=[10.0**j for j in range(1, 7)],
            points=True,
        ),
    )
    head = ("Network", "Group", "Accuracy", *(f"{m:,} decisions" for m in _HORIZONS))
    return [chart, Table(title="Return levels", head=head, rows=tuple(cells))]


def claims_of_figure_1(result: Result, settings: Settings) -> list[Claim]:
    """Judge the means that section II compares."""
    black, white = (_group(result["models"]["as trained"], group) for group in ("Black", "White"))
    errors = [tail["deviation"] / math.sqrt(tail["rows"]) for tail in (black, white)]
    gap, error = black["mean"] - white["mean"], math.hypot(*errors)
    return [
        Claim(
            claim="On average the changes of score favour White people",
            printed="digits lost",
            ours=f"mean and deviation: White {white['mean']:.4f} and {white['deviation']:.4f}, Black "
            f"{black['mean']:.4f} and "
            f"{black['deviation']:.4f}",
            reached="yes" if gap > 3 * error else "no",
            rule="the mean of Black people is higher by more than three standard errors",
        )
    ]


def figures_of_figure_1(result: Result) -> list[Block]:
    """Draw the changes of score with the threshold, a chart for each network and group."""
    return [
        _scatter(f"{_NAMES[label]}, {group.split('=')[1]}", tail)
        for label, model in result["models"].items()
        for group, tail in model["groups"].items()
    ]


def _scatter(name: str, tail: Mapping[str, Any]) -> Block:
    rows: list[Row] = [
        {"x": x, "y": y, "series": series}
        for series, points in (("others", tail["others"]), ("extreme values", tail["extreme"]))
        for x, y in points
    ]
    shown = sorted({r["series"] for r in rows}, reverse=True)
    layers = [
        rule(0.0, "y"),
        *([] if tail["threshold"] is None else [rule(tail["threshold"], "y", dashed=True)]),
        layer(
            {"type": "point", "filled": True, "size": 18, "opacity": 0.7},
            x=axis("x", "person", axis={"grid": False, "tickCount": 5}),
            y=axis("y", "change of score", axis={"tickCount": 5}),
            color=colour_of("series", shown),
            tooltip=[word("series", "changes"), axis("y", "change of score", format=".4f")],
        ),
    ]
    points = f"{len(tail['others'])} of {tail['rows']:,} people drawn at random"
    caption = (
        f"{points}; the {tail['k']} largest changes lie above the dashed threshold, {len(tail['extreme'])} of them "
        "drawn."
        if tail["k"]
        else f"{points}. No threshold: {tail['doubt']}."
    )
    return figure(
        f"Figure 1: {name}",
        caption,
        rows,
        layers,
        columns={"series": "Changes", "x": "Person", "y": "Change of score"},
        height=150,
        legend=legend_of(shown),
    )


def claims_of_figure_2(result: Result, settings: Settings) -> list[Claim]:
    """Judge the locations that section II compares."""
    model = result["models"]["as trained"]
    fits = {group: _group(model, group)["fit"] for group in ("White", "Black")}
    if any(fit is None for fit in fits.values()):
        return []
    said = {
        g: f"{g} location {f['location']:.3f}, scale {f['scale']:.3f}, shape {f['shape']:.2f}" for g, f in fits.items()
    }
    return [
        Claim(
            claim="The law of extremes of Black people lies above that of White people",
            printed="digits lost",
            ours="; ".join(said.values()),
            reached="yes" if fits["Black"]["location"] > fits["White"]["location"] else "no",
            rule=f"location at {settings['horizon']:,} decisions; table I gives its interval",
            remark="Both fits are believed."
            if all(f["believed"] for f in fits.values())
            else "Not both fits are believed beyond the rows; at this horizon the rows themselves reach.",
        )
    ]


def figures_of_figure_2(result: Result) -> list[Block]:
    """Draw the densities of the largest change."""
    rows: list[Row] = []
    missing = []
    for label, model in result["models"].items():
        for group, tail in model["groups"].items():
            fit, name = tail["fit"], f"{group.split('=')[1]}, {_NAMES[label]}"
            if fit is None:
                missing.append(name)
                continue
            far = fit["location"] + 7 * fit["scale"]
            end = min(far, fit["end"] if fit["end"] is not None else far)
            grid = np.linspace(fit["location"] - 2.5 * fit["scale"], end, 60)
            density = maximum_density(grid, fit["location"], fit["scale"], fit["shape"])
            rows += [{"x": number(x), "y": number(y), "series": name} for x, y in zip(grid, density, strict=True)]
    caption = (
        "Density of the largest change of score in 1,000 decisions by the fitted law (generalised extreme value), "
        "whether or "
        "not the fit is believed."
    )
    chart = lines("Figure 2: laws of extremes", caption, rows, Frame(x="change of score", y="density"))
    why = f"No law is fitted to changes that come in steps: {'; '.join(missing)}."
    return [chart, *([Text(text=why, kind="note")] if missing else [])]


def claims_of_quantile_plots(result: Result, settings: Settings) -> list[Claim]:
    """Judge whether tails that print calls linear are."""
    made = []
    for group in ("White", "Black"):
        tail = _group(result["models"]["as trained"], group)
        fit = tail["fit"]
        ours = (
            f"no fit: {tail['doubt']}"
            if fit is None
            else f"correlation {fit['correlation']:.4f}, goodness of fit p {fit['fits']:.2g}, type {fit['type']}, "
            f"{'believed' if fit['believed'] else 'not believed beyond the rows'}"
        )
        good = fit is not None and fit["correlation"] >= _LINEAR and fit["fits"] >= 0.1
        made.append(
            Claim(
                claim=f"The tail of {group} people is finite and its quantile plot a line",
                printed="III finite linear",
                ours=ours,
                reached="yes" if good and fit["type"] == "III" else "in part" if good else "no",
                rule=f"correlation at least {_LINEAR} and goodness of fit not in doubt (p at least 0.1), type III; in "
                "part: "
                "another type",
                remark="" if fit is None or fit["believed"] else f"Our audit: {tail['doubt']}.",
            )
        )
    return made


def figures_of_quantile_plots(result: Result) -> list[Block]:
    """Draw observed against fitted quantiles with the verdict on each fit."""
    made: list[Block] = []
    for label, model in result["models"].items():
        rows: list[Row] = []
        verdicts = []
        for group, tail in model["groups"].items():
            fit, name = tail["fit"], group.split("=")[1]
            if fit is None:
                verdicts.append(f"{name}: no fit, {tail['doubt']}.")
                continue
            rows += [{"x": a, "y": b, "series": name} for a, b in fit["quantiles"]]
            verdicts.append(
                f"{name}: type {fit['type']}, correlation {fit['correlation']:.4f}, goodness of fit p "
                f"{fit['fits']:.2g}, "
                f"stability p {fit['stable']:.2g}, {'believed' if fit['believed'] else 'not believed'} beyond the rows."
            )
        if rows:
            caption = f"Points on the line: the fit describes the tail. {' '.join(verdicts)}"
            made.append(quantile_chart(f"Quantile plot: {_NAMES[label]}", caption, rows))
        else:
            made.append(Text(text=f"Quantile plot: {_NAMES[label]}. {' '.join(verdicts)}", kind="note"))
    return made
