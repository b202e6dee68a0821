"""Figure 2: T_n against the number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from evenhand.report.document import Block
from evenhand.report.figures import Frame, lines
from evenhand.reproductions.maity2021.authors import SENSR_RATIO_BY_STEPS
from evenhand.reproductions.maity2021.kinds import KINDS
from evenhand.reproductions.maity2021.people import adult
from evenhand.reproductions.maity2021.tables import ADULT, ADULT_SHORT, TOLERANCE, audited
from evenhand.reproductions.paper import Claim, Parts, Result, Settings

FAR = {**ADULT, "splits": 1, "steps": 1000}
FAR_SHORT = {**ADULT_SHORT, "splits": 1, "steps": 120}


def run_figure_2(settings: Settings, parts: Parts) -> Result:
    """Return T_n on the way, for each classifier on the first split of Adult."""
    curves = {}
    for kind in KINDS:
        told = {**settings, "classifier": kind}
        curves[kind] = parts.keep(f"curve of {kind}", told, partial(_curve, told))
    return {"curves": curves}


def _curve(told: Settings) -> list[dict[str, float]]:
    from evenhand.reproductions.maity2021.classifiers import train

    split = adult(0)
    points: list[dict[str, float]] = audited(split, train(split, told["classifier"], 0, told), told)["curve"]
    return points


def claims_of_figure_2(result: Result, settings: Settings) -> Sequence[Claim]:
    """Judge which classifiers are rejected, and from which number of steps on."""
    curves = result["curves"]
    last = {kind: curve[-1] for kind, curve in curves.items()}
    first = {kind: next((p["steps"] for p in curve if p["T_n"] > TOLERANCE), None) for kind, curve in curves.items()}
    unfair = [kind for kind in KINDS if kind != "SenSR"]
    rising = all(a["T_n"] < b["T_n"] for curve in curves.values() for a, b in pairwise(curve))
    half = {kind: next(p["T_n"] for p in c if p["steps"] == round(c[-1]["steps"] / 2)) for kind, c in curves.items()}
    theirs = SENSR_RATIO_BY_STEPS
    return [
        Claim(
            claim="SenSR is not rejected for any number of steps",
            printed="for no T",
            ours=f"T_n {last['SenSR']['T_n']:.3f} after {last['SenSR']['steps']:,.0f} steps",
            reached="yes" if first["SenSR"] is None else "no",
            rule="T_n at most 1.25 at every checkpoint",
            remark="T_n goes on growing to the end.",
        ),
        *(
            Claim(
                claim=f"{kind} is rejected once there are enough steps",
                printed="yes",
                ours="never" if first[kind] is None else f"from {first[kind]:,.0f} steps on, of those looked at",
                reached="yes" if first[kind] else "no",
                rule="T_n is at most 1.25 at first and above it later",
            )
            for kind in unfair
        ),
        Claim(
            claim="T_n has no plateau",
            printed="–",
            ours="; ".join(f"{kind} {half[kind]:.3f} half way, {last[kind]['T_n']:.3f} at the end" for kind in KINDS)
            + ("" if rising else "; it falls somewhere"),
            reached="not claimed",
            rule="none printed",
            remark="The authors' stored outcomes of SenSR grow too (adult/test2.txt, one of their splits, 200 rows, "
            f"steps of .005): mean ratio {theirs[80]:.4f}, {theirs[320]:.4f}, {theirs[1280]:.4f}, {theirs[2560]:.4f} "
            "after 80, 320, 1,280 and 2,560 steps.",
        ),
    ]


def figures_of_figure_2(result: Result) -> Sequence[Block]:
    """Draw T_n against steps, both on logarithmic axes as in print."""
    rows = [
        {"x": point["steps"], "y": point["T_n"], "series": kind}
        for kind, curve in result["curves"].items()
        for point in curve
        if point["steps"] > 0
    ]
    caption = "T_n after so many Euler steps of .01 on the first split of Adult; the dashed line is the tolerance 1.25."
    frame = Frame(x="steps", y="T_n", dashed=[TOLERANCE], x_log=True, y_log=True, points=True)
    return [lines("Figure 2: T_n against the number of steps", caption, rows, frame)]
