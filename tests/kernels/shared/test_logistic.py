from __future__ import annotations

import importlib
import tracemalloc
import warnings

import numpy as np
import pytest

from evenhand.errors import DataError
from evenhand.kernels.shared.logistic import _crossed, fit_logistic
from evenhand.kernels.shared.seeds import stream


def _problem(rows=400, features=5, name="logistic"):
    rng = stream(11, name)
    X = rng.normal(size=(rows, features)) @ rng.normal(size=(features, features))
    p = 1 / (1 + np.exp(-(0.7 + X @ rng.normal(size=features) / features)))
    return X, (rng.random(rows) < p).astype(float), rng.uniform(0, 3, rows)


def _sklearn(X, y, weight, l2):
    linear_model = importlib.import_module("sklearn.linear_model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own deprecations
        C = np.inf if l2 == 0 else 1 / l2
        model = linear_model.LogisticRegression(C=C, tol=1e-12, max_iter=5000, solver="newton-cholesky")
        model.fit(X, y, sample_weight=weight)
    return model


@pytest.mark.parametrize("l2", [0.0, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_same_coefficients_as_scikit_learn(l2, weighted):
    X, y, w = _problem()
    weight = w if weighted else None
    ours = fit_logistic(X, y, weight, l2)
    theirs = _sklearn(X, y, weight, l2)
    np.testing.assert_allclose(ours.coef, theirs.coef_[0], rtol=0, atol=1e-7)
    np.testing.assert_allclose(ours.intercept, theirs.intercept_[0], rtol=0, atol=1e-7)
    np.testing.assert_allclose(ours.probability(X), theirs.predict_proba(X)[:, 1], rtol=0, atol=1e-7)


@pytest.mark.parametrize("piece", [1, 30_000, 10**9])
def test_many_columns_come_to_the_same_place_in_pieces_of_any_size(monkeypatch, piece):
    X, y, w = _problem(rows=300, features=70)
    many = fit_logistic(X, y, w)
    monkeypatch.setattr("evenhand.kernels.shared.logistic.PIECE", piece)
    other = fit_logistic(X, y, w)
    np.testing.assert_allclose(many.coef, other.coef, rtol=0, atol=1e-9)
    np.testing.assert_allclose(many.coef, _sklearn(X, y, w, 1.0).coef_[0], rtol=0, atol=1e-6)


def test_gradient_vanishes_at_the_solution_and_the_intercept_is_free():
    X, y, w = _problem()
    fit = fit_logistic(X, y, w, l2=3.0)
    residual = w * (fit.probability(X) - y)
    assert abs(residual.sum()) < 1e-5  # no penalty on the intercept
    np.testing.assert_allclose(X.T @ residual, -3.0 * fit.coef, atol=1e-5)


def test_integer_weight_is_repeated_rows():
    X, y, _ = _problem(rows=60)
    times = np.arange(60) % 4
    once = fit_logistic(X, y, times, l2=1.0)
    repeated = fit_logistic(np.repeat(X, times, axis=0), np.repeat(y, times), l2=1.0)
    np.testing.assert_allclose(once.coef, repeated.coef, atol=1e-9)
    np.testing.assert_allclose(once.intercept, repeated.intercept, atol=1e-9)


def test_two_cells_give_the_log_odds_ratio():
    # 30 of 100 against 10 of 50: the saturated model has a closed solution.
    x = np.repeat([1.0, 1.0, 0.0, 0.0], [30, 70, 10, 40])
    y = np.repeat([1.0, 0.0, 1.0, 0.0], [30, 70, 10, 40])
    fit = fit_logistic(x[:, None], y, l2=0.0)
    assert fit.intercept == pytest.approx(np.log(10 / 40), abs=1e-8)
    assert fit.coef[0] == pytest.approx(np.log(30 / 70) - np.log(10 / 40), abs=1e-8)


def test_columns_of_very_different_scale_still_converge():
    X, y, _ = _problem()
    scale = np.array([1e-3, 1.0, 1e4, 1e5, 10.0])
    fit = fit_logistic(X * scale, y, l2=0.0)
    np.testing.assert_allclose(fit.coef * scale, fit_logistic(X, y, l2=0.0).coef, rtol=1e-5, atol=1e-6)


def test_separated_classes_need_a_penalty():
    X = np.linspace(-1, 1, 20)[:, None]
    y = (X[:, 0] > 0).astype(float)
    with pytest.raises(DataError, match="separate"):
        fit_logistic(X, y, l2=0.0)
    assert np.isfinite(fit_logistic(X, y, l2=1e-3).coef).all()


def test_one_cell_without_outcome_one_needs_a_penalty():
    # Quasi-separated: the cell x = 1 has no outcome 1, so its coefficient runs to minus infinity.
    x = np.repeat([1.0, 0.0, 0.0], [30, 20, 20])
    y = np.repeat([0.0, 1.0, 0.0], [30, 20, 20])
    with pytest.raises(DataError, match="separate"):
        fit_logistic(x[:, None], y, l2=0.0)
    assert fit_logistic(x[:, None], y, l2=1.0).coef[0] < 0


def test_dependent_columns_need_a_penalty():
    X, y, _ = _problem()
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.raises(DataError, match="linearly dependent"):
        fit_logistic(X, y, l2=0.0)
    assert np.isfinite(fit_logistic(X, y, l2=1.0).coef).all()


def test_running_out_of_steps_is_an_error():
    X, y, _ = _problem()
    with pytest.raises(DataError, match="did not converge in 1 steps"):
        fit_logistic(X, y, max_iterations=1)


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([1.0, 2.0], [0, 1], {}, "shape"),
        ([[1.0], [2.0]], [0, 1, 1], {}, "shape"),
        ([[1.0], [np.nan]], [0, 1], {}, "1 rows with a NaN"),
        ([[1.0], [2.0]], [1, 1], {}, "must be 0 or 1 and hold both"),
        ([[1.0], [2.0]], [0, 2], {}, "must be 0 or 1"),
        ([[1.0], [2.0]], [0, 1], {"weight": [1, -1]}, "weight"),
        ([[1.0], [2.0]], [0, 1], {"weight": [1, 0]}, "hold both"),
        ([[1.0], [2.0]], [0, 1], {"l2": -1.0}, "l2"),
        ([[1.0], [2.0]], [0, 1], {"l2": np.nan}, "l2"),
    ],
)
def test_bad_input_gets_one_clear_sentence(X, y, options, message):
    with pytest.raises(DataError, match=message):
        fit_logistic(X, y, **options)


def test_the_start_changes_the_way_and_not_the_end(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    near, hessians = fit_logistic(X, y), []

    def counted(A, B):
        hessians[-1] += 1
        return _crossed(A, B)

    monkeypatch.setattr("evenhand.kernels.shared.logistic._crossed", counted)
    fits = []
    for start in (None, near):
        hessians.append(0)
        fits.append(fit_logistic(X[:280], y[:280], start=start))
    cold, warm = fits
    assert warm.coef == pytest.approx(cold.coef, abs=1e-11)
    assert warm.intercept == pytest.approx(cold.intercept, abs=1e-11)
    assert hessians[0] == cold.iterations
    assert hessians[1] == 1 < hessians[0]


def test_a_start_far_away_ends_at_the_same_place():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    far = fit_logistic(X, (X[:, 1] > 0).astype(float), l2=1e-3)
    cold, warm = (fit_logistic(X, y, start=start) for start in (None, far))
    assert warm.coef == pytest.approx(cold.coef, abs=1e-11)


@pytest.mark.parametrize(("rows", "columns"), [(7, 3), (20_000, 40), (3_000, 150), (400, 500)])
def test_products_of_tall_matrices_are_right_and_take_little_memory(rows, columns):
    A, B = np.random.default_rng(0).normal(size=(2, rows, columns))
    tracemalloc.start()
    found = _crossed(A, B)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, A.T @ B, rtol=1e-10, atol=1e-10)
    assert peak < 140 * 8 * columns**2 + 1e6  # two times 64 pieces, the result, and little else
