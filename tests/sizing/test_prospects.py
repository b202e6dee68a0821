"""What the rows can show, in people: against the textbook formula, and against audits of simulated rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.errors import UsageError
from evenhand.intake import AuditData
from evenhand.sizing import margin_in_people, prospects


def _data(sizes: dict[str, int], rates: dict[str, float], seed: int = 4) -> AuditData:
    rng = np.random.default_rng(seed)
    sex = np.repeat(list(sizes), list(sizes.values()))
    decision = np.concatenate([rng.permutation(np.arange(n) < round(rates[g] * n)) for g, n in sizes.items()])
    outcome = rng.integers(0, 2, len(sex))
    return AuditData.from_arrays(decision=decision.astype(int), outcome=outcome, groups={"sex": sex})


def test_the_smallest_difference_is_that_of_the_textbook():
    data = _data({"F": 900, "M": 1500}, {"F": 0.4, "M": 0.4})
    (one,) = prospects(data, "selection_rate", reference={"sex": "M"}).comparisons
    p, q = 0.4, 0.4 + one.least
    pooled = (900 * q + 1500 * p) / 2400
    null = math.sqrt(pooled * (1 - pooled) * (1 / 900 + 1 / 1500))
    error = math.sqrt(q * (1 - q) / 900 + p * (1 - p) / 1500)
    chance = stats.norm.sf((stats.norm.isf(0.025) * null - one.least) / error)
    assert chance == pytest.approx(0.8, abs=0.02)
    assert (one.people, one.reference_people) == (900, 1500)


def test_that_difference_is_found_by_four_audits_of_five():
    sizes = {"F": 250, "M": 350}
    (one,) = prospects(_data(sizes, {"F": 0.3, "M": 0.3}), "selection_rate", reference={"sex": "M"}).comparisons
    rng = np.random.default_rng(11)
    shown = 0
    for _ in range(200):
        sex = np.repeat(["F", "M"], [250, 350])
        decision = (rng.random(600) < np.where(sex == "F", 0.3 + one.least, 0.3)).astype(int)
        data = AuditData.from_arrays(decision=decision, groups={"sex": sex})
        result = eh.audit_group(data, metrics=["selection_rate"], reference={"sex": "M"}, rng=0)
        shown += result.findings[0].verdict == "disparity"
    low, high = stats.binom.ppf([0.0005, 0.9995], 200, 0.8)
    assert low <= shown <= high


def test_the_difference_in_the_data_does_not_enter():
    sizes = {"F": 400, "M": 700}
    same = prospects(_data(sizes, {"F": 0.5, "M": 0.5}), "selection_rate", margin=0.1, reference={"sex": "M"})
    other = prospects(_data(sizes, {"F": 0.1, "M": 0.5}), "selection_rate", margin=0.1, reference={"sex": "M"})
    assert same.to_dict() == other.to_dict()


def test_a_margin_says_whether_the_rows_are_enough():
    many = prospects(_data({"F": 9000, "M": 9000}, {"F": 0.5, "M": 0.5}), "selection_rate", margin=0.05)
    assert many.comparisons[0].enough > 0.8
    assert "the rows are enough to show that it is within 5 points" in many.comparisons[0].sentence
    assert "In all of them the rows are probably enough" in many.sentences[1]
    few = prospects(_data({"F": 300, "M": 300}, {"F": 0.5, "M": 0.5}), "selection_rate", margin=0.05)
    assert few.comparisons[0].enough < 0.1
    assert "people of both groups together would be needed" in few.comparisons[0].sentence
    assert "In 1 of them the rows are probably not enough" in few.sentences[1]
    assert few.cells()[0][-1] == "would show “no more than the margin”"


def test_tiny_groups_are_called_too_small():
    answer = prospects(_data({"F": 3, "M": 500}, {"F": 0.4, "M": 0.5}), "selection_rate", reference={"sex": "M"})
    assert math.isnan(answer.comparisons[0].least)
    assert "no difference would probably be found" in answer.comparisons[0].sentence
    assert "the groups are too small to find any difference" in answer.sentences[1]
    assert answer.cells()[1][5] == "–"
    assert answer.to_dict()["comparisons"][0]["least"] is None


def test_the_metrics_of_the_audit_are_taken_and_gaps_left_out():
    data = _data({"F": 400, "M": 700}, {"F": 0.5, "M": 0.5})
    assert {one.measure for one in prospects(data).comparisons} == {"selection_rate", "fnr", "fpr"}
    assert prospects(data).sentences[0] == "1,100 rows are used, and the audit makes 3 comparisons with them."
    assert [one.measure for one in prospects(data, ["aod_abs", "fnr"]).comparisons] == ["fnr"]
    assert prospects(data, "aod_abs").sentences == ("There is nothing to compare here that could be sized beforehand.",)


def test_hostile_names_are_made_printable():
    data = AuditData.from_arrays(decision=[0, 1] * 50, groups={"a\x1b[31m": ["<b>"] * 50 + ["x"] * 50})
    text = str(prospects(data))
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("margin", "words"),
    [
        (0.05, "5 points: up to 5 more, or 5 fewer, of every 100 people"),
        ("0.01", "1 point: up to 1 more, or 1 fewer, of every 100 people"),
        (0.025, "2.5 points: up to 25 more, or 25 fewer, of every 1,000 people"),
        ("ratio:0.9", "A ratio of 0.9: where 50 of 100 people of one group are chosen, from 45 to 56 of 100"),
        ("four-fifths", "Four fifths: where 50 of 100 people of one group are chosen, from 40 to 62 of 100"),
        (None, "No margin: every difference counts"),
    ],
)
def test_margins_in_people(margin, words):
    assert margin_in_people(margin).startswith(words)


def test_a_margin_that_is_none_is_refused_as_in_the_audit():
    with pytest.raises(UsageError, match="is not understood"):
        margin_in_people("five")
