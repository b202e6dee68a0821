"""What a notebook shows: inert, bounded, complete, and readable without scripts."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import evenhand as eh
from evenhand.report.dots import Scale, dot, family, scales
from evenhand.report.notebook import notebook_html
from evenhand.report.palette import palette
from evenhand.report.theme import SERIES, VERDICT_COLOURS
from evenhand.results import Evidence

from .conftest import HOSTILE


class _Page(HTMLParser):
    """Collects tags and their attributes, and checks that they are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def _objects(run):
    finding = run.findings[0]
    plan = eh.Plan(group={"metrics": ["fnr"]}, reference={HOSTILE[0]: HOSTILE[1]})
    return {"run": run, "result": run.results[0], "finding": finding, "some": run.results[0][:2], "plan": plan}


def test_names_from_strangers_are_inert(hostile_run):
    for value in _objects(hostile_run).values():
        page = _Page(value._repr_html_())
        assert page.open == []
        allowed = {"div", "style", "p", "span", "table", "caption", "thead", "tbody", "tr", "th", "td", "details",
                   "summary", "code", "pre", "svg", "line", "circle", "rect", "path", "text"}  # fmt: skip
        assert {tag for tag, _ in page.tags} <= allowed
        assert not {key for _, attrs in page.tags for key in attrs if key.startswith("on") or key in ("href", "src")}
        assert "\x00" not in "".join(page.words)
    assert "<script>window.pwned" in "".join(_Page(hostile_run._repr_html_()).words), "shown as text"


def test_hostile_columns_in_data_are_inert():
    data = eh.AuditData.from_arrays(
        decision=[1, 0, 1, 0],
        groups={HOSTILE[1]: [HOSTILE[0], "b", HOSTILE[0], "b"]},
        features={HOSTILE[5]: [1, 2, 3, 4]},
    )
    page = _Page(data._repr_html_())
    assert "script" not in {tag for tag, _ in page.tags}
    assert "img" not in {tag for tag, _ in page.tags}
    assert HOSTILE[0] in "".join(page.words)


def test_a_thousand_findings_with_long_names_stay_short():
    names = [f"{'x' * 5000}{j}" for j in range(1000)]
    interval = eh.Interval(low=-0.1, high=0.2, level=0.95, kind="score")
    rows = tuple(
        eh.Finding(audit="group", measure="fnr", groups=(f"g={name}", "g=b"), estimate=0.1, interval=interval,
                   reason=f"Because of {name}.", verdict=eh.Verdict("disparity" if j == 999 else "inconclusive"))
        for j, name in enumerate(names)
    )  # fmt: skip
    result = eh.AuditResult(audit="group", findings=rows, evidence=(Evidence(),) * len(rows))
    shown = notebook_html(result)
    assert len(shown) < 100_000
    words = "".join(_Page(shown).words)
    assert "● 1 disparity" in words
    assert "◆ 999 inconclusive" in words
    assert "Not shown: 975 more" in words
    assert next(attrs.get("class") for tag, attrs in _Page(shown).tags if tag == "svg") == "dot disparity"


def test_a_run_shows_verdicts_estimates_and_folded_evidence(full_run):
    page = _Page(notebook_html(full_run))
    words = "".join(page.words)
    for finding in full_run.findings[:5]:
        assert f"{finding.estimate:.4f}" in words
    assert [tag for tag, _ in page.tags].count("details") >= 10
    assert all("open" not in attrs for tag, attrs in page.tags if tag == "details")
    labels = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg" and "aria-label" in attrs]
    assert any(re.fullmatch(r"-?[\d.]+, between -?[\d.]+ and -?[\d.]+", label) for label in labels)


def test_other_answers_are_shown_too():
    data = eh.datasets.planted(rows=600, fnr=(0.1, 0.5), rng=0)
    fair = np.where(data.outcome == 1, data.outcome, data.decision)
    compared = _Page(eh.compare(data, data.decision, fair, metrics=["fnr"])._repr_html_())
    assert "■ 1 better" in "".join(compared.words)
    power = _Page(eh.power("selection_rate", rows=(200, 800), value=0.3)._repr_html_())
    assert "selection_rate" in "".join(power.words)
    shown = "".join(_Page(data._repr_html_()).words)
    assert "600 decisions about people" in shown
    plan = eh.Plan(alpha=0.01, group={"metrics": ["fnr"]})
    assert 'metrics = ["fnr"]' in "".join(_Page(plan._repr_html_()).words)


def test_a_finding_that_cannot_be_computed_has_no_dot(full_run):
    nothing = replace(full_run.findings[0], estimate=float("nan"), interval=None, verdict=eh.Verdict.NOT_COMPUTABLE)
    page = _Page(nothing._repr_html_())
    assert "✕ not computable" in "".join(page.words)
    assert not [tag for tag, _ in page.tags if tag in ("circle", "rect", "path")]


def test_dots_stand_where_their_values_are():
    interval = eh.Interval(low=-0.5, high=float("inf"), level=0.95, kind="score")
    finding = eh.Finding(audit="group", measure="fnr", groups=("a", "b"), estimate=0.5, interval=interval)
    drawn = dot(finding, Scale(low=-1.0, high=1.0, none=0.0))
    assert 'x1="110.0" x2="110.0"' in drawn, "no difference in the middle"
    assert 'x1="58.0" x2="214.0" y1="9"' in drawn, "an end without limit goes to the edge"
    assert "M162.0 " in drawn


def test_large_values_have_a_scale_of_their_own():
    rows = [
        eh.Finding(audit="group", measure=m, groups=("a", "b"), estimate=v) for m, v in (("fnr", 0.1), ("mse", 900.0))
    ]
    rows.append(eh.Finding(audit="group", measure="fnr_ratio", groups=("a", "b"), estimate=1.2))
    shared = scales(rows)
    assert len({family(row) for row in rows}) == 3
    assert shared[family(rows[0])].high < 1
    assert shared[family(rows[2])].none == 1.0


def test_the_palette_has_every_colour_that_charts_name():
    named = {name[4:-1] for name in (*SERIES, *VERDICT_COLOURS)}
    for theme in ("light", "dark"):
        assert named | {"--paper", "--ink", "--margin", "--line", "--soft"} <= palette(theme).keys()
    assert palette("light")["--paper"] != palette("dark")["--paper"]


def test_plots_carry_the_findings_and_no_variables_of_the_page(full_run):
    chart = full_run["fnr"].plot(theme="dark").to_dict()
    assert "var(--" not in str(chart)
    drawn = [row for panel in chart.get("vconcat", [chart]) for row in _values(panel, chart)]
    wanted = [f.estimate for f in full_run["fnr"] if f.interval is not None]
    assert [row["estimate"] for row in drawn] == pytest.approx(wanted, abs=1e-6)


def _values(panel, chart):
    data = panel["data"]
    return data["values"] if "values" in data else chart["datasets"][data["name"]]


def test_a_plot_of_the_report_is_named_by_its_title(full_run):
    chart = full_run.plot("fnr over decision").to_dict()
    assert chart["title"] == "fnr over decision thresholds"
    with pytest.raises(eh.UsageError, match=r"The report has no chart `fnr over decisions threshold`. Did you mean"):
        full_run.plot("fnr over decisions threshold")
    with pytest.raises(eh.UsageError, match=r"`theme='drak'` is not known. Did you mean `dark`"):
        full_run.plot(theme="drak")
