"""The margin is the question: beyond it, inside it, or not known on which side."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import UsageError


def rates(*groups: tuple[int, int], **more):
    """Groups of selected people among all, named a, b, c from the first on."""
    decision = np.concatenate([np.repeat([1, 0], [x, n - x]) for x, n in groups])
    label = np.repeat([chr(97 + k) for k in range(len(groups))], [n for _, n in groups])
    return eh.AuditData.from_arrays(decision=decision, groups={"g": label}, **more)


def test_a_ratio_that_is_shown_to_differ_but_may_lie_above_four_fifths_is_no_disparity():
    data = rates((295, 500), (700, 1000))
    (row,) = eh.audit_group(data, "selection_rate", margin="four-fifths", rng=0)
    assert row.estimate == pytest.approx(0.843, abs=1e-3)
    assert row.interval.low < 0.8 < row.interval.high < 1
    assert row.verdict == "inconclusive"
    assert "The ratio 0.843 [0.7" in row.reason
    assert "is shown to differ from 1" in row.reason
    assert "but not on which side of 0.8 it lies" in row.reason
    (plain,) = eh.audit_group(data, "selection_rate", rng=0)
    assert plain.verdict == "disparity"  # without a margin: shown to differ
    (low,) = eh.audit_group(rates((300, 600), (800, 1000)), "selection_rate", margin="four-fifths", rng=0)
    assert low.verdict == "disparity"
    assert "shown to lie beyond the margin of 0.8" in low.reason


@pytest.mark.parametrize("margin", [0.05, "ratio:0.9"])
def test_pairs_inside_the_margin_and_the_global_finding_agree(margin):
    alike = rates((5000, 10000), (5050, 10000), (5020, 10000))
    result = eh.audit_group(alike, "selection_rate", margin=margin, compare="pairs", n_resamples=199, rng=0)
    assert [str(f.verdict) for f in result] == ["equivalent"] * 4
    assert {f.margin for f in result} == {0.05 if margin == 0.05 else 0.9}
    assert result[-1].measure == ("selection_rate_global" if margin == 0.05 else "selection_rate_ratio_global")
    apart = rates((5000, 10000), (5050, 10000), (6500, 10000))
    result = eh.audit_group(apart, "selection_rate", margin=margin, compare="pairs", n_resamples=199, rng=0)
    assert [str(f.verdict) for f in result] == ["equivalent", "disparity", "disparity", "disparity"]


def test_a_small_difference_of_many_people_is_shown_and_negligible_for_all_groups_too():
    # Each pair differs from none beyond doubt; all lie inside the margin. The omnibus test rejects by far.
    data = rates((50_000, 100_000), (51_000, 100_000), (52_000, 100_000))
    result = eh.audit_group(data, "selection_rate", margin=0.05, n_resamples=199, rng=0)
    assert [str(f.verdict) for f in result] == ["equivalent"] * 3
    assert result.evidence[-1].difference_pvalue < 0.01
    assert "although it is shown to differ from 0" in result[-1].reason


@pytest.mark.parametrize("seed", range(6))
def test_the_global_finding_never_contradicts_its_pairs(seed):
    draw = np.random.default_rng(seed)
    data = rates(*[(int(draw.binomial(n, draw.uniform(0.4, 0.6))), n) for n in (400, 900, 150, 2500)])
    result = eh.audit_group(data, "selection_rate", margin=0.08, compare="pairs", n_resamples=199, rng=0)
    *pairs, everything = result
    if everything.verdict == "disparity":
        assert min(f.pvalue for f in pairs) * len(pairs) == pytest.approx(everything.pvalue)
    if everything.verdict == "equivalent":
        assert all(f.pvalue == 1 for f in pairs)
    if all(f.verdict == "equivalent" for f in pairs):
        assert everything.verdict == "equivalent"


@pytest.mark.parametrize("metric", ["selection_rate", "mean_score", "auc", "balanced_accuracy", "aod"])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_interval_misses_the_margin_just_when_the_p_value_says_so(metric, alternative):
    draw = np.random.default_rng(3)
    y = draw.random(900) < 0.5
    label = np.repeat(["a", "b"], [300, 600])
    score = np.clip(0.3 * y + 0.15 * (label == "a") + 0.5 * draw.random(900), 0, 1)
    data = eh.AuditData.from_arrays(
        outcome=y.astype(int), decision=(score > 0.5).astype(int), score=score, groups={"g": label}
    )
    for margin in (0.02, 0.05, 0.1):
        (row,) = eh.audit_group(
            data, metric, margin=margin, reference="b", alternative=alternative, method="limit", rng=0
        )
        for alpha in (row.pvalue * 1.001, row.pvalue * 0.999):
            if not 1e-9 < alpha < 0.5:
                continue
            (at,) = eh.audit_group(
                data, metric, margin=margin, reference="b", alternative=alternative, level=1 - alpha, method="limit",
                rng=0,
            )  # fmt: skip
            misses = at.interval.low > margin or at.interval.high < -margin
            assert misses == (row.pvalue <= alpha)


@pytest.mark.parametrize(("metric", "margin"), [("selection_rate", 5), ("mean_score", 1.0), ("auc", 1.5), ("brier", 1)])
def test_a_margin_that_nothing_can_exceed_is_refused(metric, margin):
    draw = np.random.default_rng(0)
    score = draw.random(200)
    data = eh.AuditData.from_arrays(
        outcome=(draw.random(200) < 0.5).astype(int), decision=(score > 0.5).astype(int), score=score,
        groups={"g": np.repeat(["a", "b"], 100)},
    )  # fmt: skip
    with pytest.raises(UsageError, match=f"can never be exceeded: values of `{metric}` differ by at most 1"):
        eh.audit_group(data, metric, margin=margin)
    if metric != "mean_score":  # whether a score is a probability is seen in the data only
        with pytest.raises(UsageError, match="can never be exceeded"):
            eh.Plan(group={"metrics": [metric], "margin": margin})
    assert eh.audit_group(data, ["log_loss"], margin=5, rng=0)[0].margin == 5
    assert eh.audit_group(data, metric, margin="ratio:0.99", rng=0)[0].margin == 0.99


def test_a_one_sided_question_has_a_one_sided_interval():
    data = rates((60, 100), (100, 200))
    (up,) = eh.audit_group(data, "selection_rate", alternative="greater", reference="b", rng=0)
    (down,) = eh.audit_group(data, "selection_rate", alternative="less", reference="b", ratio=True, rng=0)
    assert up.interval.high == np.inf
    assert down.interval.low == 0
    assert "one-sided" in up.interval.kind
    assert eh.results.Finding.from_dict(up.to_dict()).interval.high == np.inf


def test_verdicts_carry_the_interval_at_their_own_level():
    data = rates((60, 100), (100, 200), (90, 150), (75, 160))
    result = eh.audit_group(data, "selection_rate", n_resamples=199, rng=0)
    for row, evidence in zip(result.findings[:-1], result.evidence, strict=False):
        beside = evidence.verdict_interval
        assert beside.level >= row.interval.level
        assert (beside.low > 0 or beside.high < 0) == (row.verdict == "disparity")
    assert result.evidence[-1].verdict_interval is None
