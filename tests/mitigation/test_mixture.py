"""The mixture against plain sums, and against audits that ask for a gradient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from scipy.optimize import approx_fprime
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import evenhand as eh
from evenhand.errors import DataError, UsageError
from evenhand.mitigation.mixture import FORMS, Mixture
from evenhand.models.adapter import adapt
from evenhand.models.distances import boundary_distance
from evenhand.models.gradient_sklearn import sklearn_model

RNG = np.random.default_rng(1)
X = RNG.normal(size=(300, 3)) * [1.0, 5.0, 0.2] + [0.0, 10.0, 0.0]
Y = (X[:, 0] + X[:, 1] / 5 - 2 + 0.5 * RNG.normal(size=300) > 0).astype(int)
ONE = LogisticRegression().fit(X, Y)
TWO = make_pipeline(StandardScaler(), LogisticRegression(C=0.01)).fit(X, Y)
THREE = make_pipeline(
    MinMaxScaler(), PCA(2), MLPClassifier((4,), alpha=1.0, solver="lbfgs", max_iter=2000, random_state=0)
).fit(X, 1 - Y)
ALWAYS = DummyClassifier(strategy="constant", constant=1).fit(X, np.ones(300, dtype=int))
MEMBERS = [ALWAYS, ONE, TWO, THREE]
WEIGHTS = np.array([0.1, 0.4, 0.3, 0.2])


def test_scores_are_weighted_means():
    chances = np.array([np.ones(300), *(m.predict_proba(X)[:, 1] for m in MEMBERS[1:])])
    np.testing.assert_allclose(Mixture(MEMBERS, 7 * WEIGHTS).predict_proba(X)[:, 1], WEIGHTS @ chances, atol=1e-14)
    votes = WEIGHTS @ np.array([m.predict(X) for m in MEMBERS])
    for form in ("decision", "randomised"):
        np.testing.assert_allclose(Mixture(MEMBERS, WEIGHTS, form=form).predict_proba(X)[:, 1], votes, atol=1e-14)
    for form in ("probability", "decision"):
        mixture = Mixture(MEMBERS, WEIGHTS, form=form)
        np.testing.assert_array_equal(mixture.predict(X), mixture.predict_proba(X)[:, 1] >= 0.5)


def test_the_draw_follows_the_weights_and_the_seed():
    rows = np.repeat(X[:3], 20_000, axis=0)
    mixture = Mixture(MEMBERS, WEIGHTS, form="randomised", random_state=3)
    drawn = mixture.predict(rows)
    np.testing.assert_array_equal(drawn, Mixture(MEMBERS, WEIGHTS, form="randomised", random_state=3).predict(rows))
    assert np.any(drawn != Mixture(MEMBERS, WEIGHTS, form="randomised", random_state=4).predict(rows))
    expected = mixture.predict_proba(X[:3])[:, 1]
    assert np.ptp(expected) > 0.3
    # Five standard deviations of a share of 20,000 draws.
    np.testing.assert_allclose(drawn.reshape(3, -1).mean(axis=1), expected, atol=5 * 0.5 / np.sqrt(20_000))


def test_the_gradient_is_that_of_the_mean_probability():
    mean = Mixture(MEMBERS, WEIGHTS)
    for form in FORMS:
        model = Mixture(MEMBERS, WEIGHTS, form=form).gradient_model()
        np.testing.assert_allclose(model.network.outputs(X)[:, 0], mean.predict_proba(X)[:, 1], atol=1e-12)
        outputs, pull = model.network.pullback(X[:5])
        np.testing.assert_allclose(outputs, model.network.outputs(X[:5]), atol=0)
        gradient = pull(np.ones((5, 1)))
        for row, found in zip(X[:5], gradient, strict=True):
            plain = approx_fprime(row, lambda x: mean.predict_proba(x[None])[0, 1], 1e-6)
            np.testing.assert_allclose(found, plain, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(pull(np.full((5, 1), -2.0)), -2 * gradient)


def test_it_is_the_formula_for_logistic_regressions():
    """As the individual audit of Reductions in [maity2021] needs it, written out by hand."""
    used = [LogisticRegression(C=c).fit(X, Y) for c in (0.1, 1.0, 10.0)]
    w, C, b = np.array([0.2, 0.5, 0.3]), np.vstack([m.coef_ for m in used]), np.hstack([m.intercept_ for m in used])
    p = special.expit(X @ C.T + b)
    outputs, pull = Mixture(used, w).gradient_model().network.pullback(X)
    np.testing.assert_allclose(outputs[:, 0], p @ w, atol=1e-13)
    np.testing.assert_allclose(pull(np.ones((300, 1))), (p * (1 - p) * w) @ C, atol=1e-13)


def test_a_member_without_gradient_makes_a_black_box():
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    mixture = Mixture([ONE, forest], [1, 1])
    assert mixture.gradient_model() is None
    assert sklearn_model(mixture) is None
    assert sklearn_model(Mixture([ONE, forest], [1, 0])) is not None


@pytest.mark.parametrize("form", FORMS)
def test_every_audit_takes_it(form):
    sex = (X[:, 0] > 0).astype(int)
    data = eh.AuditData.from_arrays(outcome=Y, groups={"sex": sex}, features={f"x{j}": X[:, j] for j in range(3)})
    run = eh.audit(data, model=Mixture([ONE, TWO], [0.6, 0.4], form=form), rng=0)
    assert {finding.audit for finding in run.findings} >= {"group", "individual", "projection"}
    ratio = next(f for f in run.findings if f.audit == "individual")
    assert ratio.estimate >= 1


def test_a_drawn_decision_is_as_far_away_as_the_boundary_of_the_member_drawn():
    columns = {f"x{j}": X[:, j] for j in range(3)}
    never = DummyClassifier(strategy="constant", constant=0).fit(X, np.zeros(300, dtype=int))
    mixture = Mixture([ONE, TWO, never], [0.5, 0.3, 0.2], form="randomised")
    _, which = mixture.drawn_members(300)
    scaled = X.std(axis=0)
    one = np.abs(ONE.decision_function(X)) / np.linalg.norm(ONE.coef_[0] * scaled)
    two = np.abs(TWO.decision_function(X)) / np.linalg.norm(TWO[-1].coef_[0])
    found = boundary_distance(adapt(mixture, columns), columns)
    np.testing.assert_allclose(found.distance, np.choose(which, [one, two, np.full(300, np.inf)]), rtol=1e-6)
    np.testing.assert_array_equal(found.decision, mixture.predict(X))
    assert {0, 1, 2} == set(which)
    behind = make_pipeline(StandardScaler(), Mixture([LogisticRegression().fit(X / 9, Y)], [1], form="randomised"))
    behind[0].fit(X)
    direct = make_pipeline(behind[0], behind[1].members[0])
    np.testing.assert_allclose(
        boundary_distance(adapt(behind, columns), columns).distance,
        boundary_distance(adapt(direct, columns), columns).distance,
    )
    # A threshold on the expected decision leaves nothing to draw.
    cut = boundary_distance(adapt(mixture, columns, threshold=0.4), columns)
    np.testing.assert_array_equal(cut.decision, mixture.predict_proba(X)[:, 1] >= 0.4)


def test_wrong_members_weights_and_forms_are_refused():
    with pytest.raises(DataError, match="one finite number of at least 0 for each of the 2 members"):
        Mixture([ONE, TWO], [1.0]).predict(X)
    with pytest.raises(DataError, match="at least one member must count"):
        Mixture([ONE, TWO], [0.0, 0.0]).predict(X)
    with pytest.raises(UsageError, match="allowed: `probability`, `decision`, `randomised`"):
        Mixture([ONE, TWO], [1, 1], form="vote").predict(X)
    with pytest.raises(UsageError, match="cannot be fitted itself"):
        Mixture([ONE, TWO], [1, 1]).fit(X, Y)
    words = LogisticRegression().fit(X, np.where(Y == 1, "yes", "no"))
    with pytest.raises(DataError, match="must be 0 and 1"):
        Mixture([words], [1]).predict(X)
