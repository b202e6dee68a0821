"""Numbers of [maity2021] that can be checked in seconds; the tables are in `reproductions/maity2021`."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "reproductions" / "maity2021"


@pytest.fixture(scope="module")
def figure1():
    spec = importlib.util.spec_from_file_location("maity2021_figure1", FOLDER / "figure1.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figure_1_crosses_at_1_255(figure1):
    crossings = [figure1.crossing(*figure1.sample(s)) for s in range(4)]
    assert np.mean(crossings) == pytest.approx(1.255, abs=0.01)
    assert np.std(crossings) < 0.02


def test_figure_1_as_printed_has_one_label_only():
    """E.1 without centring by the group mean: group 0 has w.x = -.2 * -1.5 = .3, far above noise of .01."""
    rng = np.random.default_rng(0)
    for sign in (-1, 1):
        X = np.array([1.5 * sign, 0.0]) + 0.25 * rng.normal(size=(1000, 2))
        assert ((X @ [0.2 * sign, -0.01] + 0.01 * rng.normal(size=1000)) > 0).all()


def test_figure_1_does_not_depend_on_theta_2_with_the_right_metric_and_does_with_a_wrong_one(figure1):
    X, y = figure1.sample(0)
    column = np.column_stack([np.zeros(5), np.linspace(-4, 4, 5)])
    right, wrong = (figure1.statistics(X, y, column, d) for d in (0, 10))
    assert np.abs(right - 1).max() < 0.04
    assert wrong[[0, -1]].min() > right[[0, -1]].max()
    assert wrong.max() < 1.25  # theta_1 = 0 is still not rejected


def test_the_papers_decaying_steps_follow_the_flow(figure1):
    X, y = figure1.sample(0)
    thetas = np.array([[1.2, 0.0], [2.0, 2.0]])
    np.testing.assert_allclose(
        figure1.statistics(X, y, thetas), figure1.statistics(X, y, thetas, adaptive=True), rtol=2e-3
    )


# Mean and standard deviation over ten splits as printed in tables 1, 3 and 4, and reproduced in `reproductions`.
# Not here: Project and SenSR in the entropy column of table 1 (its settings are mixed), and what the claim table lists
# as not reproduced.
PRINTED = [
    ("adult", "Baseline", "T_n", 3.676, 2.164),
    ("adult", "Baseline", "T_n error rate", 2.262, 0.356),
    ("adult", "Project", "T_n error rate", 1.800, 0.584),
    ("adult", "Reduction", "T_n", 5.712, 2.264),
    ("adult", "Reduction", "T_n error rate", 3.275, 0.343),
    ("adult", "SenSR", "T_n error rate", 1.081, 0.041),
    ("compas", "Baseline", "T_n", 2.385, 0.262),
    ("compas", "Project", "T_n", 1.161, 0.145),
    ("compas", "Reduction", "T_n", 1.763, 0.069),
    ("compas", "SenSR", "T_n", 1.098, 0.061),
]


@pytest.mark.parametrize(("data", "kind", "statistic", "mean", "deviation"), PRINTED)
def test_stored_tables_agree_with_print(data, kind, statistic, mean, deviation):
    """Two means of ten splits, theirs and ours, may differ by three standard errors."""
    stored = json.loads((FOLDER / "result.json").read_text(encoding="utf-8"))[data]["summary"][kind]
    found, splits = stored[statistic], stored["splits"]
    error = np.sqrt(deviation**2 / 10 + found["deviation"] ** 2 / splits)
    assert abs(found["mean"] - mean) < 3 * error
    assert error < mean / 4  # so that agreement says something


def test_stored_verdicts_agree_with_print():
    stored = json.loads((FOLDER / "result.json").read_text(encoding="utf-8"))
    for data in ("adult", "compas"):
        for kind in ("Baseline", "Reduction"):
            assert stored[data]["summary"][kind]["rejects"]["mean"] == 1.0
    adult = stored["adult"]["summary"]
    assert adult["SenSR"]["rejects"]["mean"] == 0.0
    # Equal odds between groups, and yet the worst of the four for similar people: the paper's point.
    assert abs(adult["Reduction"]["AOD sex"]["mean"]) < 0.05 < abs(adult["Baseline"]["AOD sex"]["mean"])
    assert adult["Reduction"]["T_n"]["mean"] > adult["Baseline"]["T_n"]["mean"] > adult["Project"]["T_n"]["mean"]
    assert stored["figure_1"]["crossing"]["mean"] == pytest.approx(1.255, abs=0.01)
