"""The pictures of the tutorials, drawn from what their commands left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import vl_convert

import evenhand as eh
from evenhand.report import compose
from evenhand.report.document import Figure
from evenhand.report.mitigation import compose_mitigation
from evenhand.report.theme import CONFIG

WIDTH = 640
_SVG = "http://www.w3.org/2000/svg"
_UNSEEN = ("class", "role", "pointer-events")
Draw = Callable[[Path, Mapping[str, Any]], str]


@cache
def colours() -> dict[str, str]:
    """Return the report's colours on a light page, by the name of their variable."""
    css = files("evenhand.report").joinpath("page", "report.css").read_text(encoding="utf-8")
    return dict(reversed(re.findall(r"(--[\w-]+):\s*([^;]+);", css)))  # the light ones stand first and win


def picture(spec: Mapping[str, Any]) -> str:
    """Draw any Vega-Lite specification as SVG, without what a still picture does not need."""
    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg({"config": CONFIG, **spec}))
    for parent in root.iter():
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}path" and child.get("d", "") in ("", "M0,0h0v0h0Z"):
                parent.remove(child)
        for name in [n for n in parent.attrib if n in _UNSEEN or n.startswith("aria-")]:
            del parent.attrib[name]
    return ElementTree.tostring(root, encoding="unicode")


def drawn(spec: Mapping[str, Any]) -> str:
    """Draw a chart as the report does, on white, so that it can be read on a dark page too."""
    # Browsers may choose a wider font than the one that the labels were measured in.
    padding = {"left": 40, "right": 24, "top": 12, "bottom": 12}
    svg = picture({**spec, "background": "white", "padding": padding})
    return re.sub(r"var\((--[\w-]+)\)", lambda name: colours()[name[1]], svg)


def figure(blocks: Any, title: str) -> str:
    """Draw the first figure whose title begins with some words."""
    chosen = next(block for block in blocks if isinstance(block, Figure) and block.title.startswith(title))
    return drawn({**chosen.spec, "title": _title(chosen.title), "width": WIDTH})


def _title(text: str) -> dict[str, Any]:
    """Set a title above the left end of a chart."""
    return {"text": text, "anchor": "start", "frame": "bounds", "offset": 10}


def _first_audit(folder: str, title: str) -> Draw:
    """Return what draws a figure of the first audit of a run that was written to a folder."""

    def draw(work: Path, _: Mapping[str, Any]) -> str:
        run = eh.AuditRun.from_dict(json.loads((work / folder / "findings.json").read_text(encoding="utf-8")))
        return figure(compose(run).sections[0].blocks, title)

    return draw


def _power(_: Path, space: Mapping[str, Any]) -> str:
    """Draw the chance of showing a difference against the rows of both groups."""
    row = space["answer"][0]
    rows = [{"rows": p["group_rows"] + p["reference_rows"], "power": p["power"]} for p in row.curve]
    axis = {"type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 5}}
    line: dict[str, Any] = {"type": "line", "point": True, "color": "var(--series-1)"}
    rule = {"type": "rule", "strokeDash": [4, 4], "color": "var(--soft)"}
    return drawn(
        {
            "title": _title(f"Chance of showing a difference of {row.difference:g} in {row.measure}"),
            "width": WIDTH,
            "height": 220,
            "data": {"values": rows},
            "layer": [
                {
                    "mark": line,
                    "encoding": {
                        "x": {
                            "field": "rows",
                            "type": "quantitative",
                            "title": "rows of both groups together",
                            "axis": {"tickCount": 6},
                        },
                        "y": {"field": "power", "title": "chance", **axis},
                    },
                },
                {"mark": rule, "encoding": {"y": {"datum": space["answer"].options["power"]}}},
            ],
        }
    )


def _repair(_: Path, space: Mapping[str, Any]) -> str:
    """Draw the candidates' accuracy against their difference between groups."""
    page = compose_mitigation(space["repaired"])
    return figure([block for chapter in page.chapters for block in chapter.blocks], "Accuracy against")


# By page: each picture's path below ``docs``, and what draws it.
DRAWN: dict[str, dict[str, Draw]] = {
    "tutorials/auditor.md": {"images/tutorial-auditor.svg": _first_audit("report", "fnr, ")},
    "tutorials/engineer.md": {"images/tutorial-engineer.svg": _first_audit("new", "fnr, ")},
    "tutorials/statistician.md": {"images/tutorial-statistician.svg": _power},
    "tutorials/repair.md": {"images/tutorial-repair.svg": _repair},
}
