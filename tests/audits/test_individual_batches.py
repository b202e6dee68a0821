"""The individual audit on batches: any division and any order of the rows gives what the rows in memory give."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import evenhand as eh
from evenhand.audits.individual import audit_individual
from evenhand.audits.individual.attack import Attack, UnfairMap
from evenhand.audits.individual.folds import make_plan
from evenhand.audits.individual.options import IndividualSetting
from evenhand.audits.individual.people import content_marks, gather, second_half
from evenhand.errors import DataError
from evenhand.intake.batches import LocalBatches, batches_of
from evenhand.kernels.flow.ratios import mean_of
from evenhand.similarity import SensitiveSubspace

N = 900


def arrays(n=N, seed=0):
    rng = np.random.default_rng(seed)
    sex, race = rng.integers(0, 2, n), rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 0.8 * sex
    X[:, 1] += 0.5 * race
    X = X.round(1)
    y = (X[:, 0] + 0.5 * X[:, 1] - X[:, 2] + rng.logistic(size=n) > 0).astype(int)
    return {"outcome": y, "groups": {"sex": sex.astype(str), "race": race.astype(str)}, "features": X}


def fitted(kind):
    a = arrays(600, seed=1)
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "network": MLPClassifier((6,), max_iter=40, tol=1.0, random_state=0),
        "searched": GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
    }[kind].fit(a["features"], a["outcome"])


@pytest.fixture(scope="module")
def models():
    return {kind: fitted(kind) for kind in ("logistic", "network", "searched")}


def in_batches(data, size, seed):
    """Let the rows stay elsewhere: shuffled, and divided into pieces of some size."""
    shuffled = data.take(np.random.default_rng(seed).permutation(int(data.count.sum())))
    return replace(data, batches=LocalBatches.of(shuffled, size), features={})


def same(one, two, where=""):
    """Compare plain data: texts and counts exactly, numbers to ten digits."""
    assert type(one) is type(two), where
    if isinstance(one, dict):
        assert list(one) == list(two), where
        for key in one:
            same(one[key], two[key], f"{where}/{key}")
    elif isinstance(one, list):
        assert len(one) == len(two), where
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            same(a, b, f"{where}/{k}")
    elif isinstance(one, float) and "/counts/" not in where and not where.endswith("/rows"):
        assert one == pytest.approx(two, rel=1e-10, abs=1e-10), where
    else:
        assert one == two, where


@pytest.mark.parametrize("kind", ["logistic", "network", "searched"])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_division_and_order_gives_the_answer_of_the_rows_in_memory(models, kind, weighted):
    weight = {"weight": np.random.default_rng(2).uniform(0.5, 2.0, N).round(1)} if weighted else {}
    data = eh.AuditData.from_arrays(**arrays(), **weight)
    ask = partial(audit_individual, model=models[kind], steps=40, refits=4, points=5, sample_rows=300, examples=3)
    memory = ask(data, rng=0)
    assert memory[0].counts["all"]["rows"] == N
    assert memory.evidence[0].metric.learned_on == "the other half of a sample of 300 rows"
    assert any("come from 300 rows" in note for note in memory.notes)
    for size, seed in ((N, 3), (250, 4), (60, 5)):
        same(memory.to_dict(), ask(in_batches(data, size, seed), rng=0).to_dict())


@pytest.mark.parametrize("kind", ["logistic", "searched"])
def test_rows_that_are_moved_may_be_a_sample_and_nobody_else_is_looked_at(models, kind):
    """The audit of a sample is that of the drawn rows alone, but for what it says about the others."""
    data = eh.AuditData.from_arrays(**arrays())
    ask = partial(audit_individual, model=models[kind], steps=40, refits=4, points=5, rng=0)
    drawn = ask(batches_of(data).sample(300, seed=0))
    for rows in (data, in_batches(data, 250, 4)):
        some = ask(rows, attack_rows=300)
        assert [f.estimate for f in some] == pytest.approx([f.estimate for f in drawn], rel=1e-10)
        assert [f.pvalue for f in some] == pytest.approx([f.pvalue for f in drawn], rel=1e-10)
        assert (some.evidence[0].map.rows_moved, some.evidence[0].map.rows_in_all) == (300, N)
        assert any(note.startswith(f"300 of {N} rows are moved") for note in some.notes)


def test_a_search_moves_a_sample_of_many_rows_by_default(models, monkeypatch):
    monkeypatch.setattr("evenhand.audits.individual.options.SEARCHED", 200)
    data = eh.AuditData.from_arrays(**arrays())
    ask = partial(audit_individual, data, steps=5, refits=0, points=3, rng=0)
    assert ask(model=models["searched"])[0].counts["all"]["rows"] == 200
    assert ask(model=models["searched"], attack_rows=N)[0].counts["all"]["rows"] == N
    assert ask(model=models["logistic"])[0].counts["all"]["rows"] == N


def test_batches_whose_sample_holds_all_rows_give_the_same_bytes(models):
    data = eh.AuditData.from_arrays(**arrays())
    ask = partial(audit_individual, model=models["logistic"], steps=40, refits=4, examples=2, rng=0)
    one, two = ask(data).to_dict(), ask(in_batches(data, 100, 3)).to_dict()
    assert json.dumps(one) == json.dumps(two)


def test_a_whole_weight_is_so_many_rows_in_batches(models):
    a, weight = arrays(), np.random.default_rng(1).integers(1, 4, N)
    ask = partial(audit_individual, model=models["logistic"], steps=40, refits=4, sample_rows=300, rng=0)
    cells = eh.AuditData.from_arrays(**a, weight=weight, weight_kind="frequency")
    at = np.repeat(np.arange(N), weight)
    rows = eh.AuditData.from_arrays(
        outcome=a["outcome"][at],
        groups={k: v[at] for k, v in a["groups"].items()},
        features=a["features"][at],
    )
    same([f.to_dict() for f in ask(cells)], [f.to_dict() for f in ask(in_batches(rows, 200, 6))])


def test_row_order_is_irrelevant_beyond_the_sample_to_the_last_byte(models, monkeypatch):
    """In memory the rows are divided by the hash of their content."""
    monkeypatch.setattr("evenhand.audits.individual.attack.BATCH_ROWS", 128)
    data = eh.AuditData.from_arrays(**arrays())
    ask = partial(audit_individual, model=models["logistic"], steps=40, refits=4, sample_rows=300, rng=0)
    shuffled = data.take(np.random.default_rng(8).permutation(N))
    one, two = ask(data), ask(shuffled)
    assert json.dumps([f.to_dict() for f in one]) == json.dumps([f.to_dict() for f in two])
    assert json.dumps([e.to_dict() for e in one.evidence]) == json.dumps([e.to_dict() for e in two.evidence])


def test_everybody_is_moved_under_the_metric_of_the_other_half_of_the_sample(models):
    """Move everybody by hand: directions from the sample's other half, sides by content."""
    data = eh.AuditData.from_arrays(**arrays())
    found = audit_individual(
        data, model=models["network"], steps=20, refits=0, sample_rows=300, limit="none", scale="none", rng=0
    )
    sample = gather(batches_of(data).sample(300, seed=0), models["network"], scale="none", loss=None, clip=0.0)
    known = np.unique(sample.marks)
    X, y = arrays()["features"] + 0.0, arrays()["outcome"].astype(float)
    sides = second_half(content_marks(np.column_stack([X, y])), known)
    assert 0.4 < sides.mean() < 0.6
    total, network = 0.0, sample.view.network
    for half in (False, True):
        form = SensitiveSubspace().fit(sample.rows.take(second_half(sample.marks, known) != half)).form.dense()
        x0, label = X[sides == half], y[sides == half]
        x = x0.copy()
        for _ in range(20):
            out, pull = network.pullback(x)
            x = x + 0.01 * (pull(sample.view.loss.slope(out, label)) - 100 * (x - x0) @ form)
        before, after = (sample.view.loss.log_value(network.outputs(z), label) for z in (x0, x))
        total += float(np.exp(after - before).sum())
    assert found[0].estimate == pytest.approx(total / N, rel=1e-9)


def test_the_metrics_error_counts_a_sample_for_what_it_is(models):
    """A metric from fewer rows is less sure; the ratio itself is still that of all rows."""
    data = eh.AuditData.from_arrays(**arrays(4000))
    ask = partial(audit_individual, data, model=models["logistic"], steps=40, refits=30, rng=0)
    whole, some = ask(), ask(sample_rows=400)
    assert some.evidence[0].metric_error > 1.5 * whole.evidence[0].metric_error
    assert some[0].estimate == pytest.approx(whole[0].estimate, rel=0.2)
    assert some[0].counts["all"]["rows"] == whole[0].counts["all"]["rows"] == 4000


def test_what_comes_back_is_sums_and_merges_in_any_order(models):
    data = eh.AuditData.from_arrays(**arrays())
    setting = IndividualSetting(model=None, freeze=(), level=0.95, method="euler", steps=10)
    people = gather(data, models["logistic"], scale="auto", loss=None, clip=0.0)
    unfair = UnfairMap.of(people, make_plan(people, SensitiveSubspace(), "crossfit", setting, None), setting)
    attacks = [Attack(unfair) for _ in range(3)]
    for attack, part in zip(attacks, np.array_split(np.arange(N), 3), strict=True):
        attack.add(data.records(part))
    assert max(len(pickle.dumps(attack.totals)) for attack in attacks) < 30_000
    forwards, backwards = Attack(unfair), Attack(unfair)
    for attack in attacks:
        forwards.merge(attack)
    for attack in attacks[::-1]:
        backwards.merge(attack)
    whole = unfair.apply(people, lambda _: None)[1]
    for found in (forwards.totals, backwards.totals):
        assert (found.rows, found.rates[-1].gained) == (N, whole.rates[-1].gained)
        assert mean_of(found.ratios[-1]).spread == pytest.approx(mean_of(whole.ratios[-1]).spread, rel=1e-10)
        np.testing.assert_array_equal(found.outside, whole.outside)


def frame_of(a):
    columns = {f"x{j}": a["features"][:, j] for j in range(4)}
    return pd.DataFrame({"y": a["outcome"], **a["groups"], **columns})


ROLES = {"outcome": "y", "groups": ["sex", "race"], "features": [f"x{j}" for j in range(4)]}


def test_a_file_read_in_batches_gives_what_it_gives_in_memory(models, tmp_path):
    path = tmp_path / "people.parquet"
    frame_of(arrays()).to_parquet(path, row_group_size=100)
    ask = partial(audit_individual, model=models["logistic"], steps=40, refits=4, sample_rows=300, rng=0)
    memory, batches = (eh.read(path, **ROLES, rows=rows) for rows in ("keep", "batches"))
    assert not batches.features
    one, two = ask(memory), ask(batches)
    same([f.to_dict() for f in one], [f.to_dict() for f in two])
    same([e.to_dict() for e in one.evidence], [e.to_dict() for e in two.evidence])


def test_in_a_run_what_the_model_says_does_not_choose_the_sample(models, tmp_path):
    """A run lets the model decide first; its scores are no part of what a row is."""
    path = tmp_path / "people.parquet"
    frame_of(arrays()).to_parquet(path, row_group_size=100)
    plan = eh.Plan(audits=("group", "individual"), individual={"sample_rows": 300, "steps": 40, "refits": 4})
    runs = [
        eh.audit(eh.read(path, **ROLES, rows=rows), model=models["logistic"], plan=plan, rng=0)
        for rows in ("keep", "batches")
    ]
    one, two = ([f.to_dict() for r in run.results if r.audit == "individual" for f in r] for run in runs)
    assert len(one) == 2
    same(one, two)


@pytest.mark.parametrize("kind", ["logistic", "searched"])
def test_a_spark_frame_gives_what_the_rows_give_in_memory(spark, models, kind):
    table = frame_of(arrays())
    frame = spark.createDataFrame(table.values.tolist(), list(table)).repartition(4)
    ask = partial(audit_individual, model=models[kind], steps=40, refits=4, points=5, sample_rows=300, rng=0)
    one, two = ask(eh.read(table, **ROLES)), ask(eh.read(frame, **ROLES, rows="batches"))
    same([f.to_dict() for f in one], [f.to_dict() for f in two])
    same([e.to_dict() for e in one.evidence], [e.to_dict() for e in two.evidence])


def test_a_model_that_is_silent_about_one_row_somewhere_is_named(models):
    """A person beyond the sample whose prediction is not a number is counted, not dropped."""
    a = arrays()
    a["features"][7, 3] = 99.0

    def black(X):
        p = models["logistic"].predict_proba(X)[:, 1]
        return np.where(X[:, 3] > 50, np.nan, p)

    data = eh.AuditData.from_arrays(**a)
    sample = batches_of(data).sample(100, seed=0)
    assert sample.features["x3"].max() < 50
    result = audit_individual(in_batches(data, 200, 1), model=black, refits=0, points=3, sample_rows=100, rng=0)
    assert [str(f.verdict) for f in result] == ["not_computable"] * 2
    assert f"not a number for 1 of {N} rows" in result[0].reason
    assert math.isnan(result[0].estimate)


def beyond_the_sample(a, rows):
    """Return a person whose changed input does not bring them into the sample."""
    for k in range(N):
        X = a["features"].copy()
        X[k, 3] = np.inf
        data = eh.AuditData.from_arrays(**{**a, "features": X})
        if np.isfinite(batches_of(data).sample(rows, seed=0).features["x3"]).all():
            return data
    raise AssertionError("everybody is in the sample")


def test_missing_inputs_beyond_the_sample_are_refused(models):
    data = in_batches(beyond_the_sample(arrays(), 100), 200, 1)
    with pytest.raises(DataError, match="1 rows have a missing or infinite model input"):
        audit_individual(data, model=models["network"], sample_rows=100, steps=5, refits=0, rng=0)


def test_a_model_that_raises_beyond_the_sample_is_named_with_its_words():
    def black(X):
        if len(X) and X[:, 3].max() > 50:
            raise ValueError("x3 is too large")
        return 1 / (1 + np.exp(-X[:, 0]))

    a = arrays()
    a["features"][7, 3] = 99.0
    data = in_batches(eh.AuditData.from_arrays(**a), 200, 1)
    with pytest.raises(
        DataError, match=r"raised ValueError: x3 is too large while 200 rows .* were moved.* This was in rows \d+ to"
    ):
        audit_individual(data, model=black, refits=0, points=3, sample_rows=100, rng=0)


def test_progress_counts_all_rows(models):
    seen = []
    data = in_batches(eh.AuditData.from_arrays(**arrays()), 200, 1)
    audit_individual(data, model=models["logistic"], steps=5, refits=0, sample_rows=100, progress=seen.append, rng=0)
    assert seen[-1] == f"individual: {N} of {N} rows"
    assert any("of the sample" in text for text in seen)


def with_jobs(n=N):
    a = arrays(n)
    job = np.array(["clerk", "smith", "baker"])[np.random.default_rng(3).integers(0, 3, n)]
    return {**a, "features": {"x": a["features"][:, 0], "z": 50 * a["features"][:, 2], "job": job.astype(object)}}


def paid(frame):
    bonus = np.asarray(frame["job"] == "smith", dtype=float)
    return 1 / (1 + np.exp(-(np.asarray(frame["x"]) - 0.02 * np.asarray(frame["z"]) + bonus)))


def test_a_function_of_columns_with_texts_is_searched_alike_in_batches():
    data = eh.AuditData.from_arrays(**with_jobs())
    ask = partial(audit_individual, model=paid, points=5, refits=3, rng=0)
    for rows in (300, N):
        one, two = ask(data, sample_rows=rows), ask(in_batches(data, 250, 3), sample_rows=rows)
        same([f.to_dict() for f in one], [f.to_dict() for f in two])
        same([e.to_dict() for e in one.evidence], [e.to_dict() for e in two.evidence])


def test_a_text_that_only_others_have_is_named():
    a = with_jobs()
    for k in range(N):
        job = a["features"]["job"].copy()
        job[k] = "dyer"
        data = eh.AuditData.from_arrays(**{**a, "features": {**a["features"], "job": job}})
        if "dyer" not in batches_of(data).sample(100, seed=0).features["job"]:
            break
    with pytest.raises(DataError, match="Feature `job` is `dyer` in 1 rows, and in none of those"):
        audit_individual(in_batches(data, 300, 1), model=paid, points=3, refits=0, sample_rows=100, rng=0)
