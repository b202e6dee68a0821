"""A few cells of ``calibration/tail.py``: size and coverage inside exact binomial limits."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from scipy import stats

REPLICATIONS = 200


@pytest.fixture(scope="module")
def grid() -> ModuleType:
    place = Path(__file__).parents[2] / "calibration" / "tail.py"
    spec = importlib.util.spec_from_file_location("calibration_tail", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def limits(share: float, n: int) -> tuple[float, float]:
    """Exact limits that a valid method leaves once in 10,000 runs."""
    low, high = stats.binom.ppf([5e-5, 1 - 5e-5], n, share)
    return low / n, high / n


@pytest.mark.parametrize("law", ["exponential", "uniform", "beta(1,5)", "interior maximum"])
def test_intervals_cover(grid: ModuleType, law: str) -> None:
    found = grid.intervals_cell(law, 50, REPLICATIONS, 1)
    low, _ = limits(0.945, REPLICATIONS)
    assert min(found["shape"], found["level n/5"], found["level n"], found["level 10n"]) >= low


@pytest.mark.parametrize(("law", "other"), [("exponential", "exponential"), ("exponential", "interior maximum")])
@pytest.mark.parametrize("sizes", [(500, 500), (2500, 500)])
def test_difference_holds_its_size_when_only_the_levels_agree(
    grid: ModuleType, law: str, other: str, sizes: tuple[int, int]
) -> None:
    found = grid.difference_cell(law, other, sizes, 50.0, 2 * REPLICATIONS, 1)
    for alpha in (0.05, 0.01, 0.001):
        assert found[f"rejected at {alpha:g}"] <= limits(alpha, 2 * REPLICATIONS)[1]
    assert found["coverage"] >= limits(0.95, 2 * REPLICATIONS)[0]


def test_level_holds_its_size(grid: ModuleType) -> None:
    found = grid.level_cell("pareto(4)", 500, 50.0, 1000, 1)
    for alpha in (0.05, 0.01, 0.001):
        assert found[f"rejected at {alpha:g}"] <= limits(alpha, 1000)[1]
    assert found["false equivalent at 0.05"] <= limits(0.05, 1000)[1]
    assert found["coverage"] >= limits(0.95, 1000)[0]


@pytest.mark.parametrize("horizon", [None, 1000.0])
def test_levels_of_a_trained_logistic_model_are_covered(grid: ModuleType, horizon: float | None) -> None:
    found = grid.model_cell("logistic", 500, horizon, 40, 1)
    assert found["given"] > 0.5
    assert found["coverage"] >= limits(0.95, round(80 * found["given"]))[0]
    assert found["wholly above the sample"] == found["above what is possible"] == 0


def test_random_groups_are_no_disparity(grid: ModuleType) -> None:
    blind = grid.random_cell("logistic", 2000, 2000, 20, 1, blind=True)
    assert blind["any disparity"] == 0
    given = grid.random_cell("logistic", 2000, 200_000, 20, 1)
    assert given["any disparity"] <= limits(0.05, 20)[1]
    assert given["false disparity"] <= limits(0.05, 20)[1]


@pytest.mark.parametrize(("law", "n", "share"), [("steps", 50, 1.0), ("logistic", 50, 1.0), ("uniform", 200, 0.05)])
def test_means_hold_their_size_and_their_intervals_cover(grid: ModuleType, law: str, n: int, share: float) -> None:
    found = grid.mean_cell(law, n, share, REPLICATIONS, 1)
    for alpha in (0.05, 0.01, 0.001):
        assert found[f"rejected at {alpha:g}"] <= limits(alpha, REPLICATIONS)[1]
    assert found["coverage"] >= limits(0.95, REPLICATIONS)[0]


def test_the_difference_of_worst_shares_holds_its_size(grid: ModuleType) -> None:
    found = grid.means_cell("logistic", "logistic", (200, 400), 0.05, REPLICATIONS // 2, 1)
    for alpha in (0.05, 0.01, 0.001):
        assert found[f"rejected at {alpha:g}"] <= limits(alpha, REPLICATIONS // 2)[1]
    assert found["coverage"] >= limits(0.95, REPLICATIONS // 2)[0]


def test_exponentiality_holds_its_size(grid: ModuleType) -> None:
    found = grid.exponentiality_cell("exponential", 100, 2000, 1)
    low, high = limits(0.05, 2000)
    assert low <= found["calibrated"] <= high
    assert found["printed"] > high


def test_intervals_cover_where_the_end_point_sits_at_its_limit(grid: ModuleType) -> None:
    found = grid.intervals_cell("beta(1,5)", 100, REPLICATIONS // 2, 1, bound=True)
    low, _ = limits(0.95, REPLICATIONS // 2)
    assert min(found["level n"], found["level 10n"], found["level 100n"]) >= low
