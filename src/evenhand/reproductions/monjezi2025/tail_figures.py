"""Table IV drawn: ECD beside ACD, what is counted, the pairs and the tails."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.report.document import Block, Table
from evenhand.report.figures import Row, axis, figure, layer, rule, word
from evenhand.report.theme import colour_of, legend_of
from evenhand.reproductions.monjezi2025.printed import TYPES
from evenhand.reproductions.monjezi2025.tail_counts import COUNTS, Cell, ends, totals, type_by_audit
from evenhand.reproductions.paper import Result


def figures_of_table_iv(result: Result) -> list[Block]:
    """Draw ECD beside ACD, and list the cells and the tails."""
    first = result["cells"]["0"]
    return [_ecd_against_acd(first), _counts_table(result), _pairs_table(first), _tails_table(first)]


def _ecd_against_acd(cells: Mapping[str, Cell]) -> Block:
    rows: list[Row] = []
    for name, cell in cells.items():
        ecd, acd = ends(cell, "ecd"), ends(cell, "acd_difference")
        if ecd is not None and acd is not None:
            rows.append(
                {"x": acd[0], "y": ecd[0], "low": ecd[1], "high": ecd[2], "series": name.split()[0], "label": name}
            )
    colour = colour_of("series", [r["series"] for r in rows])
    across = axis("x", "ACD", axis={"tickCount": 5})
    up = {"scale": {"domain": [-0.5, 0.5]}, "axis": {"tickCount": 5}}
    tip = [word("label", "model and data"), axis("x", "ACD", format=".3f"), axis("y", "ECD", format=".3f")]
    layers = [
        rule(0.0, "y"),
        rule(0.0, "x"),
        layer(
            {"type": "line", "color": "var(--soft)", "strokeWidth": 1},
            [{"x": v, "y": v} for v in (-0.3, 0.3)],
            x=across,
            y=axis("y", "ECD"),
        ),
        layer(
            {"type": "rule", "strokeWidth": 1.5, "clip": True},
            x=across,
            y=axis("low", "ECD", **up),
            y2={"field": "high"},
            color=colour,
        ),
        layer(
            {"type": "point", "filled": True, "size": 60, "clip": True},
            x=across,
            y=axis("y", "ECD", **up),
            color=colour,
            tooltip=tip,
        ),
    ]
    return figure(
        "ECD against ACD, unprivileged less privileged",
        "One point per data set and model with both. Upright lines: 95 % intervals of ECD at a horizon of 1,000 "
        "decisions; long ones go on beyond the frame. "
        "Sloping line: the worst changes differ as much as the mean changes.",
        rows,
        layers,
        columns={"label": "Model and data", "x": "ACD", "y": "ECD", "low": "Low", "high": "High"},
        height=300,
        legend=legend_of([r["series"] for r in rows]),
    )


def _counts_table(result: Result) -> Table:
    rows = []
    for name in COUNTS:
        values = totals(result, name)
        rows.append((name, values[0], min(values), max(values), len(values)))
    return Table(
        title="What is counted, in the first run and over the complete runs with other splits and seeds",
        head=("Count", "First run", "Least", "Most", "Runs"),
        rows=tuple(rows),
    )


def _pairs_table(cells: Mapping[str, Cell]) -> Table:
    def said(cell: Cell, measure: str) -> str | None:
        known = ends(cell, measure)
        return None if known is None else f"{known[0]:.3f} [{known[1]:.3f}, {known[2]:.3f}]"

    return Table(
        title="Differences between the groups, unprivileged less privileged, with 95 % intervals",
        head=("Model and data", "Accuracy", "ACD", "CVaR", "ECD", "p-value of ECD", "Verdict"),
        rows=tuple(
            (
                name,
                c["accuracy"],
                said(c, "acd_difference"),
                said(c, "cvar_difference"),
                said(c, "ecd"),
                c["ecd"]["pvalue"],
                c["ecd"]["verdict"].replace("_", " "),
            )
            for name, c in cells.items()
        ),
        folded=True,
    )


def _tails_table(cells: Mapping[str, Cell]) -> Table:
    rows = []
    for name, cell in cells.items():
        kind, case = name.split()
        for g in cell["groups"]:
            types = {p["reading"]: p["type"] or "none" for p in g["printed"]}
            rows.append(
                (
                    name,
                    g["group"],
                    g["rows"],
                    TYPES[kind, case, g["group"].split("=")[1]],
                    types["values"],
                    types["excesses"],
                    type_by_audit(g),
                    (g.get("shape") or [None])[0],
                    g.get("fits"),
                    None if g["level"] is None else g["level"][0],
                )
            )
    head = (
        "Model and data",
        "Group",
        "Rows",
        "Printed type",
        "Printed algorithm, values",
        "Printed algorithm, excesses",
    )
    more = ("Our audit", "Shape", "Goodness of fit, p", "Level at 1,000 decisions")
    return Table(title="The 80 tails", head=(*head, *more), rows=tuple(rows), folded=True)
