"""The page as text: well-formed, whole, small, the same twice, and deaf to hostile names."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.audits.group.evidence import GroupEvidence, ThresholdCurve
from evenhand.audits.registry import AUDITS
from evenhand.report import to_html
from evenhand.report.compose import compose
from evenhand.report.document import Figure, Text, findings_table, shown
from evenhand.report.figures import Frame, forest, lines
from evenhand.report.stills import picture
from evenhand.results import AuditResult, AuditRun, Finding, Interval, Verdict

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Reader(HTMLParser):
    """Collect tags, ids, links and table cells, and check that elements nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links, self.tags, self.texts = [], [], [], [], []
        self.attributes = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


@pytest.fixture(scope="module")
def page(full_run):
    return to_html(full_run)


@pytest.fixture(scope="module")
def read(page):
    return Reader(page)


def test_elements_nest_and_ids_are_unique(read):
    assert len(read.ids) == len(set(read.ids))
    assert read.tags.count("main") == 1


def test_every_link_inside_leads_somewhere(read):
    inside = [link[1:] for link in read.links if link.startswith("#")]
    assert len(inside) > 20
    assert set(inside) <= set(read.ids)


def test_every_finding_is_told_with_its_evidence(read, full_run):
    told = " ".join(read.texts)
    for j, finding in enumerate(full_run.findings, start=1):
        assert f"finding-{j}" in read.ids
        assert re.sub(r"[`\s]+", " ", finding.reason[:40]).strip() in re.sub(r"[`\s]+", " ", told)


@pytest.mark.parametrize("audit", ["group", "projection", "individual", "proxy", "tail", "scan"])
def test_every_audit_has_a_figure(full_run, audit):
    section = next(s for s in compose(full_run).sections if s.audit == audit)
    assert any(isinstance(block, Figure) for block in section.blocks)


def test_nothing_is_loaded_from_outside(page, read):
    for tag, attributes in read.attributes:
        assert not {"src", "srcset", "data", "action"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes)
    policy = next(a["content"] for t, a in read.attributes if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert "@import" not in page.split("<style>")[1].split("</style>")[0]


def test_small_enough_to_send(page):
    assert len(page.encode()) < 2_000_000


def test_many_findings_stay_below_two_megabytes():
    rng = np.random.default_rng(0)
    rows = 6000
    groups = {"town": rng.integers(0, 60, rows).astype(str), "sex": rng.integers(0, 2, rows).astype(str)}
    score = rng.random(rows)
    data = eh.AuditData.from_arrays(
        outcome=rng.integers(0, 2, rows), decision=score > 0.5, score=score, groups=groups, intersections=True
    )
    plan = eh.Plan(audits=("group",), n_resamples=99)
    run = eh.audit(data, plan=plan, rng=0)
    assert len(run.findings) > 500
    assert len(to_html(run).encode()) < 2_000_000


def _crowd(measures: int, pairs: int) -> eh.AuditRun:
    """A run of the group audit with so many charts, rows and long names that the whole of it is too much for a page."""
    name = "a rather long name of a group that somebody chose, number "
    findings, evidence = [], []
    ends = {key: tuple(np.linspace(0.1, 0.2, 25).tolist()) for key in ("difference", "low", "high", "pvalue")}
    curve = ThresholdCurve(threshold=tuple(np.linspace(0, 1, 25).tolist()), level=0.95, used=0.5, **ends)
    for j in range(measures):
        for k in range(pairs):
            findings.append(
                Finding(
                    audit="group", measure=f"metric_{j}", groups=(f"{name}{k}", f"{name}0"), estimate=0.1, pvalue=0.5,
                    interval=Interval(low=0.0, high=0.2, level=0.95, kind="score"), pvalue_adjusted=0.5, reason="So.",
                    counts={f"{name}{k}": {"rows": 10}, f"{name}0": {"rows": 10}},
                )
            )  # fmt: skip
            evidence.append(GroupEvidence(thresholds=curve if k < 4 else None))
    result = AuditResult(audit="group", findings=tuple(findings), evidence=tuple(evidence))
    sizes = {f"{name}{k}": 10 for k in range(3000)}
    data = {"rows_in": 1, "rows_used": 1, "rows_dropped": {}, "columns": {}, "groups": {"g": sizes}, "notes": []}
    return eh.AuditRun(results=(result,), plan={"correction": "holm"}, seed=0, data=data, versions={})


def test_no_number_of_charts_makes_the_page_larger_than_promised(monkeypatch):
    monkeypatch.setattr("evenhand.report.html._LARGEST", 1_250_000)
    page = to_html(_crowd(8, 12))
    assert len(page.encode()) < 1_250_000
    assert "charts are left out to keep the page small" in page


def test_what_is_tested_stands_on_the_page(page, full_run):
    assert "What is assumed until the data show otherwise" in page
    for name, audit in AUDITS.items():
        assert name in {r.audit for r in full_run.results}
        for hypothesis in audit.hypotheses:  # what is tested on request was not asked for here
            assert (str(escape(hypothesis.null)) in page) is not hypothesis.on_request
    assert "they are tested with the part that the group audit no longer needs" in page


def test_the_table_shows_the_interval_and_both_tests_of_a_margin(full_run):
    section = compose(full_run).sections[0]
    head, rows = findings_table(section).head, findings_table(section).rows
    assert head[3:-1] == (
        "Low", "High", "Low adjusted", "High adjusted", "Margin", "p beyond", "p beyond adjusted", "p inside adjusted"
    )  # fmt: skip
    for row, entry in zip(rows, section.entries, strict=True):
        f = entry.finding
        if f.interval is None or f.verdict == "not_computable":
            continue
        low, high = row[5:7]
        assert (low > f.margin or high < -f.margin) == (f.verdict == "disparity")
        assert (-f.margin < low and high < f.margin) == (f.verdict == "equivalent")


def test_same_run_same_bytes(full_run, page):
    assert to_html(full_run) == page
    assert to_html(AuditRun.from_dict(json.loads(full_run.to_json()))) == page


def test_written_in_one_step(full_run, page, tmp_path):
    full_run.to_html(tmp_path / "deep" / "report.html")
    assert (tmp_path / "deep" / "report.html").read_text(encoding="utf-8") == page
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["report.html"]


def test_charts_are_valid_and_carry_no_names_in_their_grammar(hostile_run):
    text = to_html(hostile_run)
    charts = json.loads(text.split('id="charts">')[1].split("</script>")[0])["charts"]
    assert charts
    for spec in charts.values():
        grammar = json.dumps({**spec, "data": None, "layer": [{**layer, "data": None} for layer in spec["layer"]]})
        # Names stand only in data and in the domain of a scale, which are values and never run.
        assert "onerror" not in re.sub(r'"domain": \[.*?\]', "", grammar)


def test_hostile_names_are_text(hostile_run):
    text = to_html(hostile_run)
    read = Reader(text)
    assert read.tags.count("script") == 3
    assert "img" not in read.tags
    assert "<img src=x onerror=window.pwned=1>" in " ".join(read.texts)
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("examples", [0, 2])
def test_people_are_shown_only_when_asked_for(examples):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    model = LogisticRegression().fit(x, x[:, 0] + rng.normal(size=300) > 0)
    data = eh.AuditData.from_arrays(
        outcome=rng.integers(0, 2, 300), groups={"g": (x[:, 1] > 0).astype(str)}, features={"a": x[:, 0], "b": x[:, 1]}
    )
    plan = eh.Plan(audits=("individual",), individual={"similarity": ["b"], "examples": examples, "steps": 50})
    run = eh.audit(data, model=model, plan=plan, rng=0)
    titles = [block.title for block in compose(run).sections[0].blocks if not isinstance(block, Text)]
    assert sum(title.startswith("Pair ") for title in titles) == examples


def test_headline_never_says_fair():
    for seed in range(3):
        data = eh.datasets.planted(rows=300, rng=seed)
        headline = compose(eh.audit(data, rng=0)).headline
        assert "fair" not in headline.lower()


def test_null_result_is_not_good_news():
    rng = np.random.default_rng(0)
    data = eh.AuditData.from_arrays(decision=rng.integers(0, 2, 60), groups={"g": rng.integers(0, 2, 60).astype(str)})
    run = eh.audit(data, plan=eh.Plan(audits=("group",)), rng=0)
    assert {f.verdict for f in run.findings} == {Verdict.INCONCLUSIVE}
    assert compose(run).headline.endswith("That does not mean there is no disparity.")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (0.0, "0"),
        (12.0, "12"),
        (0.25, "0.2500"),
        (1234.5678, "1,235"),
        (2.5e-7, "2.5e-07"),
        (Verdict.NOT_COMPUTABLE, "not computable"),
    ],
)
def test_shown(value, text):
    assert shown(value) == text


def test_picture_has_no_numbered_parts():
    """Numbers that count up over a process would change the bytes of the second report."""
    row = {"label": "a", "estimate": 0.1, "low": 0.0, "high": 0.2, "verdict": "disparity"}
    point = [{"x": float(j), "y": float(j), "low": 0.0, "high": 9.0, "series": s} for j in range(3) for s in "ab"]
    for figure in (
        forest("t", "c", [row], value="difference", none=0.0, margin=[-0.05, 0.05]),
        lines("t", "c", point, Frame(x="time", y="value", none=0.0, at=1.0)),
    ):
        first = picture(figure.spec, 400)
        assert first == picture(figure.spec, 400)
        assert "clip" not in first
