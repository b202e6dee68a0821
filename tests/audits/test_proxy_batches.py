"""The proxy audit of rows that stay where they are: any division gives one answer, and that of the rows in memory."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.audits.proxy import audit_proxy
from evenhand.audits.proxy.stated import GroupSample, at_hand, words_of
from evenhand.audits.proxy.sums import PairSums
from evenhand.intake.batches import LocalBatches

N = 6000
MEASURES = [{}, {"soft": False}, {"measure": "sp"}, {"measure": {"fpr": 0.5, "da": 2.0}}, {"measure": "cal"}]


def people(n=N, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.6, 0.37, 0.03])
    carrier = (rng.random(n) < np.where(group == "a", 0.3, 0.6)).astype(float)
    used = (rng.normal(size=n) + 0.2 * (group == "b")).round(3)
    used[rng.random(n) < 0.05] = np.nan
    noise = rng.choice(np.array(["u", "v", "w"], dtype=object), n)
    score = expit(-1 + 1.3 * carrier + 0.9 * np.nan_to_num(used))
    outcome = (rng.random(n) < expit(-0.6 + carrier + 0.6 * np.nan_to_num(used))).astype(int)
    weight = {"weight": rng.choice([0.5, 1.0, 2.5], n), "weight_kind": "sampling"} if weighted else {}
    return eh.AuditData.from_arrays(
        outcome=outcome,
        decision=(score > 0.5).astype(int),
        score=score,
        groups={"g": group},
        features={"carrier": carrier, "used": used, "noise": noise},
        **weight,
    )


def left(data, size, order=None):
    """Leave the rows where they are, in batches of so many."""
    rows = data if order is None else data.records(order)
    return replace(data, features={}, batches=LocalBatches.of(rows, size))


def audit(data, **options):
    return audit_proxy(data, reference="a", rng=0, **options)


def numbers(result):
    """Return the result as nested plain values, without notes."""
    return {k: v for k, v in json.loads(json.dumps(result.to_dict(), default=float)).items() if k != "notes"}


def same(one, other, rel, path=""):
    """Compare nested values: texts and whole numbers exactly, others to a relative difference."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key in one:
            same(one[key], other[key], rel, f"{path}/{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            same(a, b, rel, f"{path}/{k}")
    elif isinstance(one, float) and isinstance(other, float):
        assert other == pytest.approx(one, rel=rel, abs=1e-13, nan_ok=True), path
    else:
        assert one == other, path


@pytest.mark.parametrize("options", MEASURES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_of_all_rows_gives_what_rows_in_memory_give(options, weighted):
    data = people(1500, weighted=weighted)
    memory = audit(data, **options)
    batches = audit(left(data, 400, np.random.default_rng(1).permutation(1500)), **options)
    assert numbers(memory) == numbers(batches)
    assert batches.notes == memory.notes


@pytest.mark.parametrize("options", MEASURES, ids=str)
def test_any_division_and_any_order_give_one_answer(options):
    data = people()
    one = audit(left(data, 100_000), sample_rows=1000, **options)
    two = audit(left(data, 700, np.random.default_rng(2).permutation(N)), sample_rows=1000, **options)
    assert one.notes == two.notes
    same(numbers(one), numbers(two), 1e-10)


def test_rows_in_memory_are_drawn_as_those_that_stay_where_they_are():
    data = people()
    memory, batches = audit(data, sample_rows=1000), audit(left(data, 700), sample_rows=1000)
    assert memory.evidence[0].sample.sampled == batches.evidence[0].sample.sampled
    assert memory.notes == batches.notes
    same(numbers(memory), numbers(batches), 1e-10)


@pytest.mark.parametrize("options", [*MEASURES, {"measure": "da", "alignment_penalty": 0.3}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_small_sample_gives_nearly_what_all_rows_give(options, weighted):
    data = people(20_000, weighted=weighted)
    memory = audit(data, **options)
    batches = audit(left(data, 4096), sample_rows=3000, **options)
    for ours, theirs in zip(batches, memory, strict=True):
        assert ours.counts == theirs.counts
        if ":" not in ours.measure and options.get("measure") != "cal" and "alignment_penalty" not in options:
            assert ours.estimate == pytest.approx(theirs.estimate, rel=1e-10)  # no nuisance model is in it
            assert ours.interval.low == pytest.approx(theirs.interval.low, abs=2e-4)
    for ours, theirs in zip(batches.evidence, memory.evidence, strict=True):
        if ours.kind == "feature":
            assert ours.carried == pytest.approx(theirs.carried, abs=0.02)
            # Fewer rows in the fits widen an interval. What noise carries has no error of its own to first order.
            if not math.isnan(theirs.standard_error) and ours.feature != "noise":
                assert 0.8 * theirs.standard_error - 1e-9 < ours.standard_error < 4 * theirs.standard_error + 1e-3


def test_decisions_have_the_counts_and_the_exact_test_of_all_rows():
    data = people(20_000)
    memory, batches = audit(data, soft=False), audit(left(data, 4096), soft=False, sample_rows=3000)
    for ours, theirs in zip(batches, memory, strict=True):
        if ours.measure == "fpr":
            assert (ours.estimate, ours.pvalue, ours.interval.low) == (
                theirs.estimate,
                theirs.pvalue,
                theirs.interval.low,
            )


def test_the_evidence_states_the_sample():
    result = audit(left(people(), 700), sample_rows=1000)
    gap = next(e for e in result.evidence if e.kind == "gap")
    sample = gap.sample
    assert all(990 <= rows < sample.rows[name] for name, rows in sample.sampled.items())
    assert sample.rows == {k: v["rows"] for k, v in result[0].counts.items()}
    assert any(sample.fact in note for note in result.notes)
    small = next(e for f, e in zip(result, result.evidence, strict=True) if f.groups[0] == "g=c" and e.kind == "gap")
    assert small.sample.sampled["g=c"] == small.sample.rows["g=c"]  # a small group is there as a whole


def test_a_model_is_asked_where_the_rows_are():
    def model(X):
        return expit(-1 + 1.3 * X[:, 0] + 0.9 * np.nan_to_num(X[:, 1]))

    data = people()
    data = replace(data, features={k: data.features[k] for k in ("carrier", "used")})
    scored = audit(left(data, 700), sample_rows=1000, measure="sp")
    asked = audit(replace(left(data, 700), score=None, score_kind="none"), sample_rows=1000, measure="sp", model=model)
    for ours, theirs in zip(asked, scored, strict=True):
        assert ours.estimate == pytest.approx(theirs.estimate, abs=1e-6)


def test_the_sample_is_the_smallest_hashes_of_each_group_with_exact_counts():
    data = people(3000)
    twice = data.take(np.r_[np.arange(3000), np.arange(0, 3000, 2)])
    codes = twice.attribute("g").codes
    every = list(zip(words_of(twice).tolist(), twice.outcome.tolist(), strict=True))
    drawn = LocalBatches.of(twice, 333).fold(lambda: GroupSample({"g": 3}, 50)).drawn()
    for code in range(3):
        rows = Counter(record for record, own in zip(every, codes == code, strict=True) if own)
        limit = sorted(rows)[50][0]
        own = drawn.data.attribute("g").codes == code
        records = zip(drawn.words[own].tolist(), drawn.data.outcome[own].tolist(), strict=True)
        found = dict(zip(records, drawn.data.count[own].tolist(), strict=True))
        assert found == {record: k for record, k in rows.items() if record[0] < limit}
        assert drawn.limits["g"][code] == limit
        assert max(found.values()) > 1


def test_a_part_holds_little_more_than_its_share_of_the_sample():
    data = people(20_000)
    sparing, plain = GroupSample.sparing(data, 200), partial(GroupSample, {"g": 3}, 200)
    small, large = (LocalBatches.of(data, 700).fold(make).drawn() for make in (sparing, plain))
    assert small.words.tolist() == large.words.tolist()
    assert small.data.count.tolist() == large.data.count.tolist()
    assert small.limits["g"].tolist() == large.limits["g"].tolist()
    part, most = sparing(), plain()
    for sample in (part, most):
        sample.add(data.records(np.arange(5_000)))  # a quarter of the rows
    # About 84 lie below the bound of each large group, and of the small one 84 of 150; 550 are drawn without bounds.
    assert 150 < part.drawn().data.count.size < 350
    assert most.drawn().data.count.size > 500
    assert not part.holds
    assert most.holds


def test_rows_are_drawn_again_where_equal_ones_leave_too_few_below_the_bound():
    data = people(20_000)
    used = np.round(data.features["used"], 1)
    few = replace(data, score=np.round(data.score, 1), features={**data.features, "used": used})
    drawn = at_hand(left(few, 700), 150, asked=True)
    assert not LocalBatches.of(few, 700).fold(GroupSample.sparing(few, 150)).holds
    plain = LocalBatches.of(few, 700).fold(partial(GroupSample, {"g": 3}, 150)).drawn()
    assert drawn.words.tolist() == plain.words.tolist()
    assert drawn.data.count.tolist() == plain.data.count.tolist()


def test_groups_may_be_renamed():
    data = people()
    other = replace(data, attributes=(replace(data.attribute("g"), labels=("z", "y", "x")),))
    one = audit(left(data, 700), sample_rows=1000)
    two = audit_proxy(left(other, 700), reference="z", rng=0, sample_rows=1000)
    assert [f.estimate for f in one] == pytest.approx([f.estimate for f in two], rel=1e-10)


def test_values_that_the_sample_has_not_seen_are_counted_and_do_no_harm():
    data = people(20_000)
    everywhere = replace(data, features={**data.features, "noise": np.full(20_000, "seldom", dtype=object)})
    changed = np.argsort(words_of(everywhere))[-6:]  # in nobody's sample
    noise = data.features["noise"].copy()
    noise[changed] = "seldom"
    result = audit(left(replace(data, features={**data.features, "noise": noise}), 4096), sample_rows=2000)
    unseen = {f.groups[0]: e.sample.unseen for f, e in zip(result, result.evidence, strict=True) if e.kind == "gap"}
    codes = data.attribute("g").codes[changed]
    assert unseen["g=b"] == {"g=b": int((codes == 1).sum()), "g=a": int((codes == 0).sum())}
    assert sum(unseen["g=b"].values()) > 2
    assert "have a value that none of those has" in " ".join(result.notes)
    plain = audit(left(data, 4096), sample_rows=2000)
    assert [f.estimate for f in result] == pytest.approx([f.estimate for f in plain], abs=5e-3)


def test_memory_does_not_grow_with_the_batch(monkeypatch):
    data, makes, fold = people(60_000), [], LocalBatches.fold
    monkeypatch.setattr(LocalBatches, "fold", lambda self, make: (makes.append(make), fold(self, make))[1])
    audit(left(data, 60_000), sample_rows=1000)
    peaks = []
    for size in (20_000, 60_000):
        sums, rows = makes[-1]().pairs[0], np.arange(size)
        assert isinstance(sums, PairSums)
        tracemalloc.start()
        sums.add(data, rows, data.score[:size])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]


def frame_of(data):
    labels = np.array(data.attribute("g").labels, dtype=object)[data.attribute("g").codes]
    return pd.DataFrame({"y": data.outcome.astype(int), "p": data.score, "g": labels, **data.features})


ROLES = {"outcome": "y", "groups": ["g"], "features": ["carrier", "used", "noise"]}


@pytest.mark.parametrize("rows", [1000, 50_000])
def test_a_spark_frame_gives_what_a_file_gives(spark, tmp_path, rows):
    table = frame_of(people(3000))
    path = tmp_path / "people.parquet"
    table.to_parquet(path, row_group_size=500)
    frame = spark.read.parquet(str(path)).repartition(4)
    one, two = (audit(eh.read(s, score="p", **ROLES, rows="batches"), sample_rows=rows) for s in (path, frame))
    same(numbers(one), numbers(two), 1e-10)
    if rows > 3000:
        same(numbers(audit(eh.read(table, score="p", **ROLES))), numbers(one), 1e-10)


def test_in_a_run_the_model_decides_where_the_rows_are(tmp_path):
    data = people(4000)
    data = replace(data, features={k: np.nan_to_num(data.features[k]) for k in ("carrier", "used")})
    path = tmp_path / "people.parquet"
    frame_of(data).drop(columns="p").to_parquet(path, row_group_size=500)
    X = np.column_stack([data.features["carrier"], data.features["used"]])
    model = LogisticRegression().fit(X, data.outcome)
    plan = eh.Plan(audits=("group", "proxy"), proxy={"measure": "sp"})
    roles = ROLES | {"features": ["carrier", "used"]}
    memory, batches = (
        eh.audit(eh.read(path, **roles, rows=rows), model=model, plan=plan, rng=0) for rows in ("keep", "batches")
    )
    for one, two in zip(memory.findings, batches.findings, strict=True):
        if one.audit == "proxy":
            assert two.counts == one.counts
            assert (two.estimate, two.pvalue) == pytest.approx((one.estimate, one.pvalue), rel=1e-9, abs=1e-12)
