from __future__ import annotations

import numpy as np
import pytest

from evenhand import datasets
from evenhand.errors import UsageError

DESIGN = {"base_rates": (0.3, 0.6, 0.1), "fnr": (0.2, 0.4, 0.1), "fpr": (0.1, 0.05, 0.3)}
ROWS = 300_000


def _empirical(data):
    """Every metric of every group by its plain definition, weighted."""
    attribute = data.attributes[0]
    weight = np.ones(data.outcome.size) if data.weight is None else data.weight
    out = {}
    for code in range(len(attribute.labels)):
        inside = attribute.codes == code
        y, d, s, w = data.outcome[inside], data.decision[inside], data.score[inside], weight[inside]

        def mean(v, where=slice(None), w=w):
            return float(np.average(np.broadcast_to(v, w.shape)[where], weights=w[where]))

        values = {
            "selection_rate": mean(d),
            "tpr": mean(d, y == 1),
            "fpr": mean(d, y == 0),
            "tnr": mean(1 - d, y == 0),
            "fnr": mean(1 - d, y == 1),
            "precision": mean(y, d == 1),
            "npv": mean(1 - y, d == 0),
            "fdr": mean(1 - y, d == 1),
            "for": mean(y, d == 0),
            "accuracy": mean(y == d),
            "error_rate": mean(y != d),
            "brier": mean((y - s) ** 2),
            "log_loss": mean(-np.log(np.where(y == 1, s, 1 - s))),
            "mean_score": mean(s),
        }
        values["balanced_accuracy"] = (values["tpr"] + values["tnr"]) / 2
        values["f1"] = 2 / (1 / values["precision"] + 1 / values["tpr"])
        order = np.argsort(s)
        below = np.cumsum(w[order] * (y[order] == 0))
        up = y[order] == 1
        values["auc"] = float((w[order] * below)[up].sum() / (w[order][up].sum() * below[-1]))
        for name, value in values.items():
            out.setdefault(name, []).append(value)
    return out


@pytest.mark.parametrize("weights", ["none", "random", "design"])
def test_each_metric_is_what_was_planted(weights):
    data = datasets.planted(ROWS, groups=("A", "B", "C"), shares=(1, 1, 1), **DESIGN, weights=weights, rng=3)
    truth = datasets.planted_values(**DESIGN)
    found = _empirical(data)
    assert set(found) == set(truth)
    for name, values in truth.items():
        np.testing.assert_allclose(found[name], values, atol=0.012, err_msg=name)


def test_the_design_sample_is_wrong_without_its_weights():
    data = datasets.planted(ROWS, fnr=(0.2, 0.4), weights="design", rng=3)
    fnr = [1 - data.decision[(data.attributes[0].codes == g) & (data.outcome == 1)].mean() for g in (0, 1)]
    # Errors sampled twice as often: 2 x / (1 + x).
    np.testing.assert_allclose(fnr, [0.4 / 1.2, 0.8 / 1.4], atol=0.01)


def test_scores_agree_with_decisions_and_can_be_left_out():
    data = datasets.planted(500, rng=1)
    assert np.array_equal(data.decision == 1, data.score >= 0.5)
    assert datasets.planted(500, scores=False, rng=1).score is None


def test_shares_are_kept():
    data = datasets.planted(100_000, groups=("x", "y"), shares=(9, 1), rng=0)
    assert np.bincount(data.attributes[0].codes)[1] == pytest.approx(10_000, abs=500)


def test_the_seed_decides_and_nothing_else():
    one, two, other = (datasets.planted(200, rng=r) for r in (5, 5, 6))
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert np.array_equal(one.score, two.score)


def test_extreme_rates_are_exact_and_undefined_ones_are_nan():
    data = datasets.planted(300, base_rates=0.5, fnr=0.0, fpr=1.0, rng=0)
    assert data.decision.min() == 1
    assert np.isnan(datasets.planted_values(fnr=1.0, fpr=0.0)["precision"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fnr": (0.1, 0.2, 0.3)}, "`fnr` must be one number or one for each of 2 groups"),
        ({"fpr": 1.2}, "`fpr` must lie between 0 and 1"),
        ({"base_rates": float("nan")}, "`base_rates` must lie between 0 and 1"),
        ({"shares": (1.0,)}, "`shares` must hold one positive number for each of 2 groups"),
        ({"shares": (1.0, 0.0)}, "`shares`"),
        ({"weights": "survey"}, "`weights` must be one of none, random, design"),
        ({"rows": 0}, "0 rows"),
    ],
)
def test_an_impossible_design_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        datasets.planted(**options)
