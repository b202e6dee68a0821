"""The first words of a report: each sentence against numbers counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evenhand as eh
from evenhand.metrics import METRICS
from evenhand.report import compose, to_html, to_markdown
from evenhand.report.claims import group_claim, quantity, rate_words
from evenhand.report.opening import not_shown_sentence, opening
from evenhand.report.other_claims import individual_claim, projection_claim, proxy_claim, tail_claim
from evenhand.report.people import People
from evenhand.report.points import Compared
from evenhand.results import Evidence, Finding, Interval, Verdict

# Counts of one group and of the reference: refused and approved among those who repaid, then among those who did not.
_F, _M = (410, 590, 700, 100), (640, 1360, 1200, 400)


def _people(counts):
    """Return outcomes and decisions with these counts: fn, tp, tn, fp."""
    fn, tp, tn, fp = counts
    outcome = ["repaid"] * (fn + tp) + ["late"] * (tn + fp)
    return outcome, ["refused"] * fn + ["approved"] * tp + ["refused"] * tn + ["approved"] * fp


def _loans(metrics, **options):
    one, two = _people(_F), _people(_M)
    data = eh.AuditData.from_arrays(
        outcome=one[0] + two[0],
        decision=one[1] + two[1],
        groups={"sex": ["F"] * sum(_F) + ["M"] * sum(_M)},
        positive={"outcome": "repaid", "decision": "approved"},
    )
    plan = eh.Plan(audits=("group",), reference={"sex": "M"}, group={"metrics": metrics, **options})
    return eh.audit(data, plan=plan, rng=0)


def _sentence(run, index=0):
    result = run.results[0]
    return str(group_claim(result.findings[index], result.evidence[index], People.of_data(run.data)))


def test_the_report_opens_with_who_by_how_much_and_out_of_how_many():
    first = opening(_loans(["fnr"]))
    # 410 of 1,000 against 640 of 2,000: 41 and 32 of 100.
    assert first.headline == (
        "People with `sex=F` who repaid were refused more often than such people with `sex=M`, by 9 points."
    )
    assert first.texts[0].text.startswith("41 of 100 against 32 of 100, between 5 and 13 points; 1,000 such people")
    assert "5 %" in first.texts[1].text
    assert "What to do next" in first.texts[-1].text


def _share(top, bottom):
    return 100 * top / bottom


_RATES = {
    # metric: (who, what happened, share of the group, share of the reference)
    "selection_rate": ("", "were approved", _share(690, 1800), _share(1760, 3600)),
    "tpr": (" who repaid", "were approved", _share(590, 1000), _share(1360, 2000)),
    "fnr": (" who repaid", "were refused", _share(410, 1000), _share(640, 2000)),
    "fpr": (" who had the outcome `late`", "were approved", _share(100, 800), _share(400, 1600)),
    "tnr": (" who had the outcome `late`", "were refused", _share(700, 800), _share(1200, 1600)),
    "precision": (" who were approved", "repaid", _share(590, 690), _share(1360, 1760)),
    "fdr": (" who were approved", "had the outcome `late`", _share(100, 690), _share(400, 1760)),
    "npv": (" who were refused", "had the outcome `late`", _share(700, 1110), _share(1200, 1840)),
    "for": (" who were refused", "repaid", _share(410, 1110), _share(640, 1840)),
    "accuracy": ("", "got the decision that agrees with their outcome", _share(1290, 1800), _share(2560, 3600)),
    "error_rate": (
        "",
        "got the decision that does not agree with their outcome",
        _share(510, 1800),
        _share(1040, 3600),
    ),
    "spd": ("", "were approved", _share(690, 1800), _share(1760, 3600)),
    "eod": (" who repaid", "were approved", _share(590, 1000), _share(1360, 2000)),
}


@pytest.mark.parametrize("metric", _RATES)
def test_each_rate_has_its_sentence(metric):
    who, event, one, two = _RATES[metric]
    text = _sentence(_loans([metric]))
    subject, _, numbers = text.partition(": ")
    assert subject.startswith(f"People with `sex=F`{who} {event} ")
    other = f"{'such people' if who else 'people'} with `sex=M`"
    assert f"{event} {'more' if one > two else 'less'} often than {other}, by " in subject
    first, second = (float(part.split(" of 100")[0]) for part in numbers.split(", ")[0].split(" against "))
    size = float(subject.split(" points")[0].rsplit(" ", 1)[1])
    assert first == pytest.approx(one, abs=0.51)
    assert second == pytest.approx(two, abs=0.51)
    assert size == pytest.approx(abs(one - two), abs=0.51)
    assert size == pytest.approx(abs(first - second), abs=1e-9)


def test_every_metric_of_the_catalogue_is_said_in_words():
    for metric in METRICS:
        assert rate_words(metric, People()) is not None or metric == "aod_abs" or "`" not in quantity(metric), metric


def test_a_ratio_is_said_as_times_as_often():
    text = _sentence(_loans(["di"]))
    ratio = ((_F[1] + _F[3]) / sum(_F)) / ((_M[1] + _M[3]) / sum(_M))
    said = (
        f"People with `sex=F` were approved less often than people with `sex=M`, {ratio:.2f} times as often: 38 of 100"
    )
    assert text.startswith(said)


def test_a_margin_is_named_in_its_unit():
    text = _sentence(_loans(["fpr"], margin=0.05))
    assert "beyond the margin of 5 points" in text  # 12.5 against 25 of 100
    low = float(text.split("between ")[1].split(" ")[0])
    assert low > 5


def test_a_mean_and_a_correlation_are_said_without_points():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 500)
    score = rng.normal(size=1000) + (group == "b")
    age = score + rng.normal(size=1000)
    data = eh.AuditData.from_arrays(score=score, groups={"g": group, "age": age}, continuous=["age"])
    plan = eh.Plan(audits=("group",), reference={"g": "a"}, group={"metrics": ["mean_score"]})
    run = eh.audit(data, plan=plan, rng=0)
    difference = score[group == "b"].mean() - score[group == "a"].mean()
    assert f"For people with `g=b`, the mean score is {difference:.2f} higher than for people with `g=a`" in _sentence(
        run
    )
    text = _sentence(run, 1)
    assert text.startswith("The higher `age` is, the higher is the mean score, by a linear correlation: 0.7")


def test_all_groups_together_name_the_lowest_and_the_highest():
    group = np.repeat(["a", "b", "c"], 1000)
    decision = np.concatenate([np.arange(1000) < n for n in (200, 300, 500)]).astype(int)
    data = eh.AuditData.from_arrays(decision=decision, groups={"g": group})
    run = eh.audit(data, plan=eh.Plan(audits=("group",), group={"metrics": ["selection_rate"]}), rng=0)
    place = next(j for j, f in enumerate(run.findings) if f.measure == "selection_rate_global")
    assert _sentence(run, place) == (
        "How often people got the decision `1` is not the same in all 3 groups of `g`: from 20 of 100 (`g=a`) to "
        "50 of 100 (`g=c`)."
    )


def test_the_largest_difference_comes_first_and_mirror_images_once():
    run = _loans(["tpr", "fnr", "fpr", "selection_rate"])
    page = compose(run)
    said = " ".join([page.headline, *(text.text for text in page.opening)])
    assert page.headline.startswith("People with `sex=F` who had the outcome `late` were approved")  # 12.5 points
    assert said.count("who repaid") == 1
    assert "1 more finding shows a disparity" in said


def test_nothing_shown_says_what_is_ruled_out_and_what_could_have_been_seen():
    outcome, decision = ["repaid"] * 2000, (["refused"] * 300 + ["approved"] * 700) * 2
    data = eh.AuditData.from_arrays(
        outcome=outcome, decision=decision, groups={"g": ["a"] * 1000 + ["b"] * 1000},
        positive={"outcome": "repaid", "decision": "approved"},
    )  # fmt: skip
    run = eh.audit(data, plan=eh.Plan(audits=("group",), group={"metrics": ["fnr"]}), rng=0)
    first = opening(run)
    assert first.headline == "No disparity is shown. That does not mean there is no disparity."
    high = run.findings[0].interval.high
    least = math.ceil(1000 * high - 1e-9) / 10
    assert f"more than {least:g} points more often" in first.texts[0].text
    assert "is ruled out" in first.texts[0].text or "are ruled out" in first.texts[0].text
    assert "would have been shown 4 times in 5" in first.texts[0].text
    assert "fair" not in " ".join(text.text for text in first.texts).lower()


def test_what_is_ruled_out_never_exceeds_the_interval():
    run = _loans(["accuracy"])
    finding, evidence = run.findings[0], run.results[0].evidence[0]
    assert finding.verdict is Verdict.INCONCLUSIVE
    text = not_shown_sentence(finding, evidence, People.of_data(run.data))
    more = float(text.split("more than ")[1].split(" points more")[0])
    less = float(text.split("more than ")[2].split(" points less")[0])
    interval = evidence.verdict_interval
    assert 100 * interval.high <= more < 100 * interval.high + 0.11
    assert -100 * interval.low <= less < -100 * interval.low + 0.11


def test_all_inside_the_margin_is_said_as_such():
    run = _loans(["accuracy"], margin=0.2)
    first = opening(run)
    assert first.headline == "All differences that were asked about are shown to lie inside their margin."
    assert "shown to lie inside the margin of 0.2" in first.texts[0].text


def test_written_numbers_never_cross_what_they_were_compared_with():
    ends = Interval(low=0.0004, high=0.02, level=0.95, kind="score")
    seen = Compared(first=0.31, second=0.30, change=0.01, interval=ends, scale=100, limits=(0.0,))
    assert seen.between == "between 0.04 and 2.00"
    assert Compared(first=0.4064, second=0.3135, change=0.0929, scale=100).size == "9.29"


def test_each_other_audit_has_its_sentence(full_run):
    for result in full_run.results:
        for finding, evidence in zip(result.findings, result.evidence, strict=True):
            people, rows = People.of_data(full_run.data), full_run.data["rows_used"]
            if finding.audit == "projection":
                text = str(projection_claim(finding, evidence, people, rows))
                assert f"gives {evidence.changes.people:,} of {rows:,} people another decision" in text
            elif finding.audit == "individual":
                text = str(individual_claim(finding, evidence))
                assert f"more than {finding.margin:g} times" in text
                assert f"{finding.estimate:.2f} times" in text
            elif finding.audit == "proxy" and ":" in finding.measure:
                text = str(proxy_claim(finding, evidence))
                assert f"`{evidence.feature}`" in text
                assert text.endswith(f"about {abs(evidence.carried_share):.0%} of that gap.")
            elif finding.audit == "tail":
                text = str(tail_claim(finding, evidence))
                assert f"margin of {finding.margin:g}" in text


def test_names_of_strangers_stay_inert_in_the_opening(hostile_run):
    page = to_html(hostile_run)
    top = page[page.index("<body>") : page.index("<main")]
    assert "<script>" not in top
    assert "<img" not in top
    assert "<script>" not in to_markdown(hostile_run)


def test_the_rates_table_has_counts_and_units():
    chapter = compose(_loans(["fnr"])).chapters[0]
    assert chapter.blocks[0].head[2] == "Were refused, of 100 people who repaid (fnr)"
    assert chapter.blocks[0].rows[0] == ("sex=F", 1800, "41.0 (410 of 1,000)")


def test_a_finding_without_numbers_still_has_a_sentence():
    finding = eh.Finding(audit="group", measure="fnr", groups=("g=a", "g=b"), estimate=0.1)
    assert str(group_claim(finding, Evidence(), People())).startswith("People with `g=a` who had the outcome `1`")


@pytest.mark.parametrize(
    ("low", "high", "margin", "said"),
    [
        (-0.012, 0.0331, None, "no difference is shown; more than 3.4 points more often and more than 1.2 points less"),
        (0.0481, 0.1289, 0.1, "margin of 0.1 it lies; less than 4.8 points more often and more than 12.9 points more"),
        (
            -0.1289,
            -0.0481,
            0.1,
            "margin of 0.1 it lies; less than 4.8 points less often and more than 12.9 points less",
        ),
        (0.0481, math.inf, None, "no difference is shown; less than 4.8 points more often is ruled out"),
    ],
)
def test_what_is_ruled_out_is_outside_the_interval(low: float, high: float, margin: float | None, said: str) -> None:
    finding = Finding(
        audit="group",
        measure="fnr",
        groups=("sex=F", "sex=M"),
        estimate=0.02,
        interval=Interval(low=low, high=high, level=0.95, kind="score"),
        margin=margin,
        verdict=Verdict.INCONCLUSIVE,
    )
    assert said in not_shown_sentence(finding, Evidence(fact="", planning=""), People())


@pytest.mark.parametrize(
    ("first", "second", "low", "high", "said"),
    [
        (0.0145, 0.1084, -0.0948, -0.0930, ("9.39", ("1.45", "10.84"), "between 9.3 and 9.5")),
        (0.05827, 0.26024, -0.20291, -0.20103, ("20.2", ("5.8", "26.0"), "between 20.1 and 20.3")),
        (0.5, 0.4, 0.02, 0.18, ("10", ("50", "40"), "between 2 and 18")),
    ],
)
def test_a_narrow_interval_of_many_people_holds_what_is_said(first, second, low, high, said):
    """Whole points would read: by 9.39 points, between 9 and 9 points."""
    ends = Interval(low=low, high=high, level=0.95, kind="score")
    seen = Compared(first=first, second=second, change=first - second, interval=ends, scale=100, limits=(0.0,))
    assert (seen.size, seen.values, seen.between) == said
