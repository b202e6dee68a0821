"""Algorithm 1 as printed, against a plain version of it; shown apart, and nothing rests on it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.audits.tail import audit_tail
from evenhand.generators.printed import READINGS, passes, printed_algorithm
from evenhand.report.sections.tail import blocks


def plain_test(values: list[float], reading: str) -> bool:
    """Follow the lines of the printed loop one by one."""
    if len(values) <= 50:
        return False
    ordered = sorted(values, reverse=True)
    for k in range(10, 51):
        top = ordered[:k]
        if reading == "excesses":
            top = [value - ordered[k - 1] for value in ordered[: k - 1]]
        average = sum(top) / len(top)
        deviation = math.sqrt(sum((value - average) ** 2 for value in top) / (len(top) - 1))
        if average > 0 and deviation / average > 1 + 1.96 / math.sqrt(k):
            return False
    return True


class Recorded:
    """A generator that hands out rows that were drawn before: heavy at first, harmless later."""

    def fit(self, columns: Any) -> None:
        self.draws = np.random.default_rng(5)
        self.size = 0

    def sample(self, n: int) -> dict[str, np.ndarray]:
        self.size += n
        return {"x": 0.9 - 0.05 * self.draws.uniform(size=n)} if self.size > 2000 else {"x": 0.01 * np.ones(n)}


def test_the_test_is_the_printed_one_line_by_line() -> None:
    rng = np.random.default_rng(0)
    laws = [
        rng.exponential(size=300),
        0.3 + 0.01 * rng.pareto(1.5, size=2000),
        rng.pareto(0.6, size=300),
        rng.uniform(size=300),
        rng.normal(size=60) - 5,
        rng.uniform(size=40),
    ]
    said = {reading: [passes(values, reading) for values in laws] for reading in READINGS}
    assert said == {reading: [plain_test(values.tolist(), reading) for values in laws] for reading in READINGS}
    assert said["values"] != said["excesses"]
    assert all(set(answers) == {True, False} for answers in said.values())


def test_raw_values_accept_heavy_tails_that_excesses_refuse() -> None:
    rng = np.random.default_rng(0)
    heavy = [0.3 + 0.01 * rng.pareto(1.5, size=2000) for _ in range(40)]
    assert np.mean([passes(values, "values") for values in heavy]) > 0.8
    assert np.mean([passes(values, "excesses") for values in heavy]) < 0.3


def test_made_up_rows_are_added_until_the_test_passes_and_all_are_fitted() -> None:
    own = 0.001 * np.random.default_rng(1).pareto(0.7, size=500).clip(max=900)
    values, generator, rounds = own.copy(), Recorded(), 0
    generator.fit(None)
    while not plain_test(values.tolist(), "excesses"):
        values, rounds = np.concatenate([values, generator.sample(1000)["x"]]), rounds + 1
    fit = printed_algorithm({"x": own}, lambda c: c["x"], Recorded(), horizon=1000.0, upper=1.0, seed=0)[1]
    assert rounds == 3
    assert (fit.reading, fit.rows, fit.generated, fit.rounds, fit.passed) == ("excesses", 500, 3000, 3, True)
    ordered = np.sort(values)[::-1]
    shape, _, scale = stats.genpareto.fit(ordered[:50] - ordered[50], floc=0)
    level = ordered[50] + stats.genpareto.isf(values.size / (1000 * 50), shape, scale=scale)
    assert fit.location == pytest.approx(level, abs=2e-3)
    assert fit.type == "III"


def test_a_tail_that_never_passes_has_no_type_and_steps_end_where_they_are() -> None:
    class Heavy(Recorded):
        def sample(self, n: int) -> dict[str, np.ndarray]:
            return {"x": self.draws.pareto(0.5, size=n)}

    rows = {"x": np.random.default_rng(2).pareto(0.5, size=300)}
    fit = printed_algorithm(rows, lambda c: c["x"], Heavy(), horizon=1000.0, upper=math.inf, seed=0)[1]
    assert (fit.passed, fit.type, fit.rounds, fit.generated) == (False, "", 10, 10_000)
    assert math.isnan(fit.location)
    assert math.isnan(fit.shape)
    same = printed_algorithm({"x": np.full(300, 0.2)}, lambda c: c["x"], Heavy(), horizon=10.0, upper=1.0, seed=0)
    assert [(fit.type, fit.location, fit.generated) for fit in same] == [("III", 0.2, 0)] * 2


def test_time_ends_the_search_after_the_first_round() -> None:
    rows = {"x": np.random.default_rng(2).pareto(0.5, size=300)}
    fit = printed_algorithm(rows, lambda c: c["x"], "light", horizon=1000.0, upper=math.inf, seed=0, time_limit=1e-9)[1]
    assert (fit.rounds, fit.stopped, fit.passed) == (1, True, False)


def _data(n: int) -> tuple[eh.AuditData, Any]:
    rng = np.random.default_rng(3)
    columns = {"x": rng.normal(size=n), "w": rng.pareto(1.2, size=n), "sex": rng.integers(2, size=n)}

    def model(X: np.ndarray) -> np.ndarray:
        return 0.5 + 0.02 * np.tanh(X[:, 0]) + 0.1 * np.tanh(0.05 * X[:, 1]) * (X[:, 2] - 0.5)

    score = model(np.column_stack(list(columns.values())))
    return eh.AuditData.from_arrays(score=score, groups={"sex": columns["sex"]}, features=columns), model


@pytest.mark.parametrize("n", [120, 3000])
def test_no_finding_changes_and_everything_about_it_is_marked(n: int) -> None:
    data, model = _data(n)
    without = audit_tail(data, model=model, n_resamples=99, generator="none")
    with_it = audit_tail(data, model=model, n_resamples=99, generate="printed")
    assert [f.verdict for f in with_it] == [f.verdict for f in without]
    np.testing.assert_array_equal([f.estimate for f in with_it], [f.estimate for f in without])
    np.testing.assert_array_equal([f.pvalue for f in with_it], [f.pvalue for f in without])
    assert [f.reason for f in with_it] == [f.reason for f in without]
    assert with_it.options["generate"] == "printed"
    for evidence in with_it.evidence:
        assert all("no verdict rests on it" in said for said in evidence.warnings)
    assert len(with_it.evidence[0].warnings) == 2
    level = with_it.evidence[1]
    assert [fit.reading for fit in level.printed_algorithm] == list(READINGS)
    assert "printed_algorithm" not in without.evidence[1].to_dict()
    made = [block for block in blocks(with_it) if "made-up" in getattr(block, "title", "")]
    assert len(made) == 1
    assert len(made[0].rows) == 4
    assert not any("made-up" in getattr(block, "title", "") for block in blocks(without))


def test_what_makes_no_sense_is_refused() -> None:
    data, model = _data(200)
    with pytest.raises(eh.UsageError, match="`generator` is `none`"):
        audit_tail(data, model=model, generate="printed", generator="none")
    with pytest.raises(eh.UsageError, match="`measures` lacks `ecd`"):
        audit_tail(data, model=model, generate="printed", measures="acd")
    with pytest.raises(eh.UsageError, match="allowed: `suggest`, `printed`"):
        audit_tail(data, model=model, generate="print")
