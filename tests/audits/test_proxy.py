"""The proxy audit: what it finds, what it promises, what it refuses."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import evenhand as eh
from evenhand.audits.proxy import audit_proxy
from evenhand.kernels.influence.functionals import Sample, functional, means, psi
from evenhand.kernels.influence.functionals import centre as centre_at

N = 900
COEF = {"carrier": 1.3, "used": 0.9}


def columns(seed=0, n=N):
    """A carrier, a bystander that goes with group and carrier, a used feature without difference, noise."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    carrier = (rng.random(n) < np.where(group == "a", 0.3, 0.65)).astype(float)
    bystander = (rng.random(n) < 0.2 + 0.4 * carrier + 0.2 * (group != "a")).astype(float)
    used = rng.normal(size=n).round(3)
    noise = rng.choice(np.array(["u", "v", "w"], dtype=object), n)
    score = expit(-1 + COEF["carrier"] * carrier + COEF["used"] * used)
    outcome = (rng.random(n) < expit(-0.6 + carrier + 0.6 * used)).astype(int)
    return {
        "outcome": outcome,
        "decision": (score > 0.5).astype(int),
        "score": score,
        "groups": {"g": group},
        "features": {"carrier": carrier, "bystander": bystander, "used": used, "noise": noise},
    }


def take(arrays, index):
    nested = ("groups", "features")
    return {k: {n: v[index] for n, v in a.items()} if k in nested else a[index] for k, a in arrays.items()}


def audit(arrays, rng=0, **options):
    weight = {k: options.pop(k) for k in ("weight", "weight_kind") if k in options}
    options.setdefault("reference", "a")
    return audit_proxy(eh.AuditData.from_arrays(**arrays, **weight), rng=rng, **options)


def verdicts(result, group="g=b"):
    return {f.measure: str(f.verdict) for f in result if f.groups[0] == group}


@pytest.fixture(scope="module")
def big():
    return columns(1, 6000)


@pytest.mark.parametrize("options", [{}, {"soft": False}, {"measure": "sp"}, {"measure": "fnr"}], ids=str)
def test_the_carrier_is_named_and_the_others_are_not(big, options):
    found = verdicts(audit(big, **options))
    measure = options.get("measure", "fpr")
    assert found[measure] == "disparity"
    assert found[f"{measure}:carrier"] == "disparity"
    for name in ("bystander", "used", "noise"):
        assert found[f"{measure}:{name}"] in ("inconclusive", "equivalent")
    assert found[f"{measure}:noise"] == "equivalent"  # shown to carry less than a point


def test_evidence_says_why_association_is_not_carrying(big):
    result = audit(big)
    by = {f.measure: e for f, e in zip(result, result.evidence, strict=True) if f.groups[0] == "g=b"}
    bystander, used, carrier = by["fpr:bystander"], by["fpr:used"], by["fpr:carrier"]
    assert bystander.association > 0.3
    assert bystander.association_pvalue < 1e-6
    assert abs(bystander.carried) < 0.01
    assert used.score > 0.1  # it matters, but the groups have the same distribution of it
    assert abs(used.carried) < 0.02
    assert carrier.carried_share == pytest.approx(1, abs=0.35)
    assert "carries" in carrier.fact
    assert all("0.01" in f.reason for f in result if ":" in f.measure)  # the margin is said
    assert carrier.signed_score > 0
    assert used.ranking.rank == 1
    assert by["fpr"].nuisance["outcome"]["slope"] == pytest.approx(1, abs=0.25)
    assert {row.level for row in by["fpr:noise"].levels} == {"u", "v", "w"}


def test_gap_of_decisions_is_that_of_the_group_audit():
    arrays = columns(3)
    ours = {f.groups: f for f in audit(arrays, soft=False) if f.measure == "fpr"}
    data = eh.AuditData.from_arrays(**{k: v for k, v in arrays.items() if k != "features"})
    for theirs in eh.audit_group(data, metrics=["fpr"], reference="a", rng=0):
        if theirs.measure == "fpr":
            mine = ours[theirs.groups]
            assert (mine.estimate, mine.pvalue) == pytest.approx((theirs.estimate, theirs.pvalue))
            assert mine.interval.low == pytest.approx(theirs.interval.low)


@pytest.mark.parametrize("measure", ["fpr", "fnr", "fdr", "sp", "accuracy"])
def test_gap_is_the_plain_difference_of_soft_rates(measure):
    arrays = columns(4)
    found = next(f for f in audit(arrays, measure=measure) if f.groups[0] == "g=b")
    h, y, g = arrays["score"], arrays["outcome"].astype(float), arrays["groups"]["g"]
    form = functional(measure)
    one = np.ones(N)
    value = [float(np.divide(*means(form, h[g == k], y[g == k], one[g == k])[0])) for k in ("b", "a")]
    assert found.estimate == pytest.approx(value[0] - value[1])
    assert found.interval.low < found.estimate < found.interval.high


def test_gap_of_a_combination_is_the_combination_of_gaps():
    arrays = columns(4)
    value = {}
    for measure in ("fpr", "fnr", {"fpr": 0.5, "fnr": -2.0}):
        value[str(measure)] = audit(arrays, measure=measure)[0].estimate
    assert value["{'fpr': 0.5, 'fnr': -2.0}"] == pytest.approx(0.5 * value["fpr"] - 2 * value["fnr"])


def test_divergence_is_that_of_the_mean_scores():
    arrays = columns(4)
    found = audit(arrays, measure="da")[0]
    h, g = arrays["score"], arrays["groups"]["g"]
    p, q = h[g == "b"].mean(), h[g == "a"].mean()
    assert found.estimate == pytest.approx(p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))
    assert 0 <= found.interval.low < found.estimate < found.interval.high


def test_score_is_definition_5_on_the_model_itself():
    arrays = columns(5)
    coef = np.array([COEF["carrier"], 0.0, COEF["used"]])
    features = {k: v for k, v in arrays["features"].items() if k != "noise"}
    result = audit({**arrays, "features": features}, measure="sp", model=lambda X: expit(-1 + X @ coef))
    row = {f.measure: (f, e) for f, e in zip(result, result.evidence, strict=True) if f.groups[0] == "g=b"}
    g = arrays["groups"]["g"] == "b"
    u = arrays["features"]["used"][g]
    exact = (expit(-1 + 1.3 + 0.9 * u) - expit(-1 + 0.9 * u)).mean()
    assert row["sp:carrier"][1].score == pytest.approx(exact, abs=1e-12)
    finding, evidence = row["sp:bystander"]
    assert evidence.score == finding.estimate == finding.interval.low == finding.interval.high == 0
    assert finding.pvalue == 1
    assert finding.verdict == "equivalent"  # the model was asked, and does not move at all


@pytest.mark.parametrize("measure", ["sp", "fpr", "fdr"])
def test_carried_is_what_equalising_the_feature_alone_removes(measure):
    # Brute force: every person of the group with every value that anybody has, each value as often as in the
    # group, and as often as in the reference.
    arrays = columns(12, 1500)
    g = arrays["groups"]["g"]
    rng = np.random.default_rng(0)
    arrays["features"] = {
        "carrier": arrays["features"]["carrier"],
        "number": np.round(rng.gamma(2.0, np.where(g == "a", 1.0, 2.0)), 1).clip(0, 12),
        "kind": rng.choice(np.array(["u", "v", "w"], dtype=object), len(g)),
    }

    def model(X):
        X = np.asarray(X, dtype=object)  # a frame, because a column holds text
        return expit(-1.2 + 1.3 * X[:, 0].astype(float) + 0.3 * X[:, 1].astype(float) + 0.5 * (X[:, 2] == "v"))

    result = audit(arrays, measure=measure, model=model, max_steps=0)
    found = {f.measure.partition(":")[2]: f for f in result if f.groups[0] == "g=b"}
    X = np.empty((len(g), 3), dtype=object)
    for j, v in enumerate(arrays["features"].values()):
        X[:, j] = v
    inside, other = X[g == "b"], X[g == "a"]
    weights = result.weights["g=b"]  # holds the outcome model that the audit used

    def moved(j, donors):
        """Mean of numerator and denominator with feature j drawn from the donors' values, apart from the others."""
        total = np.zeros(2)
        values, counts = np.unique([str(v) for v in donors], return_counts=True)
        raw = {str(v): v for v in donors}
        for v, k in zip(values, counts, strict=True):
            some = inside.copy()
            some[:, j] = raw[v]
            h = model(some)
            parts = dict(zip(arrays["features"], some.T, strict=True))
            parts = {n: c.astype(float) if n != "kind" else c for n, c in parts.items()}
            eta = 0 * h if measure == "sp" else weights.outcome.whole(weights.design.encode(parts))
            n, d = {"sp": (h, 1 + 0 * h), "fpr": (h * (1 - eta), 1 - eta), "fdr": (h * (1 - eta), h)}[measure]
            total += k / len(donors) * np.array([n.mean(), d.mean()])
        return total

    reach = inside[:, 1].astype(float).min(), inside[:, 1].astype(float).max()
    other[:, 1] = other[:, 1].astype(float).clip(*reach)  # nobody in the group has values beyond
    for j, name in enumerate(arrays["features"]):
        here, there = moved(j, inside[:, j]), moved(j, other[:, j])
        exact = here[0] / here[1] - there[0] / there[1]
        # Rates divide, and the audit starts from the group as it is: a difference of second order.
        assert found[name].estimate == pytest.approx(exact, abs=5e-4 if measure == "sp" else 3e-3), name


@pytest.mark.parametrize("level", [0.95, 0.8])
@pytest.mark.parametrize("margin", [0.01, None])
def test_interval_and_test_agree_also_where_the_gap_is_not_shown(level, margin):
    closed = 0
    for seed in range(6):
        arrays = columns(seed, 400)
        arrays["groups"]["g"] = np.where(arrays["groups"]["g"] == "c", "b", arrays["groups"]["g"])
        if seed % 2:  # groups at random: mostly no gap
            arrays["groups"]["g"] = np.random.default_rng(seed).permutation(arrays["groups"]["g"])
        result = audit(arrays, measure="sp", level=level, margin=margin, max_steps=0)
        gate = result[0].pvalue
        for f, e in list(zip(result, result.evidence, strict=True))[1:]:
            beyond = f.interval.low > (margin or 0) or f.interval.high < -(margin or 0)
            assert beyond == (f.pvalue <= 1 - level)
            assert f.pvalue >= gate == e.gap_pvalue
            assert f.margin == margin
            assert (e.equivalence_pvalue is not None) == (margin is not None)
            if gate > 0.05:
                closed += 1
                assert f.verdict != "disparity"
                assert "gap itself is not shown" in f.reason
                if gate > 1 - level:
                    assert f.interval.low <= 0 <= f.interval.high
    assert closed


def test_a_tiny_coefficient_is_no_source_of_the_gap():
    # A model that was fitted: every coefficient is a little off 0, and a feature that differs much between the
    # groups then carries a little of the gap. Without a margin that is shown; it is not what anybody means.
    rng = np.random.default_rng(0)
    n = 20_000
    g = rng.random(n) < 0.5
    x, z = rng.normal(size=n) + g, rng.normal(size=n) + g
    arrays = {
        "outcome": (rng.random(n) < expit(x - 0.5)).astype(int),
        "groups": {"g": np.where(g, "b", "a")},
        "features": {"x": x, "z": z},
    }
    model = lambda X: expit(X[:, 0] + 0.01 * X[:, 1] - 0.5)  # noqa: E731
    named = {m: verdicts(audit(arrays, model=model, margin=m, max_steps=0, measure="sp")) for m in (0.01, 0)}
    assert named[0.01] == {"sp": "disparity", "sp:x": "disparity", "sp:z": "equivalent"}
    assert named[0]["sp:z"] == "disparity"


def test_surrogate_of_a_logistic_score_is_the_model():
    arrays = columns(5)
    coef = np.array([COEF["carrier"], 0.0, COEF["used"]])
    arrays["features"] = {k: v for k, v in arrays["features"].items() if k != "noise"}
    with_model = audit(arrays, model=lambda X: expit(-1 + X @ coef))
    without = audit(arrays)
    assert [f.estimate for f in with_model] == pytest.approx(
        [f.estimate for f in without], abs=5e-3
    )  # rounding moves rows to other folds
    assert without.evidence[0].nuisance["surrogate"]["r_squared"] == pytest.approx(1)


def test_sklearn_models_are_asked_by_column_name(big):
    linear = importlib.import_module("sklearn.linear_model")
    pd = importlib.import_module("pandas")
    big = take(big, np.flatnonzero(big["groups"]["g"] != "c")[:1500])
    frame = pd.DataFrame({k: big["features"][k] for k in ("used", "carrier")})  # another order, fewer columns
    labels = np.where(big["outcome"] == 1, "yes", "no")
    model = linear.LogisticRegression().fit(frame, labels)
    soft, hard = audit(big, model=model), audit(big, model=model, soft=False)
    h = model.predict_proba(frame)[:, 1]
    y, g = big["outcome"], big["groups"]["g"]
    expected = h[(g == "b") & (y == 0)].mean() - h[(g == "a") & (y == 0)].mean()
    assert soft[0].estimate == pytest.approx(expected)
    d = (model.predict(frame) == "yes").astype(float)
    expected = d[(g == "b") & (y == 0)].mean() - d[(g == "a") & (y == 0)].mean()
    assert hard[0].estimate == pytest.approx(expected)
    assert verdicts(soft)["fpr:bystander"] != "disparity"


def test_a_learner_without_coefficients_gives_estimates_only(big):
    tree = importlib.import_module("sklearn.tree")
    small = take(big, np.flatnonzero(big["groups"]["g"] != "c")[:3000])
    learner = tree.DecisionTreeClassifier(max_depth=4, min_samples_leaf=20, random_state=0)
    model = lambda X: expit(-1 + 1.3 * X["carrier"])  # noqa: E731
    result = audit(small, nuisance=learner, folds=2, max_rows=500, model=model)
    assert any("neither interval nor test" in w for w in result.evidence[0].warnings)
    for f, e in zip(result, result.evidence, strict=True):
        if e.kind == "feature":
            assert f.verdict == "not_computable"
            assert f.interval is None  # one that takes the fit as given would be too short
            assert np.isfinite(f.estimate)
            assert np.isnan(f.pvalue)
            assert "without coefficients" in f.reason
            assert e.score_interval is None
            assert e.ranking.rank_low is None
    # Without an outcome in the measure nothing is learned: the model itself is asked.
    assert verdicts(audit(small, nuisance=learner, folds=2, model=model, measure="sp"))["sp:carrier"] == "disparity"


def test_learned_decisions_have_estimates_without_intervals(big):
    blind = {k: v for k, v in big.items() if k != "score"}
    row = {f.measure: f for f in audit(blind, max_steps=0)}
    assert row["fpr"].interval is not None
    assert row["fpr:carrier"].interval is None
    assert "pass `model=`" in row["fpr:carrier"].reason
    assert row["fpr:carrier"].verdict == "not_computable"


def test_calibration_error_has_scores_bounded_from_above_and_no_test(big):
    result = audit(big, measure="cal", max_steps=0)
    for f, e in zip(result, result.evidence, strict=True):
        if e.kind == "feature":
            assert e.score_interval.low == 0 < e.score_interval.high
            assert f.interval is None
            assert f.verdict == "not_computable"
            assert "kink" in f.reason


def test_what_a_feature_carries_has_an_interval(big):
    row = {f.measure: f for f in audit(big, max_steps=0) if f.groups[0] == "g=b"}
    gap, carrier, used = row["fpr"], row["fpr:carrier"], row["fpr:used"]
    assert 0 < carrier.interval.low < gap.estimate < carrier.interval.high  # the carrier is all that differs
    assert carrier.interval.low < carrier.estimate < carrier.interval.high
    assert used.interval.low < 0 < used.interval.high


def test_more_records_than_are_looked_at_in_detail(big, monkeypatch):
    features = importlib.import_module("evenhand.audits.proxy.features")
    whole = audit(big, max_steps=0)
    monkeypatch.setattr(features, "_DETAILED", 700)
    part = audit(big, max_steps=0)
    for a, b, e, f in zip(whole, part, whole.evidence, part.evidence, strict=True):
        if e.kind == "gap":
            assert a.estimate == b.estimate
            continue
        assert e.score == pytest.approx(f.score, abs=1e-12)
        assert a.estimate == pytest.approx(b.estimate, abs=0.01)
        assert a.interval.high - a.estimate == pytest.approx(b.interval.high - b.estimate, rel=0.2)


def test_features_of_one_value_are_named_and_not_scored():
    arrays = columns()
    group = arrays["groups"]["g"]
    arrays["features"]["same"] = np.full(N, 3.0)
    arrays["features"]["single"] = np.where(group == "b", 1.0, np.arange(N) % 2)
    row = {f.measure: f for f in audit(arrays) if f.groups[0] == "g=b"}
    for name, words in (("same", "one value in both groups"), ("single", "cannot be learned")):
        found = row[f"fpr:{name}"]
        assert found.verdict == "not_computable"
        assert np.isnan(found.estimate)
        assert found.interval is None
        assert words in found.reason
    assert row["fpr:carrier"].verdict == "disparity"


@pytest.mark.parametrize(("measure", "penalty"), [("fpr", 0.0), ("da", 0.1)])
def test_the_group_itself_is_left_out_under_any_name(measure, penalty):
    arrays = columns()
    group = arrays["groups"]["g"]
    plain = audit(arrays, measure=measure, alignment_penalty=penalty, max_steps=0)
    codes = {"a": "x7", "b": "x2", "c": "x9"}
    arrays["features"]["g"] = group  # the column itself
    arrays["features"]["copy"] = np.array([codes[v] for v in group], dtype=object)
    arrays["features"]["number"] = np.select([group == "a", group == "b"], [5.0, 1.0], 2.0)
    arrays["features"]["nearly"] = np.where(np.arange(N) < 5, 1.0, group == "b")
    result = audit(arrays, measure=measure, alignment_penalty=penalty, max_steps=0)
    names = {f.measure.partition(":")[2] for f in result}
    assert names == {"", "carrier", "bystander", "used", "noise", "nearly"}
    (note,) = [n for n in result.notes if "`g=b`" in n]
    assert all(f"`{name}`" in note for name in ("g", "copy", "number"))
    assert "nearly" not in note
    assert len(plain) + 2 == len(result)
    for bad in ("carrier", "Carrier"):
        assert not any(bad in f.reason.replace("`carrier`", "") for f in result)


def test_weights_refuse_values_they_have_not_seen():
    arrays = columns()
    weights = audit(arrays, soft=False, max_steps=3).weights["g=b"]
    few = {k: v[:3].copy() for k, v in arrays["features"].items()}
    assert weights(few).shape == (3,)  # decisions by the learned score, cut where it was
    few["noise"][1] = "z"
    with pytest.raises(eh.DataError, match="`noise` has the value `z` in 1 rows"):
        weights(few)
    few = {k: v[:3].copy() for k, v in arrays["features"].items()}
    few["used"][0] = np.nan
    with pytest.raises(eh.DataError, match="`used` is missing in 1 rows"):
        weights(few)
    arrays["features"]["used"][5] = np.inf
    with pytest.raises(eh.DataError, match="`used` is infinite in 1 rows"):
        audit(arrays)


def test_evidence_holds_what_a_report_draws():
    result = audit(columns(), pairs=True, max_steps=5)
    plain = json.loads(json.dumps(result.to_dict()))
    by_kind = {}
    for f, e in zip(plain["findings"], plain["evidence"], strict=True):
        by_kind.setdefault(e["kind"], []).append((f, e))
    assert {k: len(v) for k, v in by_kind.items()} == {"gap": 2, "feature": 8}
    for finding, evidence in by_kind["feature"]:
        assert evidence["carried"] == finding["estimate"]
        assert evidence["interval"] == finding["interval"]
        assert evidence["score_interval"]["low"] <= evidence["score"] <= evidence["score_interval"]["high"]
    _, gap = by_kind["gap"][0]
    assert len(gap["pairs"]) == 6
    parts = [abs(row["carried"]) for row in gap["features"]]
    assert parts == sorted(parts, reverse=True)
    assert {row["measure"] for row in gap["features"]} == {
        f["measure"] for f, _ in by_kind["feature"] if f["groups"][0] == "g=b"
    }
    assert all({"association", "carried", "interval", "pvalue", "score"} <= set(row) for row in gap["features"])
    assert all(
        {"feature", "level", "group", "counterfactual", "reference"} == set(m) for m in gap["counterfactual"]["means"]
    )
    path = gap["counterfactual"]["path"]
    assert len(path["gap"]) == len(path["held_out"]) == len(path["effective_rows"]) == 1 + len(path["steps"])


def test_weights_remove_the_gap_and_score_new_rows(big):
    result = audit(big)
    weights = result.weights["g=b"]
    g = big["groups"]["g"]
    inside = {k: v[g == "b"] for k, v in big["features"].items()}
    c = weights(inside, score=big["score"][g == "b"])
    assert np.all(c >= 0)
    assert c.mean() == pytest.approx(1, abs=0.05)
    y, h = big["outcome"], big["score"]
    inside_y, inside_h = y[g == "b"], h[g == "b"]
    reweighted = np.average(inside_h[inside_y == 0], weights=c[inside_y == 0])
    reference = h[(g == "a") & (y == 0)].mean()
    before = inside_h[inside_y == 0].mean() - reference
    assert abs(reweighted - reference) < 0.35 * abs(before)
    everyone = weights.for_data(eh.AuditData.from_arrays(**big))
    assert everyone[g == "b"] == pytest.approx(c, abs=1e-6)  # the surrogate is exact here
    assert np.all(everyone[g != "b"] == 1)
    drawn = weights.resample(inside, 5000, rng=0)
    assert inside["carrier"][drawn].mean() == pytest.approx(np.average(inside["carrier"], weights=c), abs=0.03)
    table = result.evidence[0].counterfactual
    row = next(r for r in table.means if r.feature == "carrier")
    assert row.reference < row.counterfactual < row.group
    assert row.group == pytest.approx(inside["carrier"].mean())
    assert table.effective_rows < table.rows == (g == "b").sum()
    assert abs(table.path.held_out[-1]) <= 1e-3
    with pytest.raises(eh.DataError, match="`carrier`"):
        weights({"used": np.ones(3)})


def test_pairs_move_at_least_as_much_as_either(big):
    result = audit(big, pairs=True)
    alone = {e.feature: e.score for f, e in zip(result, result.evidence, strict=True) if e.kind == "feature"}
    first = {e.feature: e.score for e in result.evidence[1:5]}
    assert len(result) == 2 * (1 + 4)
    for row in result.evidence[0].pairs:
        larger = max(first[name] for name in row.features)
        assert row.beyond_the_larger == pytest.approx(row.score - larger)
        if "used" not in row.features:  # a number takes fewer values in a pair
            assert row.beyond_the_larger >= -1e-9
    assert set(alone) == {"carrier", "bystander", "used", "noise"}


def test_dummies_as_one_block(big):
    kinds = big["features"]["noise"]
    features = {k: v for k, v in big["features"].items() if k != "noise"}
    for k in ("u", "v"):
        features[f"is_{k}"] = (kinds == k).astype(float)
    result = audit({**big, "features": features}, blocks={"kind": ["is_u", "is_v"]})
    whole = audit(big)
    mine = {f.measure: f.estimate for f in result}
    theirs = {f.measure: f.estimate for f in whole}
    assert mine["fpr:kind"] == pytest.approx(theirs["fpr:noise"], rel=0.05)
    assert "fpr:is_u" not in mine


def test_missing_values_are_a_level(big):
    used = big["features"]["used"].copy()
    used[::7] = np.nan
    noise = big["features"]["noise"].copy()
    noise[::5] = None
    features = {**big["features"], "used": used, "noise": noise}
    result = audit({**big, "features": features})
    by = {f.measure: e for f, e in zip(result, result.evidence, strict=True)}
    assert by["fpr:used"].levels[-1].level == "missing"
    assert "missing" in {row.level for row in by["fpr:noise"].levels}
    assert all(np.isfinite(f.estimate) for f in result)


def test_a_margin_can_show_equivalence():
    arrays = columns(6, 6000)
    arrays["score"] = np.full(6000, 0.4) + 0.02 * arrays["features"]["carrier"]
    result = audit(arrays, margin=0.05)
    assert result[0].verdict == "disparity"
    assert result[0].margin is None
    assert result[1].verdict == "equivalent"
    assert result[1].margin == 0.05
    assert result[1].estimate == pytest.approx(0.007, abs=0.004)


# What every audit promises (see tests/contracts).


def test_same_seed_same_bytes_and_no_rows_in_the_result():
    first, second = (json.dumps(audit(columns()).to_dict()) for _ in range(2))
    assert first == second
    assert len(first) < 60_000


def test_another_seed_changes_no_estimate():
    one, two = (audit(columns(), rng=r) for r in (0, 1))
    assert [f.estimate for f in one] == [f.estimate for f in two]
    low = [[f.interval.low for f in r if ":" in f.measure] for r in (one, two)]
    assert low[0] == low[1]


def test_row_order_is_irrelevant():
    order = np.random.default_rng(5).permutation(N)
    a, b = audit(columns()).to_dict(), audit(take(columns(), order)).to_dict()
    assert a["findings"] == b["findings"]
    assert a["evidence"] == b["evidence"]


def test_relabelling_groups_permutes_findings():
    arrays = columns()
    new = {"a": "z", "b": "y", "c": "x"}
    renamed = {**arrays, "groups": {"g": np.array([new[v] for v in arrays["groups"]["g"]])}}
    before = {(f.measure, f.groups): f for f in audit(arrays)}
    for f in audit(renamed, reference="z"):
        back = tuple("g=" + {v: k for k, v in new.items()}[n[2:]] for n in f.groups)
        old = before[f.measure, back]
        assert (f.estimate, f.pvalue, f.interval.high) == pytest.approx(
            (old.estimate, old.pvalue, old.interval.high), rel=1e-9
        )


@pytest.mark.parametrize("measure", ["fpr", "da"])
def test_integer_weight_equals_repeated_rows(measure):
    arrays = columns()
    weight = np.random.default_rng(1).integers(1, 4, N)
    weighted = audit(arrays, weight=weight, weight_kind="frequency", measure=measure)
    repeated = audit(take(arrays, np.repeat(np.arange(N), weight)), measure=measure)
    assert [f.to_dict() for f in weighted] == [f.to_dict() for f in repeated]


def test_sampling_weights_change_what_they_should():
    arrays = columns(2, 4000)
    weight = np.where(arrays["features"]["carrier"] == 1, 0.5, 1.7)
    found = audit(arrays, weight=weight, weight_kind="sampling")
    h, y, g = arrays["score"], arrays["outcome"], arrays["groups"]["g"]
    value = [np.average(h[(g == k) & (y == 0)], weights=weight[(g == k) & (y == 0)]) for k in ("b", "a")]
    assert found[0].estimate == pytest.approx(value[0] - value[1])
    constant = audit(arrays, weight=np.full(4000, 3.5), weight_kind="sampling")
    plain = audit(arrays)
    for a, b in zip(constant, plain, strict=True):
        assert a.estimate == pytest.approx(b.estimate, abs=2e-3)  # the ridge weighs less
        assert a.interval.high == pytest.approx(b.interval.high, rel=0.02, abs=2e-3)


def test_inputs_are_left_as_found():
    arrays = columns()
    before = {k: v.copy() for k, v in arrays["features"].items()}
    audit(arrays, model=lambda X: np.full(len(X), 0.5))
    assert all(np.array_equal(arrays["features"][k], before[k]) for k in before)


def test_tiny_and_one_class_groups_are_not_computable_with_a_reason():
    arrays = columns()
    arrays["groups"]["g"] = np.where(np.arange(N) < 3, "tiny", arrays["groups"]["g"])
    arrays["outcome"][:3] = 0
    rows = [f for f in audit(arrays) if f.groups[0] == "g=tiny"]
    assert len(rows) == 5
    for f in rows:
        assert f.verdict == "not_computable"
        assert np.isnan(f.estimate)
        assert "`g=tiny` has 0 rows with outcome 1" in f.reason
        assert f.to_dict()["estimate"] is None


def test_constant_predictions():
    arrays = columns()
    arrays["score"] = np.full(N, 0.3)
    result = audit(arrays)
    assert result[0].estimate == 0
    assert all(f.verdict in ("inconclusive", "not_computable", "equivalent") for f in result)


def test_result_survives_a_round_trip_and_findings_are_complete():
    result = audit(columns(), pairs=True)
    plain = json.loads(json.dumps(result.to_dict()))
    assert eh.AuditResult.from_dict(plain).to_dict() == plain
    for f in result:
        assert f.reason.endswith(".")
        assert 0 < f.pvalue <= f.pvalue_adjusted <= 1
        assert f.interval.low <= f.estimate <= f.interval.high


def test_progress_speaks():
    heard = []
    audit(columns(), progress=heard.append)
    assert any("g=b" in line for line in heard)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"measure": "fprr"}, eh.UsageError, "Did you mean `fpr`"),
        ({"reference": "q"}, eh.UsageError, "not a group"),
        ({"attribute": "h"}, eh.UsageError, "attribute `h`"),
        ({"alpha": 2}, eh.UsageError, "`alpha`"),
        ({"folds": 1}, eh.UsageError, "`folds`"),
        ({"step": 0}, eh.UsageError, "`step`"),
        ({"margin": -1}, eh.UsageError, "`margin`"),
        ({"nuisance": "forest"}, eh.UsageError, "`forest`"),
        ({"blocks": {"b": ["nope"]}}, eh.UsageError, "no feature"),
        ({"model": lambda X: np.full(len(X), 2.0)}, eh.DataError, "no probabilities"),
        ({"model": lambda X: np.ones((len(X), 3))}, eh.DataError, "gave 2700 scores for 900 rows"),
    ],
)
def test_bad_requests_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        audit(columns(), **options)


def test_missing_columns_are_named():
    arrays = columns()
    with pytest.raises(eh.DataError, match="`features=`"):
        audit({k: v for k, v in arrays.items() if k != "features"})
    with pytest.raises(eh.DataError, match="`outcome=`"):
        audit({k: v for k, v in arrays.items() if k != "outcome"})
    no_score = {k: v for k, v in arrays.items() if k not in ("score", "decision")}
    with pytest.raises(eh.DataError, match="decisions, scores"):
        audit(no_score)
    with pytest.raises(eh.DataError, match="soft=True"):
        audit({k: v for k, v in arrays.items() if k != "score"}, soft=True)


def test_mean_influence_is_zero_and_explains_small_changes():
    # E[psi] = 0, and removing people moves the plug-in gap by what psi says.
    arrays = columns(8, 4000)
    h, g = arrays["score"], arrays["groups"]["g"]
    eta = expit(-0.6 + arrays["features"]["carrier"] + 0.6 * arrays["features"]["used"])
    form = functional("fpr")
    inside, one = g == "b", np.ones((g == "b").sum())
    reference = means(form, h[g == "a"], eta[g == "a"], np.ones((g == "a").sum()))
    sample = Sample(h=h[inside], eta=eta[inside], weight=one, reference=reference)
    at = centre_at(form, sample)
    found = psi(at, h[inside], eta[inside])
    assert found.mean() == pytest.approx(0, abs=1e-12)
    weight = one.copy()
    weight[:10] = 0
    moved = centre_at(form, replace(sample, weight=weight)).ratio[0] - at.ratio[0]
    assert moved == pytest.approx(-found[:10].sum() / weight.sum(), rel=0.02)


def test_interactions_of_the_outcome_do_not_make_bystanders_carriers():
    rng = np.random.default_rng(0)
    n = 4000
    group = np.where(rng.random(n) < 0.4, "b", "a")
    carrier = (rng.random(n) < np.where(group == "b", 0.6, 0.3)).astype(float)
    used = rng.normal(size=n)
    bystander = (rng.random(n) < 0.1 + 0.5 * ((used > 0) == (carrier == 1)) + 0.2 * (group == "b")).astype(float)
    arrays = {
        "outcome": (rng.random(n) < expit(-1 + carrier + 0.7 * used - 2 * used * carrier)).astype(int),
        "score": expit(-1.2 + 1.2 * carrier + 0.8 * used),
        "groups": {"g": group},
        "features": {"carrier": carrier, "bystander": bystander, "used": used},
    }
    additive, default = audit(arrays, interactions=False), audit(arrays)
    low = [r.evidence[2].score_interval.low for r in (additive, default)]
    assert low[0] > 0 == low[1]  # the known failure of an additive model: the bystander has a score
    assert verdicts(default)["fpr:bystander"] != "disparity"
    assert verdicts(default)["fpr:carrier"] == "disparity"
    assert default.evidence[0].nuisance["interactions"] == ["carrier × used"]


def test_a_model_is_not_asked_twice():
    asked = []

    def model(X):
        asked.append(len(X))
        return expit(-1 + 1.3 * X["carrier"])

    arrays = take(columns(), np.flatnonzero(columns()["groups"]["g"] != "c"))
    result = audit(arrays, model=model, max_steps=0, folds=2)
    assert asked[0] == sum(f["rows"] for f in result[0].counts.values())
    assert len(asked) == 2  # all rows once, then the group at each value of each feature, all at once


def test_without_coefficients_and_without_a_model_only_the_estimate_is_given():
    tree = importlib.import_module("sklearn.tree")
    arrays = columns(9, 1500)
    arrays["features"] = {"carrier": arrays["features"]["carrier"]}
    learner = tree.DecisionTreeClassifier(max_depth=2, random_state=0)
    found = audit(arrays, nuisance=learner, folds=2, max_steps=0)[1]
    assert found.verdict == "not_computable"
    assert np.isnan(found.pvalue)
    assert found.interval is None
    assert found.estimate > 0.05
    assert "neither interval nor test" in found.reason
