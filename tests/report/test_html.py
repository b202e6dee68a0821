"""The page as text: well-formed, whole, small, the same twice, and deaf to hostile names."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.report import to_html
from evenhand.report.charts import picture
from evenhand.report.compose import compose
from evenhand.report.document import Figure, Text, shown
from evenhand.report.figures import forest, lines
from evenhand.results import AuditRun, Verdict

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


@pytest.mark.parametrize("audit", ["group", "projection", "individual", "proxy", "tail"])
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
        lines("t", "c", point, x="time", y="value", none=0.0, at=1.0),
    ):
        first = picture({**figure.spec, "width": 400})
        assert first == picture({**figure.spec, "width": 400})
        assert "clip" not in first
