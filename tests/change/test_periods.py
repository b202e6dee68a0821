"""One error rate over all periods: how it is divided, what is said, and that it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.change.periods import PeriodRun, PeriodRuns, audit_periods, notes_of, share_of
from evenhand.intake import AuditData, read
from evenhand.plan import Plan
from evenhand.results import Verdict

PERIODS, ROWS = 6, 80


def rows(seed: int, **more: Any) -> AuditData:
    rng = np.random.default_rng(seed)
    n = PERIODS * ROWS
    table = {"d": rng.integers(0, 2, n), "g": np.tile(["a", "b"], n // 2), "when": np.repeat(list("uvwxyz"), ROWS)}
    return read(table | more, decision="d", groups="g", period="when")


def plan(**more: Any) -> Plan:
    return Plan(audits=("group",), group={"metrics": ["selection_rate"]}, seed=0, n_resamples=499, **more)


def test_the_error_rate_holds_over_all_periods_and_not_when_each_has_its_own() -> None:
    """Decisions are tossed coins, so every disparity is wrong; 60 files of six periods each."""
    repeats = 60
    wrong = {"all": 0, "each": 0}
    for seed in range(repeats):
        data = rows(seed)
        for together in wrong:
            share = share_of(plan(alpha=0.1), PERIODS, together=together == "all")
            runs = audit_periods(plan(alpha=0.1), data, None, share=share)
            findings = [f for one in runs if one.run is not None for f in one.run.findings]
            assert len(findings) == PERIODS
            wrong[together] += any(f.verdict is Verdict.DISPARITY for f in findings)
    limit = binom.ppf(0.999, repeats, 0.1)
    assert wrong["all"] <= limit
    assert wrong["each"] > limit


def test_intervals_have_the_level_of_the_share() -> None:
    data = rows(0)
    for one in audit_periods(plan(), data, None, share=0.05 / PERIODS):
        assert one.run is not None
        interval = one.run.findings[0].interval
        assert interval is not None
        assert interval.level == pytest.approx(1 - 0.05 / PERIODS)


def test_a_period_that_cannot_be_audited_costs_only_itself() -> None:
    g = np.tile(["a", "b"], PERIODS * ROWS // 2)
    g[:ROWS] = "a"
    runs = list(audit_periods(plan(), rows(1, g=g), None, share=0.01))
    assert [one.name for one in runs] == list("uvwxyz")
    verdicts = [{f.verdict for f in one.run.findings} if one.run else set() for one in runs]
    assert verdicts[0] <= {Verdict.NOT_COMPUTABLE}
    assert all(Verdict.NOT_COMPUTABLE not in seen for seen in verdicts[1:])


def test_what_is_said() -> None:
    data = rows(2)
    runs = tuple(audit_periods(plan(), data, None, share=0.05 / PERIODS))
    result = PeriodRuns(column="when", alpha=0.05, share=0.05 / PERIODS, runs=runs)
    assert "divided evenly over 6 periods, 0.00833 for each" in str(result)
    alone = PeriodRuns(
        column="when", alpha=0.05, share=0.05, runs=(*runs, PeriodRun(name="z2", run=None, problem="No."))
    )
    assert "holds in each of 7 periods alone, not over all of them" in alone.budget
    stored = alone.to_dict([f"f{i}" for i in range(7)])
    assert stored["periods"][0]["folder"] == "f0"
    assert stored["periods"][6] == {
        "period": "z2", "folder": None, "rows_used": None,
        "verdicts": dict.fromkeys(map(str, Verdict), 0), "problem": "No.",
    }  # fmt: skip
    assert notes_of(plan(), data, 0.05) == ()
    assert "give `n_resamples=` of 12,000 or more" in notes_of(plan(), data, 0.05 / PERIODS)[0]
