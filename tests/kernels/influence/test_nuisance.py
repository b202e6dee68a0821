"""Coding of features, cross-fitting, toggling and the linearised variances."""

from __future__ import annotations

import dataclasses
import importlib

import numpy as np
import pytest
from scipy.special import expit, logit

from evenhand.errors import DataError, UsageError
from evenhand.kernels.influence.design import join, make_design
from evenhand.kernels.influence.functionals import Centre, Sample, centre, functional, means, psi
from evenhand.kernels.influence.linearised import (
    equation,
    missed_products,
    score_covariance,
)
from evenhand.kernels.influence.nuisance import LogisticFolds, calibration_of, cross_fit, predict_folds, spread
from evenhand.kernels.influence.row_moments import Population, RowMoments
from evenhand.kernels.influence.set_features import toggle
from evenhand.kernels.influence.shifted_predictions import Rows, Sources
from evenhand.kernels.shared.logistic import fit_logistic

EVERYONE = np.ones(6, dtype=bool)


def mixed():
    return {
        "age": np.array([20.0, 30.0, 40.0, np.nan, 60.0, 20.0]),
        "job": np.array(["x", "y", None, "x", "z", "y"], dtype=object),
        "flag": np.array([True, False, True, True, False, False]),
        "same": np.ones(6),
        "code": np.array([3, 1, 2, 1, 1, 3]),
    }


def test_mixed_columns_become_blocks():
    columns = mixed()
    design = make_design(columns, np.ones(6), EVERYONE, categorical=["code"])
    by_name = {b.name: b for b in design.blocks}
    assert list(by_name) == ["age", "job", "flag", "code"]  # a constant column carries nothing
    assert by_name["age"].labels == ("20", "30", "40", "60", "missing")
    assert by_name["job"].labels == ("missing", "x", "y", "z")
    assert by_name["code"].labels == ("1", "2", "3")
    assert by_name["flag"].binary
    X = design.encode(columns)
    assert X.shape == (6, design.width)
    age = design.columns[0]
    assert X[:3, 0] * age.scale + age.centre == pytest.approx([20, 30, 40])
    assert X[:, 1].tolist() == [0, 0, 0, 1, 0, 0]


def test_levels_are_those_of_the_chosen_rows():
    columns = {"job": np.array(["x", "y", "z"], dtype=object)}
    design = make_design(columns, np.ones(3), np.array([True, True, False]))
    assert design.blocks[0].labels == ("x", "y")
    low, above, known = design.blocks[0].places(design.encode(columns))
    assert low[:2].tolist() == [0, 1]
    assert above[:2].tolist() == [0.0, 0.0]
    assert known.tolist() == [True, True, False]


def test_many_values_are_toggled_at_observed_quantiles():
    x = np.arange(1001.0)
    design = make_design({"x": x}, np.ones(1001), np.ones(1001, dtype=bool))
    assert design.blocks[0].labels == ("50", "150", "250", "350", "500", "650", "750", "850", "950")
    block = design.blocks[0]
    low, above, known = block.places(design.encode({"x": np.array([100.0, 0.0, 2000.0])}))
    assert low.tolist() == [0, 0, 8]
    assert above == pytest.approx([0.5, 0.0, 0.0])
    assert known.all()


def test_rows_may_be_counted_instead_of_repeated():
    rng = np.random.default_rng(0)
    x, count = rng.normal(size=200), rng.integers(1, 5, 200)
    counted = make_design({"x": x}, count.astype(float), np.ones(200, dtype=bool))
    repeated = make_design({"x": np.repeat(x, count)}, np.ones(count.sum()), np.ones(count.sum(), dtype=bool))
    assert counted.blocks[0].labels == repeated.blocks[0].labels
    assert (counted.columns[0].centre, counted.columns[0].scale) == (
        repeated.columns[0].centre,
        repeated.columns[0].scale,
    )


def test_dummies_can_be_one_feature():
    columns = {
        "is_a": np.array([1.0, 0, 0, 1]),
        "other": np.array([0.0, 1, 1, 0]),
        "is_b": np.array([0.0, 1, 0, 0]),
    }
    design = make_design(columns, np.ones(4), np.ones(4, dtype=bool), blocks={"kind": ["is_a", "is_b"]})
    assert [b.name for b in design.blocks] == ["kind", "other"]
    assert sorted(design.blocks[0].labels) == ["0, 0", "0, 1", "1, 0"]  # never 1, 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blocks": {"b": ["aeg"]}}, "Did you mean `age`"),
        ({"blocks": {"b": ["age"], "c": ["age"]}}, "`b` and `c`"),
        ({"blocks": {"flag": ["age", "job"]}}, "another feature"),
        ({"categorical": ["cod"]}, "Did you mean `code`"),
    ],
)
def test_bad_blocks_are_refused(options, words):
    with pytest.raises(UsageError, match=words):
        make_design(mixed(), np.ones(6), EVERYONE, **options)


def test_a_missing_column_is_named():
    design = make_design(mixed(), np.ones(6), EVERYONE)
    with pytest.raises(UsageError, match="`job` is missing"):
        design.encode({"age": np.ones(2)})


def test_rows_are_dealt_out_evenly_within_strata():
    rng = np.random.default_rng(0)
    count, stratum = rng.integers(1, 40, 30), rng.integers(0, 4, 30)
    record, fold, share = spread(count, stratum, 5, np.random.default_rng(1))
    assert np.bincount(record, weights=share).tolist() == count.tolist()
    for s in range(4):
        per_fold = np.bincount(fold, weights=share * (stratum[record] == s), minlength=5)
        assert per_fold.max() - per_fold.min() <= 1
    assert np.all(np.diff(fold) >= 0)


def test_cross_fitted_rows_do_not_see_themselves():
    # With one outlying row the fit without its fold must not know it.
    X = np.concatenate([np.zeros((40, 1)), [[30.0]]])
    y = np.concatenate([np.tile([0.0, 1.0], 20), [1.0]])
    fold = np.concatenate([np.repeat([0, 1], 20), [1]])
    learned = cross_fit("logistic", X, y, np.ones(41), fold, l2=1e-4)
    assert predict_folds(learned, X, fold)[-1] == pytest.approx(0.5)
    assert learned.whole(X)[-1] > 0.95


def test_shares_are_fitted_as_weighted_rows():
    X = np.array([[0.0], [1.0], [2.0]])
    target = expit(-1 + 0.8 * X[:, 0])
    learned = cross_fit("logistic", X, target, np.ones(3), np.array([0, 1, 2]), l2=1e-9)
    assert learned.whole(X) == pytest.approx(target, abs=1e-8)


def test_boosting_and_any_estimator():
    sklearn = importlib.import_module("sklearn.linear_model")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (rng.random(400) < expit(2 * X[:, 0])).astype(float)
    fold = np.arange(400) % 3
    model = sklearn.LogisticRegression(C=1.0, tol=1e-10)
    theirs = cross_fit(model, X, y, np.ones(400), fold)
    ours = cross_fit("logistic", X, y, np.ones(400), fold, l2=1.0)
    assert theirs.whole(X) == pytest.approx(ours.whole(X), abs=1e-5)
    assert not hasattr(model, "coef_")  # the user's object is left alone
    fold = np.arange(400) % 2
    trees = predict_folds(cross_fit("boosting", X, y, np.ones(400), fold), X, fold)
    assert np.corrcoef(trees, expit(2 * X[:, 0]))[0, 1] > 0.6


def test_bad_learners_are_refused():
    X, y, fold = np.zeros((4, 1)), np.array([0.0, 1, 0, 1]), np.array([0, 0, 1, 1])
    with pytest.raises(UsageError, match="`forest`"):
        cross_fit("forest", X, y, np.ones(4), fold)
    with pytest.raises(UsageError, match="`fit` and `predict_proba`"):
        cross_fit(3, X, y, np.ones(4), fold)
    sklearn = importlib.import_module("sklearn.linear_model")
    with pytest.raises(DataError, match="one outcome only"):
        cross_fit(sklearn.LogisticRegression(), X, np.array([1.0, 1, 0, 1]), np.ones(4), np.array([0, 1, 2, 2]))


def test_calibration_sees_a_model_that_is_too_sure():
    rng = np.random.default_rng(0)
    z = rng.normal(size=20000)
    y = (rng.random(20000) < expit(z)).astype(float)
    good, sure = (calibration_of(expit(k * z), y, np.ones(20000)) for k in (1, 2))
    assert good["slope"] == pytest.approx(1, abs=0.06)
    assert sure["slope"] == pytest.approx(0.5, abs=0.03)
    assert good["error"] < 0.02 < sure["error"]
    metrics = importlib.import_module("sklearn.metrics")
    assert good["auc"] == pytest.approx(metrics.roc_auc_score(y, z), abs=1e-12)


def setting(n=600, seed=0, measure="fpr", penalty=0.0):
    """A sample of two groups with learned sources, small enough for brute force."""
    rng = np.random.default_rng(seed)
    inside = np.arange(n) % 2 == 0
    columns = {
        "a": (rng.random(n) < np.where(inside, 0.6, 0.3)).astype(float),
        "b": rng.normal(size=n),
        "c": rng.choice(np.array(["u", "v", "w"], dtype=object), n),
    }
    design = make_design(columns, np.ones(n), inside)
    X = design.encode(columns)
    h = expit(-0.5 + columns["a"] + 0.5 * columns["b"] + rng.normal(0, 0.2, n))
    y = (rng.random(n) < expit(-0.3 + 0.8 * columns["a"] - 0.4 * columns["b"])).astype(float)
    fold = np.sort(np.arange(n) % 3)
    form = functional(measure, penalty)
    one = np.ones(n)
    eta_fit = cross_fit("logistic", X[inside], y[inside], one[inside], fold[inside], l2=1e-3)
    h_fit = cross_fit("logistic", X, h, one, fold, l2=1e-3)
    member = cross_fit("logistic", X, (~inside).astype(float), one, fold, l2=1e-3) if penalty else None
    return design, X, h, y, inside, fold, form, eta_fit, h_fit, member


@pytest.mark.parametrize(("measure", "penalty"), [("fpr", 0), ("fdr", 0), ("da", 0.2), ({"fnr": 1, "sp": -1}, 0)])
def test_toggles_are_definition_5(measure, penalty):
    design, X, h, _, g, fold, form, eta_fit, h_fit, member = setting(measure=measure, penalty=penalty)
    one = np.ones(g.sum())
    reference = means(form, h[~g], h[~g], one)
    at = centre(
        form, Sample(h=h[g], eta=eta_fit.whole(X[g]), weight=one, reference=reference, log_ratio=np.zeros(g.sum()))
    )
    sources = Sources(h=h_fit, eta=eta_fit, member=member)
    blocks = [*design.blocks, join(design.blocks[0], design.blocks[2])]
    found = toggle(blocks, Rows(X, np.ones(len(h)), fold, np.flatnonzero(g)), at, sources)
    for b, block in enumerate(blocks):
        table = []
        for level in block.levels:
            Z = X[g].copy()
            Z[:, list(block.where)] = level
            ratio = None if member is None else -logit(member.whole(Z))
            table.append(psi(at, h_fit.whole(Z), eta_fit.whole(Z), ratio))
        table = np.array(table)
        assert found.score[b] == pytest.approx((table.max(0) - table.min(0)).mean(), abs=1e-12)
        assert found.profile[b] == pytest.approx(table.mean(1), abs=1e-12)
    assert found.signed[0] == pytest.approx(found.profile[0][1] - found.profile[0][0])
    assert np.isnan(found.signed[2])


def whole_fit(X, y, weight):
    return LogisticFolds(fits=(), all_rows=fit_logistic(X, y, weight, 1e-3), l2=1e-3)


def test_a_model_is_asked_for_its_own_predictions():
    design, X, h, _, g, fold, form, _, _, _ = setting(measure="sp")
    at = Centre(form=form, ratio=(0.0,), scale=(1.0,), slope=(1.0,))
    asked = []

    def model(rows, block, level):
        asked.append((block.name, level))
        return np.full(len(rows), 0.3 * level if block.name == "c" else 0.0)

    found = toggle(design.blocks, Rows(X, np.ones(len(h)), fold, np.flatnonzero(g)), at, Sources(h=model))
    assert found.score == pytest.approx([0, 0, 0.6])
    assert {name for name, _ in asked} == {"a", "b", "c"}


@pytest.mark.parametrize("measure", ["fpr", "fdr", {"accuracy": 1.0, "fnr": 0.5}, "da"])
def test_linearised_covariance_agrees_with_the_bootstrap(measure):
    design, X, h, y, g, fold, form, _, _, _ = setting(n=600, measure=measure)
    n = len(h)

    def scores(weight, linear=False):
        eta = whole_fit(X[g], y[g], weight[g])
        hh = whole_fit(np.concatenate([X, X]), np.repeat([1.0, 0.0], n), np.concatenate([weight * h, weight * (1 - h)]))
        probability = eta.whole(X)
        reference = means(form, h[~g], y[~g], weight[~g])
        at = centre(form, Sample(h=h[g], eta=probability[g], weight=weight[g], reference=reference))
        rows = Rows(X, weight, fold, np.flatnonzero(g))
        found = toggle(design.blocks, rows, at, Sources(h=hh, eta=eta), linear=linear)
        return found, rows, at, probability, hh

    found, rows, at, probability, hh = scores(np.ones(n), linear=True)
    equations = {
        name: equation(X, target, p, weight, 1e-3)
        for name, target, p, weight in (
            ("eta", y, probability, g.astype(float)),
            ("h", h, hh.whole(X), np.ones(n)),
        )
    }
    people = Population(X=X, inside=g, count=np.ones(n), unit=np.ones(n), h=h, eta=np.where(g, probability, y))
    sums = RowMoments(form, (), 1 + X.shape[1])
    sums.add(people)
    linear = score_covariance(found, rows, people, at, equations, sums)
    rng = np.random.default_rng(1)
    boot = []
    for _ in range(80):
        weight = np.where(g, 0.0, 0.0)
        for side in (g, ~g):
            rows = np.flatnonzero(side)
            weight[rows] = rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)))
        boot.append(scores(weight)[0].score)
    boot_se = np.std(boot, axis=0, ddof=1)
    se = np.sqrt(np.diag(linear))
    assert se[:2] == pytest.approx(boot_se[:2], rel=0.3)  # the third is near 0, where the score folds


def test_a_number_with_many_values_may_bend():
    x = np.linspace(0, 8, 81)
    design = make_design({"x": x}, np.ones(81), np.ones(81, dtype=bool))
    X = design.encode({"x": x})
    assert X.shape == (81, 4)
    for k, knot in enumerate((2.0, 4.0, 6.0), start=1):
        assert X[:, k] * design.columns[0].scale == pytest.approx(np.maximum(x - knot, 0), abs=1e-9)
    spike = np.concatenate([np.zeros(90), np.arange(1.0, 21.0)])  # all quartiles at the least value
    assert make_design({"x": spike}, np.ones(110), np.ones(110, dtype=bool)).width == 1


def test_missed_products_are_found_and_only_they():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=(1500, 2)), rng.integers(0, 2, (1500, 2))])
    y = (rng.random(1500) < expit(0.5 * X[:, 0] + 1.2 * X[:, 0] * X[:, 2])).astype(float)
    one, fold = np.ones(1500), np.arange(1500) % 2
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]

    def missed(products):
        fit = cross_fit("logistic", X, y, one, fold, products=products)
        people = Population(X=X, inside=one > 0, count=one, unit=one, h=y, eta=fit.whole(X))
        return missed_products(people, equation(X, y, people.eta, one, 1.0), pairs)

    assert missed(()) == ((0, 2),)
    assert missed(((0, 2),)) == ()


@pytest.mark.parametrize("measure", ["fpr", "accuracy"])
def test_products_are_toggled_with_their_columns_and_slopes_are_right(measure):
    design, X, h, y, g, fold, form, _, _, _ = setting(measure=measure)
    products = ((0, 1), (1, 5))
    eta = cross_fit("logistic", X[g], y[g], np.ones(g.sum()), fold[g], products=products)
    one = np.ones(g.sum())
    at = centre(form, Sample(h=h[g], eta=eta.whole(X[g]), weight=one, reference=np.array([[0.3, 0.6]])))
    model = lambda rows, block, level: np.full(len(rows), 0.4 + 0.05 * level)  # noqa: E731

    def scores(fit, linear=False):
        rows = Rows(X, np.ones(len(h)), fold, np.flatnonzero(g))
        return toggle(design.blocks, rows, at, Sources(h=model, eta=fit), linear=linear)

    found = scores(eta, linear=True)
    Z = X[g].copy()
    values = []
    for k, level in enumerate(design.blocks[0].levels):
        Z[:, list(design.blocks[0].where)] = level
        values.append(psi(at, np.full(g.sum(), 0.4 + 0.05 * k), eta.whole(Z)))
    assert found.score[0] == pytest.approx(np.abs(values[1] - values[0]).mean())
    step = 1e-6
    for j in range(len(eta.all_rows.coef)):
        coef = eta.all_rows.coef.copy()
        coef[j] += step
        moved = LogisticFolds(eta.fits, dataclasses.replace(eta.all_rows, coef=coef), 1.0, products)
        slope = (scores(moved).score - found.score) / step
        assert found.slopes["eta"][:, 1 + j] == pytest.approx(slope, abs=2e-5)
