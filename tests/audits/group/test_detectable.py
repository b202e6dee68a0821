"""What inconclusive findings say about power, for every kind of test."""

from __future__ import annotations

import re

import numpy as np
import pytest

import evenhand as eh


def data(rows=(150, 450), seed=0):
    rng = np.random.default_rng(seed)
    n = sum(rows)
    y = (rng.random(n) < 0.4).astype(int)
    score = np.clip(0.25 * y + 0.6 * rng.random(n), 0.01, 0.99)
    groups = {"sex": np.repeat(["F", "M"], rows), "age": rng.normal(size=n)}
    return eh.AuditData.from_arrays(
        outcome=y, decision=(score > 0.45).astype(int), score=score, groups=groups, continuous=["age"]
    )


# Metrics whose name says how groups are compared take a margin of that kind only.
KINDS = {None: "", 0.01: "difference", "ratio:0.99": "ratio"}
ASKED = [
    (metric.name, margin)
    for metric in eh.METRICS.values()
    for margin, kind in KINDS.items()
    if metric.kind != "gaps" and (not kind or metric.compare in ("", kind))
]


@pytest.mark.parametrize(("metric", "margin"), ASKED)
def test_every_metric_says_what_could_have_been_shown_and_how_many_rows_of_whom(metric, margin):
    people = data(seed=1 if metric == "scoring_rate" else 0)  # with seed 0 exactly half of both groups score high
    result = eh.audit_group(people, metric, margin=margin, alpha=0.001, n_resamples=199, rng=0)
    finding, numbers = result[0], result.evidence[0].sample_size
    assert finding.verdict == "inconclusive"
    word = "ratio" if finding.measure.endswith("_ratio") else "difference"
    assert re.search(rf"A {word} of [-\d.e]+ would have been shown .*4 times in 5", finding.reason)
    asked = "difference as large as the one seen" if margin is None else "equivalence if the groups do not differ"
    key = "rows_to_show_difference" if margin is None else "rows_to_show_equivalence"
    assert f"To show {asked}".replace("To show d", "To show a d") in finding.reason
    assert len(re.findall("To show ", finding.reason)) == 1
    # Rows that nobody could gather are not named, but what is ruled out already.
    if sum(getattr(numbers, key).at_this_ratio.values()) > 100 * 600:
        assert f"would take more than 100 times the rows. Already ruled out: {word}s below" in finding.reason
    else:
        assert re.search(r"rows of (sex=F|both groups) |no number of rows suffices", finding.reason)
    needed = numbers.rows_to_show_difference.at_this_ratio
    assert needed["sex=M"] == pytest.approx(3 * needed["sex=F"], abs=3)
    assert needed["sex=F"] > 150


@pytest.mark.parametrize("margin", [None, 0.01])
def test_the_absolute_odds_difference_says_it_of_each_rate_alone(margin):
    result = eh.audit_group(data(), "aod_abs", margin=margin, alpha=0.001, rng=0)
    finding, numbers = result[0], result.evidence[0].sample_size
    assert finding.verdict == "inconclusive"
    told = re.search(r"A difference of ([\d.]+) in tpr or of ([\d.]+) in fpr alone would have been", finding.reason)
    for name, seen in zip(("tpr", "fpr"), told.groups(), strict=True):
        # At the level of one of two tests that share the error.
        alone = eh.audit_group(data(), name, alpha=1 - 0.999**0.5, rng=0).evidence[0].sample_size
        assert float(seen) == pytest.approx(abs(alone.detectable), rel=0.05)
    assert numbers.detectable == pytest.approx(min(map(float, told.groups())) / 2, rel=0.05)
    needed = numbers.rows_to_show_difference.at_this_ratio
    assert needed["sex=M"] == pytest.approx(3 * needed["sex=F"], abs=3)
    assert needed["sex=F"] > 150


def test_a_correlation_says_it_too():
    result = eh.audit_group(data(), "mean_score", alpha=0.001, rng=0)
    finding = result[1]
    assert finding.measure == "mean_score_correlation"
    assert "With 600 rows a correlation of about 0.17 would have been shown 4 times in 5." in finding.reason
    assert re.search(r"To show a correlation as large as the one seen, about [\d,]+ rows are needed", finding.reason)


def test_the_small_group_is_the_one_that_limits():
    rng = np.random.default_rng(1)
    decision = np.concatenate([rng.permutation(np.arange(60) < 24), rng.permutation(np.arange(6000) < 1800)])
    few = eh.AuditData.from_arrays(decision=decision.astype(int), groups={"sex": np.repeat(["F", "M"], [60, 6000])})
    plain = eh.audit_group(few, "selection_rate", rng=0)
    result = eh.audit_group(few, "selection_rate", margin="four-fifths", rng=0)
    assert re.search(r"one seen, about \d+ more rows of sex=F are needed; or", plain[0].reason)
    assert re.search(r"do not differ, about \d+ more rows of sex=F are needed; or", result[0].reason)


def test_what_cannot_be_shown_is_said():
    tiny = eh.AuditData.from_arrays(decision=[0, 1, 1, 0, 1, 1], groups={"g": list("aabbbb")})
    reason = eh.audit_group(tiny, "selection_rate", rng=0)[0].reason
    assert "No difference that is possible here would have been shown 4 times in 5." in reason
