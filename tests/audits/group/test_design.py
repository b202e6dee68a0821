"""The group audit on clustered rows and surveys: values, errors by leaving clusters out, engines, refusals, words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.audits.group.design import design_samples
from evenhand.audits.group.samples import check_needs
from evenhand.cli import run
from evenhand.errors import DataError, UsageError
from evenhand.inference.samples import Draws
from evenhand.intake import AuditData
from evenhand.metrics import METRICS
from evenhand.summaries import Sums


def people(seed: int = 0, *, crossing: bool = False, clusters: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 7, clusters)
    person = np.repeat(np.arange(clusters), size)
    first = rng.random(person.size) < 0.4 if crossing else person % 3 == 0
    level = rng.normal(size=clusters)[person]
    y = (rng.random(person.size) < 0.5).astype(int)
    score = 1 / (1 + np.exp(-(level + y + rng.normal(size=person.size) - 0.5)))
    return pd.DataFrame(
        {
            "y": y,
            "p": score.round(3),
            "d": (score > 0.5).astype(int),
            "sex": np.where(first, "F", "M"),
            "person": person,
            "job": rng.integers(0, 3, person.size),
            "region": person % 4,
            "w": rng.integers(1, 4, person.size),
        }
    )


def read(frame: Any, **more: Any) -> AuditData:
    return eh.read(
        frame, **{"outcome": "y", "decision": "d", "score": "p", "groups": ["sex"], "cluster": "person"} | more
    )


@pytest.mark.parametrize(
    "name", ["selection_rate", "fnr", "precision", "f1", "balanced_accuracy", "aod", "auc", "brier"]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_the_plain_ones_and_errors_those_of_leaving_clusters_out(name, weighted):
    frame = people(1, crossing=True, clusters=150)
    more = {"weight": "w", "weight_kind": "sampling"} if weighted else {}
    data = read(frame, **more)
    samples = design_samples(METRICS[name], data, data.attributes[0])
    weight = frame["w"].to_numpy() if weighted else np.ones(len(frame))

    def gap(rows: np.ndarray) -> float:
        value = []
        for sex in ("F", "M"):
            mine = rows & (frame["sex"] == sex).to_numpy()
            value.append(_plain(name, frame[mine], weight[mine]))
        return value[0] - value[1]

    everyone = np.ones(len(frame), dtype=bool)
    assert samples.difference(0, 1) == pytest.approx(gap(everyone), abs=1e-9)
    person = frame["person"].to_numpy()
    left_out = np.array([gap(person != c) for c in range(150)])
    jackknife = np.sqrt(149 / 150 * ((left_out - left_out.mean()) ** 2).sum())
    assert samples.standard_error(0, 1) == pytest.approx(jackknife, rel=0.04)


def _plain(name: str, frame: pd.DataFrame, w: np.ndarray) -> float:
    y, d, p = (frame[c].to_numpy() for c in ("y", "d", "p"))
    if name == "auc":
        above = (p[y == 1][:, None] > p[y == 0]) + 0.5 * (p[y == 1][:, None] == p[y == 0])
        pairs = np.outer(w[y == 1], w[y == 0])
        return float((pairs * above).sum() / pairs.sum())
    if name == "brier":
        return float(np.average((y - p) ** 2, weights=w))
    table = np.bincount(d + 2 * y, weights=w, minlength=4)
    return float(METRICS[name](table))


def answers(data: AuditData, **asked: Any) -> list[tuple[Any, ...]]:
    result = eh.audit_group(data, rng=0, **{"metrics": ["selection_rate", "fnr", "auc"]} | asked)
    return [(f.measure, round(f.estimate, 9), round(f.pvalue, 6), f.counts) for f in result]


@pytest.mark.parametrize("crossing", [False, True])
def test_cells_of_an_engine_say_the_same_as_rows(crossing):
    frame = people(2, crossing=crossing)
    asked: dict[str, Any] = {"score": None, "survey_strata": "region"} if crossing else {"score": None}
    rates = {"metrics": ["selection_rate", "fnr", "f1", "aod"]}
    kept, engine = read(frame, **asked), read(duckdb.from_df(frame), **asked, rows="cells")
    assert engine.moments is not None
    assert answers(kept, **rates) == answers(engine, **rates)


def test_means_from_moments_of_cells():
    frame = people(3, crossing=True)
    kept, engine = read(frame), read(duckdb.from_df(frame), rows="cells")
    one, two = (design_samples(METRICS["brier"], d, d.attributes[0]) for d in (kept, engine))
    assert one.estimate == pytest.approx(two.estimate, rel=1e-9)
    assert one.standard_error(0, 1) == pytest.approx(two.standard_error(0, 1), rel=1e-6)
    assert one.design_effect == pytest.approx(two.design_effect, rel=1e-6)


def test_a_frequency_weight_is_so_many_rows():
    frame = people(4)
    repeated = frame.loc[np.repeat(frame.index, frame["w"])].drop(columns="w")
    assert answers(read(frame, weight="w", weight_kind="frequency")) == answers(read(repeated))


def test_the_order_of_rows_and_the_names_of_clusters_do_not_matter():
    frame = people(5, crossing=True)
    names = {c: f"p{7 * c % 80:02d}" for c in range(80)}
    turned = frame.sample(frac=1.0, random_state=0).assign(person=lambda t: t["person"].map(names))
    assert answers(read(frame)) == answers(read(turned))


def test_other_names_of_the_groups_turn_the_signs_alone():
    frame = people(5, crossing=True)
    turned = frame.assign(sex=frame["sex"].map({"F": "z", "M": "a"}))
    asked: dict[str, Any] = {"metrics": ["fnr"], "compare": "pairs", "rng": 0}
    one, two = (eh.audit_group(read(t), **asked)[0] for t in (frame, turned))
    assert one.estimate == pytest.approx(-two.estimate)
    assert one.pvalue == two.pvalue


def test_sampling_strata_without_clusters_take_rows_for_clusters():
    frame = people(6, crossing=True)
    data = read(frame, cluster=None, survey_strata="region")
    samples = design_samples(METRICS["selection_rate"], data, data.attributes[0])
    region, d, first = frame["region"].to_numpy(), frame["d"].to_numpy(), (frame["sex"] == "F").to_numpy()
    pull = np.where(first, (d - d[first].mean()) / first.sum(), -(d - d[~first].mean()) / (~first).sum())
    variance = sum((region == h).sum() * pull[region == h].var(ddof=1) for h in range(4))
    assert samples.standard_error(0, 1) == pytest.approx(np.sqrt(variance), rel=1e-9)
    assert samples.counts[0]["largest_cluster"] == 1


def test_a_cluster_number_in_two_sampling_strata_names_two_clusters():
    frame = people(7, crossing=True).assign(person=lambda t: t["person"] // 4)
    nested = frame.assign(person=lambda t: t["person"].astype(str) + "/" + t["region"].astype(str))
    one, two = (read(t, survey_strata="region") for t in (frame, nested))
    assert answers(one) == answers(two)


def test_the_evidence_says_what_the_clusters_are():
    result = eh.audit_group(read(people(8, crossing=True)), metrics=["fnr"], rng=0)
    evidence = result.evidence[0]
    assert evidence.clusters.column == "person"
    assert 0 < evidence.clusters.crossing < evidence.clusters.clusters <= 80
    assert f"{evidence.clusters.crossing} of {evidence.clusters.clusters} clusters have people" in evidence.design_note
    assert set(evidence.clusters.design_effect) == {"sex=F", "sex=M"}
    assert "score test with the clusters' variance" in evidence.test
    counts = result[0].counts["sex=F"]
    assert counts["effective_rows"] < counts["rows"]
    assert evidence.thresholds is None
    page = eh.audit(read(people(8, crossing=True)), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    assert "clusters have people of more than one group" in page.to_html()


def test_a_stratum_with_one_cluster_is_said():
    frame = people(9, crossing=True).assign(region=lambda t: np.where(t["person"] == 3, "alone", "rest"))
    evidence = eh.audit_group(read(frame, survey_strata="region"), metrics=["selection_rate"], rng=0).evidence[0]
    assert evidence.clusters.single_cluster_strata == 1
    assert "1 of these have one cluster" in evidence.design_note


def test_a_dependence_that_rows_alone_take_for_evidence():
    # Twenty clusters whose rows are all alike: 400 rows, and as much as 20 people say.
    person = np.repeat(np.arange(20), 20)
    chosen = np.isin(person, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13]).astype(int)  # 6 of 8 and 4 of 12
    frame = pd.DataFrame({"d": chosen, "sex": np.where(person < 8, "F", "M"), "person": person})
    rows = {"decision": "d", "groups": ["sex"]}
    ignored = eh.audit_group(eh.read(frame, **rows), metrics=["selection_rate"], rng=0)[0]
    clustered = eh.audit_group(eh.read(frame, cluster="person", **rows), metrics=["selection_rate"], rng=0)[0]
    assert ignored.pvalue < 1e-6
    assert clustered.pvalue > 0.01
    assert sum(c["effective_rows"] for c in clustered.counts.values()) == pytest.approx(20, rel=0.2)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("calibration_error", "cannot be compared with `cluster`.*use `mean_residual`"),
        ("aod_abs", "cannot be compared with `cluster`.*use `aod`"),
        (eh.row_metric("own", lambda rows: float(np.median(rows["score"])), needs=("score",)), "no known influence"),
    ],
    ids=["calibration", "gaps", "rows"],
)
def test_metrics_without_influence_are_refused(metric, said):
    with pytest.raises(DataError, match=said):
        eh.audit_group(read(people()), metrics=[metric], rng=0)


def test_sampling_strata_alone_need_rows_for_means():
    engine = read(duckdb.from_df(people()), cluster=None, survey_strata="region", rows="cells")
    check_needs(METRICS["selection_rate"], engine)
    with pytest.raises(DataError, match="`brier` with `survey_strata=` and no `cluster=` needs rows"):
        check_needs(METRICS["brier"], engine)


def test_crossing_clusters_refuse_a_permutation_with_exit_code_2(tmp_path: Path, capsys):
    people(11, crossing=True).to_csv(tmp_path / "rows.csv", index=False)
    plan = tmp_path / "audit.toml"
    plan.write_text('audits = ["group"]\n\n[group]\nmethod = "permutation"\nmetrics = ["fnr"]\n')
    words = ["audit", str(tmp_path / "rows.csv"), "--outcome", "y", "--decision", "d", "--group", "sex"]
    code = run([*words, "--cluster", "person", "--plan", str(plan), "--out", str(tmp_path / "out")])
    said = " ".join(capsys.readouterr().err.split())
    assert code == 2
    assert "clusters of `person` have rows of more than one group, so whole clusters cannot swap groups" in said
    within = read(people(11))
    assert (
        "whole clusters swap groups"
        in eh.audit_group(within, metrics=["fnr"], method="permutation", rng=0).evidence[0].test
    )
    with pytest.raises(UsageError, match="whole clusters cannot swap"):
        eh.audit_group(read(people(11, crossing=True)), metrics=["fnr"], method="exact", rng=0)


def test_a_continuous_attribute_is_not_correlated_with_clustered_rows():
    frame = people(12).assign(age=np.arange(len(people(12))) % 50)
    data = read(frame, groups=["sex", "age"], continuous=["age"])
    found = [f for f in eh.audit_group(data, metrics=["fnr"], rng=0) if f.measure == "fnr_correlation"]
    assert "Correlation with clustered rows is not offered" in found[0].reason


def test_joint_adjustment_takes_clusters_for_rows():
    # Both attributes name the same people: the adjusted p-value is that of one comparison.
    frame = people(13).assign(gender=lambda t: t["sex"])
    data = read(frame, groups=["sex", "gender"])
    result = eh.audit_group(data, metrics=["selection_rate"], correction="max-t", rng=0)
    assert result.evidence[0].adjusted_pvalue == pytest.approx(result[0].pvalue, abs=0.02)


def test_power_knows_the_clusters():
    data = read(people(14))
    samples = design_samples(METRICS["selection_rate"], data, data.attributes[0])
    plain = eh.read(people(14), outcome="y", decision="d", score="p", groups=["sex"])
    detect = [
        eh.audit_group(d, metrics=["selection_rate"], rng=0).evidence[0].sample_size.detectable for d in (data, plain)
    ]
    assert abs(detect[0]) > 1.1 * abs(detect[1])
    assert samples.test(0, 1, Draws()).pvalue > 0
    assert Sums(data).confusion(data.attributes[0]).sum() == len(people(14))


@pytest.mark.parametrize("crossing", [False, True])
def test_strata_ask_the_conditional_question_of_clusters(crossing):
    frame = people(15, crossing=crossing)
    result = eh.audit_group(read(frame, strata=["job"]), metrics=["selection_rate", "auc"], ratio=True, rng=0)
    assert [f.measure for f in result] == ["selection_rate_ratio_conditional", "auc_ratio_conditional"]
    first, n = (frame["sex"] == "F").to_numpy(), len(frame)
    top = bottom = 0.0
    for job in range(3):
        here = (frame["job"] == job).to_numpy()
        d, m = frame["d"].to_numpy(), here.sum()
        top += d[here & first].sum() * (here & ~first).sum() / m
        bottom += d[here & ~first].sum() * (here & first).sum() / m
    assert result[0].estimate == pytest.approx(top / bottom, rel=1e-9)
    low, high = result[0].interval.low, result[0].interval.high
    assert low < result[0].estimate < high
    strata = result.evidence[0].strata
    assert (strata.strata, strata.compared, strata.rows) == (3, 3, n)
    crude = frame.loc[first, "d"].mean() / frame.loc[~first, "d"].mean()
    assert strata.crude == pytest.approx(crude, rel=1e-9)
    assert "Compared within 3 of 3 strata of job" in result[0].reason
    assert result.evidence[0].clusters.column == "person"


def test_all_groups_within_strata_of_clusters():
    frame = people(16, crossing=True).assign(team=lambda t: np.arange(len(t)) % 3)
    result = eh.audit_group(read(frame, groups=["team"], strata=["job"]), metrics=["fnr"], rng=0)
    assert [f.measure for f in result] == ["fnr_conditional", "fnr_conditional", "fnr_conditional_global"]
    assert all(0 < f.pvalue <= 1 for f in result)
