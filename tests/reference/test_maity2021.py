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


def test_stored_tables_say_what_the_claim_table_says():
    stored = json.loads((FOLDER / "result.json").read_text(encoding="utf-8"))
    adult = stored["adult"]["summary"]
    assert adult["Baseline"]["rejects"]["mean"] == 1.0
    assert adult["Baseline"]["T_n"]["mean"] == pytest.approx(3.6, abs=1.7)
    assert adult["Baseline"]["T_n"]["mean"] > adult["Project"]["T_n"]["mean"] > adult["SenSR"]["T_n"]["mean"]
    # The paper has Reductions above Baseline (5.7); the claim table says that this was not found.
    assert 1.25 < adult["Reduction"]["T_n"]["mean"] < adult["Baseline"]["T_n"]["mean"]
    assert abs(adult["Reduction"]["AOD sex"]["mean"]) < abs(adult["Baseline"]["AOD sex"]["mean"])
    assert stored["figure_1"]["crossing"]["mean"] == pytest.approx(1.255, abs=0.01)
