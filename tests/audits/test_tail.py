from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import special

import evenhand as eh
from evenhand.audits.tail import audit_tail
from evenhand.kernels.extremes.pareto_tail import fit_tail

N = 1600
BETA = 0.8


def arrays(n: int = N, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n)
    x, w = rng.normal(size=n), rng.normal(size=n)
    return {"x": x, "w": w, "sex": sex}


def wavy(X: np.ndarray) -> np.ndarray:
    """A score whose change under the flip is normal, with one and the same law in both groups."""
    return 0.5 + 0.02 * np.tanh(X[:, 0]) + 0.08 * X[:, 1] * (X[:, 2] - 0.5)


def logistic(X: np.ndarray) -> np.ndarray:
    return special.expit(X[:, 0] + 0.3 * X[:, 1] + BETA * X[:, 2])


def data_of(columns: dict[str, Any], model: Any = wavy, names: Any = None, **options: Any) -> eh.AuditData:
    X = np.column_stack([columns[n] for n in ("x", "w", "sex")])
    labels = columns["sex"] if names is None else np.asarray(names)[columns["sex"]]
    return eh.AuditData.from_arrays(score=model(X), groups={"sex": labels}, features=columns, **options)


def audit(columns: dict[str, Any], model: Any = wavy, **options: Any) -> eh.AuditResult:
    extra = {k: options.pop(k) for k in ("names", "weight", "weight_kind") if k in options}
    return audit_tail(data_of(columns, model, **extra), model=model, **{"n_resamples": 99, "rng": 0, **options})


def test_logistic_models_exact_worst_case() -> None:
    result = audit(arrays(6000), logistic, horizon=100_000)
    worst = math.tanh(BETA / 4)
    level = next(f for f in result if f.measure == "return_level" and f.groups[0] == "sex=0")
    assert level.estimate == pytest.approx(worst, abs=2e-4)
    assert level.interval.low <= level.estimate <= level.interval.high <= worst
    assert level.interval.high == pytest.approx(worst, abs=1e-6)  # one in 100,000 comes that close
    assert level.verdict is eh.Verdict.DISPARITY
    assert "expect one person whose score would rise by 0.197" in level.reason
    assert "the largest change among" in level.reason
    assert "no change can exceed 0.197" in level.reason
    assert level.interval.high <= worst + 1e-12
    ecd = result[0]
    assert ecd.measure == "ecd"
    assert ecd.verdict is eh.Verdict.DISPARITY
    other = next(f for f in result if f.measure == "return_level" and f.groups[0] == "sex=1")
    assert other.estimate <= other.interval.high <= 0  # the other group cannot gain
    assert abs(ecd.estimate) == pytest.approx(level.estimate - other.estimate)


def test_a_fit_that_is_believed_gives_the_level_beyond_the_rows() -> None:
    truth = 0.08 * special.ndtri(1 - 1 / 20_000)  # the change is normal with standard deviation 0.08
    level = audit(arrays(4000, seed=3), horizon=20_000)[1]
    assert level.interval.kind == "order statistic below, fitted tail above"
    assert level.interval.low < truth < level.interval.high < 1
    assert level.estimate == pytest.approx(truth, abs=0.05)


def test_counterfactual_discrimination_is_flipped_minus_as_it_is() -> None:
    columns = arrays()
    result = audit(columns)
    X = np.column_stack([columns[n] for n in ("x", "w", "sex")])
    Y = X.copy()
    Y[:, 2] = 1 - Y[:, 2]
    cd = wavy(Y) - wavy(X)
    for finding, evidence in zip(result.findings[1:], result.evidence[1:], strict=True):
        mine = cd[columns["sex"] == int(finding.groups[0][-1])]
        assert evidence.acd == pytest.approx(mine.mean())
        assert evidence.observed_maximum.value == pytest.approx(mine.max())
        assert evidence.observed_maximum.share_above_at_most == pytest.approx(3 / mine.size, rel=2e-3)
        worst = 0.05 * mine.size  # people, the last of them in part
        weight = np.clip(worst - np.arange(mine.size), 0, 1)
        assert evidence.cvar.value == pytest.approx(np.sort(mine)[::-1] @ weight / worst)
        assert finding.counts[finding.groups[0]]["better_off"] == int((mine > 0).sum())
        assert evidence.horizon == 50  # 800 rows a group
        assert finding.estimate == pytest.approx(np.quantile(mine, 1 - 1 / 50, method="hazen"))
        tail = fit_tail(mine, evidence.fit.k, upper=1.0)
        assert evidence.fit.location == pytest.approx(tail.level(50))
        levels = [row.level for row in evidence.return_levels]
        assert levels == sorted(levels)
    a, b = (f.estimate for f in result.findings[1:])
    assert result[0].estimate == pytest.approx(a - b)


def test_two_groups_with_one_law_are_not_told_apart_and_say_what_could_be_seen() -> None:
    finding = audit(arrays(3000, seed=5))[0]
    assert finding.verdict is eh.Verdict.INCONCLUSIVE
    assert finding.interval.low < 0 < finding.interval.high
    assert "are ruled out at 95%" in finding.reason


def test_margin_can_show_equivalence_and_the_rule_of_three() -> None:
    result = audit(arrays(8000, seed=5), margin=0.9, horizon=1000)
    ecd, first = result[0], result[1]
    assert ecd.verdict is eh.Verdict.EQUIVALENT
    # None of about 4,000 changes exceeds 0.9: at most 3 in 4,000 do, less than one in 1,000.
    assert first.verdict is eh.Verdict.EQUIVALENT
    assert first.margin == 0.9


def test_favourable_low_turns_the_sign() -> None:
    columns = arrays()
    high, low = audit(columns), audit(columns, favourable="low")
    evidence_high, evidence_low = high.evidence[1], low.evidence[1]
    assert evidence_high.acd == pytest.approx(-evidence_low.acd)
    assert "would fall by" in low[1].reason


def test_a_model_without_the_attribute_is_not_computable() -> None:
    blind = audit(arrays(), lambda X: special.expit(X[:, 0]))
    assert {f.verdict for f in blind} == {eh.Verdict.NOT_COMPUTABLE}
    assert "cannot see `sex`: flipping it changes none of 1,600 scores" in blind[0].reason
    columns = arrays()
    data = eh.AuditData.from_arrays(score=columns["x"], groups={"sex": columns.pop("sex")}, features=columns)
    finding = audit_tail(data, model=lambda X: X[:, 0])[0]
    assert finding.verdict is eh.Verdict.NOT_COMPUTABLE
    assert "name them in the tail audit's option `flip`" in finding.reason
    assert math.isnan(finding.estimate)


def test_a_tree_is_counted_inside_the_sample_and_refused_beyond_it() -> None:
    tree_module = importlib.import_module("sklearn.tree")
    columns = arrays(5000)
    X = np.column_stack([columns[n] for n in ("x", "w", "sex")])
    y = np.random.default_rng(1).random(5000) < logistic(X)
    tree = tree_module.DecisionTreeClassifier(max_depth=8, random_state=0).fit(X, y)
    data = eh.AuditData.from_arrays(outcome=y.astype(int), groups={"sex": columns["sex"]}, features=columns)
    counted = audit_tail(data, model=tree)
    assert eh.Verdict.NOT_COMPUTABLE not in {f.verdict for f in counted}
    assert {f.interval.kind for f in counted.findings[1:]} == {"order statistics"}
    result = audit_tail(data, model=tree, horizon=10_000)
    assert {f.verdict for f in result} == {eh.Verdict.NOT_COMPUTABLE}
    assert "distinct values" in result[0].reason
    assert "in steps" in result[0].reason
    assert "rows alone do not reach one decision in 10,000" in result[0].reason
    shown = result.evidence[1]
    assert shown.observed_maximum.value > 0
    assert [row.interactions for row in shown.return_levels][:3] == [10, 100, 1000]  # still reported


def test_rounded_scores_are_spread_not_refused() -> None:
    columns = arrays(8000)
    exact = audit(columns)
    rounded = audit(columns, lambda X: np.round(wavy(X), 3))
    assert rounded.evidence[1].ties.spread
    assert rounded[1].estimate == pytest.approx(exact[1].estimate, abs=0.01)


def test_columns_that_flip_together() -> None:
    columns = arrays()
    block = {"x": columns["x"], "w": columns["w"], "f": 1 - columns["sex"], "m": columns["sex"]}

    def model(X: np.ndarray) -> np.ndarray:
        return wavy(np.column_stack([X[:, 0], X[:, 1], X[:, 3]])) - 0.1 * X[:, 2]

    def plain(X: np.ndarray) -> np.ndarray:
        return wavy(X) - 0.1 * (1 - X[:, 2])

    score = np.full(N, 0.5)
    data = eh.AuditData.from_arrays(score=score, groups={"sex": columns["sex"]}, features=block)
    together = audit_tail(data, model=model, flip=["f", "m"], n_resamples=99, rng=0)
    mapped = audit_tail(data, model=model, flip={"0": {"f": 1, "m": 0}, "1": {"f": 0, "m": 1}}, n_resamples=99, rng=0)
    made = audit_tail(
        data, model=model, n_resamples=99, rng=0,
        flip=lambda c, label: {**c, "f": np.full(len(c["f"]), label == "0"), "m": np.full(len(c["m"]), label == "1")},
    )  # fmt: skip
    alone = audit_tail(
        eh.AuditData.from_arrays(score=score, groups={"sex": columns["sex"]}, features=columns), model=plain,
        n_resamples=99, rng=0,
    )  # fmt: skip
    for other in (together, mapped, made):
        assert [f.estimate for f in other] == pytest.approx([f.estimate for f in alone])
    with pytest.raises(eh.UsageError, match="Did you mean `m`"):
        audit_tail(data, model=model, flip=["M"])
    with pytest.raises(eh.DataError, match="does not record the attribute alone"):
        audit_tail(data, model=model, flip=["f", "x"])


def test_several_groups_are_each_compared_with_the_reference() -> None:
    rng = np.random.default_rng(7)
    n = 3000
    columns = {"x": rng.normal(size=n), "w": rng.normal(size=n), "race": rng.choice(3, p=[0.5, 0.3, 0.2], size=n)}
    model = lambda X: special.expit(X[:, 0] + np.sin(2 * X[:, 1]) * X[:, 2])  # noqa: E731
    data = eh.AuditData.from_arrays(score=np.full(n, 0.5), groups={"race": columns["race"]}, features=columns)
    result = audit_tail(data, model=model, n_resamples=99)
    assert [f.groups for f in result if f.measure == "ecd"] == [("race=1", "race=0"), ("race=2", "race=0")]
    assert len(result) == 6


@pytest.mark.parametrize("flip", ["column", "mapping", "function"])
def test_members_of_several_groups_are_recorded_as_those_they_are_compared_with(flip: str) -> None:
    """Mean changes against a plain loop over people; columns that differ by group, and a function of some rows."""
    rng = np.random.default_rng(9)
    n = 600
    race = rng.choice(3, p=[0.5, 0.3, 0.2], size=n)
    columns = {"x": rng.normal(size=n), "race": race.astype(float), "other": (race == 2).astype(float)}
    values = {"0": {"race": 0.0}, "1": {"race": 1.0}, "2": {"race": 2.0, "other": 1.0}}
    given: list[set[float]] = []

    def function(some: Mapping[str, np.ndarray], label: str) -> dict[str, np.ndarray]:
        given.append(set(some["race"].tolist()))
        return {**some, **{name: np.full(len(some["x"]), value) for name, value in values[label].items()}}

    def model(X: np.ndarray) -> np.ndarray:
        return special.expit(X[:, 0] + 0.3 * X[:, 1] ** 2 - 0.4 * X[:, 1] * X[:, 2])

    def changed(own: int, label: str) -> float:
        total = []
        for i in np.flatnonzero(race == own):
            person = {name: column[i] for name, column in columns.items()}
            other = {**person, **({"race": float(label)} if flip == "column" else values[label])}
            rows = np.array([[*person.values()], [*other.values()]])
            total.append(model(rows)[1] - model(rows)[0])
        return float(np.mean(total))

    data = eh.AuditData.from_arrays(score=np.full(n, 0.5), groups={"race": race}, features=columns)
    how = {"column": "race", "mapping": values, "function": function}[flip]
    result = audit_tail(data, model=model, flip=how, measures="acd", rng=0)
    means = {f.groups: f.estimate for f in result if f.measure == "acd"}
    expected = {(own, other): changed(own, str(other)) for own, other in ((1, 0), (2, 0), (0, 1), (0, 2))}
    assert sorted(means.values()) == pytest.approx(sorted(expected.values()), rel=1e-12)
    assert {0.0} in given or flip != "function"
    assert all(0.0 not in some or some == {0.0} for some in given)


def test_small_groups_get_a_suggestion_from_generated_rows_and_no_test() -> None:
    seen: list[str] = []
    result = audit(arrays(160), progress=seen.append, horizon=1000)
    assert {f.verdict for f in result} == {eh.Verdict.NOT_COMPUTABLE}
    assert all(math.isnan(f.estimate) and math.isnan(f.pvalue) for f in result)
    assert "rows; a fit needs at least 200" in result[0].reason
    assert "generated rows are not observations" in result[0].reason
    group = result[1].groups[0]
    assert result[1].counts[group]["generated"] >= 1000
    assert result[1].counts[group]["rows"] < 160
    made = result.evidence[1].synthetic
    assert 0 < made["realism"]["kl"] <= 1
    assert any("generated" in text for text in seen)
    without = audit(arrays(160), generator="none", horizon=1000)
    assert without[1].counts[group]["generated"] == 0
    assert "generated" not in without[0].reason


class Copier:
    """A generator that repeats one row for ever."""

    def fit(self, columns: Any) -> None:
        self.row = {name: np.asarray(columns[name])[:1] for name in columns}

    def sample(self, n: int) -> Any:
        return {name: np.repeat(value, n) for name, value in self.row.items()}


def test_generated_rows_that_show_no_tail_are_said_to_show_none() -> None:
    result = audit(arrays(160), generator=Copier(), horizon=1000)
    assert "10,000 generated rows of `sex=1` did not show a tail either." in result[0].reason


def ecd_evidence(result: eh.AuditResult) -> Any:
    return next(e for f, e in zip(result, result.evidence, strict=True) if f.measure == "ecd")


def test_a_group_nobody_of_which_would_be_better_off_has_level_zero() -> None:
    columns = arrays(9000)
    columns["x"] = columns["x"] * 30  # many scores are 0 or 1 in either record
    result = audit(columns, logistic, horizon=1000)
    ecd = next(f for f in result if f.measure == "ecd")
    level = next(f for f in result if f.measure == "return_level" and f.groups[0] == "sex=1")
    assert level.estimate == 0.0
    assert level.interval.high == 0.0
    assert "expect nobody whose score would rise" in level.reason
    assert level.verdict is eh.Verdict.EQUIVALENT
    rows = ecd_evidence(result).groups["sex=1"].return_levels
    assert [(r.level, r.high) for r in rows] == [(0.0, 0.0)] * 6  # the model is logistic: nobody can gain
    assert ecd.verdict is eh.Verdict.DISPARITY
    assert abs(ecd.estimate) == pytest.approx(math.tanh(BETA / 4), abs=0.03)


def test_a_heavy_tail_is_refused() -> None:
    columns = arrays(4000)
    columns["w"] = np.random.default_rng(2).pareto(0.7, size=4000)
    model = lambda X: X[:, 1] * X[:, 2] + X[:, 0]  # noqa: E731
    data = eh.AuditData.from_arrays(score=columns["x"], groups={"sex": columns["sex"]}, features=columns)
    finding = audit_tail(data, model=model, generator="none", horizon=10_000)[0]
    assert finding.verdict is eh.Verdict.NOT_COMPUTABLE
    assert "exponentiality test fails" in finding.reason
    counted = audit_tail(data, model=model, generator="none")[0]
    assert counted.verdict is eh.Verdict.DISPARITY


def plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(k, str) and plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(plain(v) for v in value)
    return value is None or isinstance(value, str | bool | int | float)


def test_evidence_is_plain_and_holds_what_a_report_draws() -> None:
    result = audit(arrays(9000), horizon=20)  # a horizon inside the sample
    assert all(plain(e.to_dict()) for e in result.evidence)
    assert set(result.evidence[0].groups) == {"sex=0", "sex=1"}
    for shown in (*result.evidence[0].groups.values(), *result.evidence[1:]):
        plot, fit = shown.quantile_plot, shown.fit
        assert fit.k >= 50
        assert 0 < fit.goodness_of_fit.pvalue <= 1
        assert 0 < fit.stability.pvalue <= 1
        assert len(plot.fitted) == len(plot.observed) <= 200
        assert list(plot.observed) == sorted(plot.observed)
        assert plot.observed[-1] == pytest.approx(shown.observed_maximum.value, abs=1e-6)
        assert [row.interactions for row in shown.return_levels][:3] == [10.0, 100.0, 1000.0]
        assert all(row.low <= row.level <= row.high for row in shown.return_levels)
        assert fit.type in {"I", "III"}
        assert fit.free_shape_interval.low < fit.free_shape < fit.free_shape_interval.high


def test_what_was_seen_stands_beside_every_fitted_number() -> None:
    for finding in audit(arrays(3000, seed=5)):
        for group in finding.groups[: 2 if finding.measure == "ecd" else 1]:
            rows = finding.counts[group]["rows"]
            assert f"the largest change among {rows:,.0f} rows" in finding.reason
    assert (
        "the largest change among" in audit(arrays(160), horizon=1000)[1].reason
    )  # beside what generated rows suggest


def test_one_law_at_500_and_5000_rows_gives_one_answer_at_one_horizon() -> None:
    columns = arrays(5500, seed=11)
    columns["sex"] = (np.arange(5500) >= 500).astype(int)
    ecd, small, large = audit(columns, horizon=1000, reference="1")
    assert [f.counts[f.groups[0]]["rows"] for f in (small, large)] == [500, 5000]
    truth = 0.08 * special.ndtri(1 - 1e-3)  # the change is normal with standard deviation 0.08
    for finding in (small, large):
        assert finding.interval.low < truth < finding.interval.high
    assert ecd.interval.low < 0 < ecd.interval.high


def test_models_that_fail_are_named() -> None:
    columns = arrays(600)
    data = eh.AuditData.from_arrays(score=np.full(600, 0.5), groups={"sex": columns["sex"]}, features=columns)
    with pytest.raises(eh.DataError, match="raised ZeroDivisionError when asked about"):
        audit_tail(data, model=lambda X: 1 / 0)
    with pytest.raises(eh.DataError, match=r"not finite numbers\. Look for missing values"):
        audit_tail(data, model=lambda X: np.where(X[:, 0] > 1, np.nan, wavy(X)))
    constant = audit_tail(data, model=lambda X: np.full(len(X), 0.3))
    assert constant[0].verdict is eh.Verdict.NOT_COMPUTABLE
    assert "gives everybody one score" in constant[0].reason


# The promises of every audit.


def numbers(result: eh.AuditResult) -> list[tuple[Any, ...]]:
    return [(f.measure, f.groups, f.estimate, f.pvalue, f.interval, str(f.verdict)) for f in result]


def test_same_seed_same_bytes() -> None:
    first, second = (json.dumps(audit(arrays()).to_dict(), allow_nan=False) for _ in range(2))
    assert first == second


def test_row_order_is_irrelevant() -> None:
    columns, order = arrays(), np.random.default_rng(9).permutation(N)
    assert numbers(audit(columns)) == numbers(audit({n: c[order] for n, c in columns.items()}))


def test_relabelling_groups_permutes_findings() -> None:
    columns = arrays()
    old, new = audit(columns, names=["a", "b"], reference="b"), audit(columns, names=["z", "y"], reference="y")
    back = {"sex=z": "sex=a", "sex=y": "sex=b"}
    assert [(m, tuple(back[g] for g in gs), e, p, i, v) for m, gs, e, p, i, v in numbers(new)] == numbers(old)


def test_the_other_reference_changes_the_sign_only() -> None:
    columns = arrays()
    one, two = audit(columns, reference="0"), audit(columns, reference="1")
    assert one[0].estimate == pytest.approx(-two[0].estimate)
    assert one[0].pvalue == two[0].pvalue
    assert one[0].interval.low == pytest.approx(-two[0].interval.high)


def test_frequency_weight_equals_repeated_rows() -> None:
    columns = arrays()
    times = np.where(np.arange(N) % 40 == 0, 2, 1)
    repeated = {n: np.repeat(c, times) for n, c in columns.items()}
    weighted = audit(columns, weight=times, weight_kind="frequency")
    assert [f.estimate for f in audit(repeated)] == pytest.approx([f.estimate for f in weighted])


def test_inputs_are_unchanged() -> None:
    columns = arrays()
    before = {n: c.copy() for n, c in columns.items()}
    audit(columns)
    for n, c in columns.items():
        np.testing.assert_array_equal(c, before[n])


def test_result_survives_json() -> None:
    result = audit(arrays())
    again = eh.AuditResult.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert [f.to_dict() for f in again] == [f.to_dict() for f in result]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 5}, "`horizon` must lie between 10"),
        ({"k": 5}, "`k` must lie between"),
        ({"alpha": 1.5}, "`alpha` must lie between"),
        ({"favourable": "up"}, "`favourable` is `up`"),
        ({"generator": "tvea"}, "Did you mean `tvae`"),
        ({"margin": "four-fifths"}, "takes a difference as margin"),
        ({"reference": "2"}, "is not a group in the data"),
        ({"attribute": "sx"}, "Did you mean `sex`"),
    ],
)
def test_wrong_requests_say_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(eh.UsageError, match=message):
        audit(arrays(400), **options)


def test_data_it_cannot_use_is_refused() -> None:
    columns = arrays(400)
    with pytest.raises(eh.DataError, match=r"the tail audit does not take them.*weight_kind='frequency'"):
        audit(columns, weight=np.linspace(0.5, 1.5, 400), weight_kind="sampling")
    data = eh.AuditData.from_arrays(score=columns["x"], groups={"sex": columns["sex"]})
    with pytest.raises(eh.DataError, match="needs `features=`"):
        audit_tail(data, model=wavy)


# What a user gets by default.


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("margin", [0.03, None])
def test_interval_pvalue_and_margin_agree(seed: int, margin: float | None) -> None:
    columns = arrays(1500, seed=seed)
    columns["w"] = columns["w"] * np.where(columns["sex"] == 1, 1.15, 1.0)
    for horizon in (20, 100, 5000):
        data = data_of(columns)
        one = audit_tail(data, model=wavy, margin=margin, horizon=horizon, correction="none", generator="none")
        for f, e in zip(one, one.evidence, strict=True):
            if f.verdict is eh.Verdict.NOT_COMPUTABLE:
                continue
            edge = margin or 0.0
            misses = f.interval.low > edge or (f.measure == "ecd" and f.interval.high < -edge)
            assert misses == (f.pvalue <= 0.05)
            assert f.interval.low <= f.estimate <= f.interval.high
            assert f.margin == margin
            if margin is not None and e.equivalence_pvalue <= 0.025:
                assert f.interval.high <= edge


def test_a_small_coefficient_is_no_disparity_and_the_margin_is_said() -> None:
    columns = arrays(4000)
    small = lambda X: special.expit(X[:, 0] + 0.03 * X[:, 2])  # noqa: E731
    result = audit_tail(data_of(columns, small), model=small)
    assert {f.verdict for f in result} == {eh.Verdict.EQUIVALENT}
    assert all(f.margin == 0.01 and "0.01" in f.reason for f in result)
    any_change = audit_tail(data_of(columns, small), model=small, margin=None)
    assert any_change[0].verdict is eh.Verdict.DISPARITY
    assert any_change[0].margin is None


def test_intervals_respect_the_sample_and_what_is_possible() -> None:
    for seed in range(5):
        columns = arrays(2400, seed=seed)
        columns["x"] = columns["x"] - 2.5  # few people near the worst case
        for horizon in (None, 1000, 20_000):
            for f, e in zip(
                *(lambda r: (r.findings[1:], r.evidence[1:]))(audit(columns, logistic, horizon=horizon)), strict=True
            ):
                if f.interval is not None:
                    assert f.interval.low <= max(e.observed_maximum.value, 0)
                    assert f.interval.high <= max(math.tanh(BETA / 4), 0) + 1e-12


def test_the_default_horizon_stays_inside_the_sample() -> None:
    for n, horizon in ((300, 10), (2100, 100), (21_000, 1000)):
        result = audit(arrays(n))
        assert result.evidence[0].horizon == horizon
        assert {f.interval.kind for f in result.findings[1:]} == {"order statistics"}


def test_a_score_of_another_range_has_a_margin_of_its_own() -> None:
    points = lambda X: 600 + 50 * X[:, 0] + 2 * X[:, 2]  # noqa: E731
    columns = arrays(3000)
    data = eh.AuditData.from_arrays(score=columns["x"], groups={"sex": columns["sex"]}, features=columns)
    finding = audit_tail(data, model=points)[0]
    assert finding.margin == pytest.approx(0.01 * 50 * 2 * 1.645, rel=0.1)
    with pytest.raises(eh.UsageError, match="which no change exceeds"):
        audit_tail(data, model=points, margin=5, score_range=(0, 1))


def test_a_level_below_zero_is_no_disadvantage_and_says_so() -> None:
    columns = arrays(4000)
    columns["x"] = columns["x"] / 4  # everybody is near the middle: all of one group lose much
    level = next(f for f in audit(columns, logistic) if f.measure == "return_level" and f.groups[0] == "sex=1")
    assert level.interval.low <= level.estimate <= level.interval.high < 0
    assert level.verdict is eh.Verdict.EQUIVALENT
    assert "all but one would see their score fall by at least" in level.reason
    assert "a level of at most 0.01 is no disadvantage, however low" in level.reason
