"""The influence of single people and the correction of a gap, as results of the proxy audit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from evenhand import AuditData, audit_proxy

RNG = np.random.default_rng(3)
N = 1500
GROUP = np.where(RNG.random(N) < 0.5, "a", "b")
X1 = (RNG.random(N) < np.where(GROUP == "b", 0.7, 0.3)).astype(float)
X2 = (RNG.random(N) < 0.5).astype(float)
SCORE = expit(-1.5 + 2 * X1 + X2)  # logistic, so that a surrogate learned from it is the model
OUTCOME = (RNG.random(N) < SCORE).astype(int)
FEATURES = {"x1": X1, "x2": X2}
DATA = AuditData.from_arrays(outcome=OUTCOME, score=SCORE, groups={"g": GROUP}, features=FEATURES)
B = GROUP == "b"


def weights_of(measure, reference="a"):
    label = "b" if reference == "a" else "a"
    return audit_proxy(DATA, measure=measure, reference=reference, interactions=False).weights[f"g={label}"]


def rows(inside):
    return {name: values[inside] for name, values in FEATURES.items()}


def test_the_influence_on_parity_is_the_distance_from_the_mean():
    weights = weights_of("sp")
    assert weights.influence(rows(B), score=SCORE[B]) == pytest.approx(SCORE[B] - SCORE[B].mean())
    assert weights.influence(rows(B)) == pytest.approx(SCORE[B] - SCORE[B].mean(), abs=1e-4)  # by the surrogate
    assert weights.influence(DATA, score=SCORE).shape == (N,)


@pytest.mark.parametrize("measure", ["fpr", "fnr", "da"])
def test_influence_has_mean_0_over_the_audited_group(measure):
    influence = weights_of(measure).influence(rows(B), score=SCORE[B])
    assert influence.mean() == pytest.approx(0, abs=0.02 * influence.std())


def test_the_influence_on_calibration_is_the_distance_of_model_and_outcome_from_its_mean():
    weights = weights_of("cal")
    apart = np.abs(weights.outcome.whole(weights.design.encode(rows(B))) - SCORE[B])
    influence = weights.influence(rows(B), score=SCORE[B])
    assert influence - influence.mean() == pytest.approx(apart - apart.mean())


def test_adding_people_changes_the_gap_as_their_influence_says():
    share = 0.01
    weights = weights_of("fpr")
    eta = weights.outcome.whole(weights.design.encode(rows(B)))

    def rate(w):
        return (w * SCORE[B] * (1 - eta)).sum() / (w * (1 - eta)).sum()

    influence = weights.influence(rows(B), score=SCORE[B])
    for person in (0, 1, 2, 3):
        one = np.zeros(B.sum())
        one[person] = B.sum()
        change = rate((1 - share) + share * one) - rate(np.ones(B.sum()))
        assert change / share == pytest.approx(influence[person], rel=0.05, abs=0.005)


@pytest.mark.parametrize("reference", ["a", "b"])
def test_the_correction_lowers_the_size_of_the_gap_as_fast_as_proposition_2_says(reference):
    inside = reference != GROUP
    weights = weights_of("sp", reference)
    phi = weights.correction(rows(inside), score=SCORE[inside])
    assert phi.mean() == pytest.approx(0, abs=1e-9)
    assert phi.std() == pytest.approx(1)
    there, step = SCORE[~inside].mean(), 0.01
    before = abs(SCORE[inside].mean() - there)
    after = abs(np.average(SCORE[inside], weights=1 + step * phi) - there)
    assert (before - after) / step == pytest.approx(SCORE[inside].std())


def test_a_combination_has_the_combined_influence():
    both, sp, fpr = (weights_of(m).influence(rows(B), score=SCORE[B]) for m in ({"sp": 0.5, "fpr": 2.0}, "sp", "fpr"))
    assert both == pytest.approx(0.5 * sp + 2 * fpr)


def test_evidence_says_what_any_weights_could_reach_and_what_counting_would_promise():
    result = audit_proxy(DATA, measure="fnr", reference="a", interactions=False)
    evidence = result.evidence[0]
    least = evidence.counterfactual.attainable
    assert (least.low, least.high) == pytest.approx((1 - SCORE[B].max(), 1 - SCORE[B].min()))
    assert least.nearest == least.reference
    assert least.gap == 0
    bound = evidence.nuisance["outcome"]["counting_bound"]
    assert bound == pytest.approx(np.sqrt(2 / B.sum() * (2 * 4 - np.log(0.05))))
    assert result.to_dict()["evidence"][0]["counterfactual"]["attainable"]["gap"] == 0


def test_nobody_has_influence_where_all_are_predicted_alike():
    data = AuditData.from_arrays(outcome=OUTCOME, score=np.full(N, 0.5), groups={"g": GROUP}, features=FEATURES)
    weights = audit_proxy(data, measure="sp", reference="a").weights["g=b"]
    assert np.isnan(weights.correction(rows(B), score=np.full(B.sum(), 0.5))).all()
