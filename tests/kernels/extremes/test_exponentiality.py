from __future__ import annotations

import numpy as np
import pytest

from evenhand.kernels.extremes.exponentiality import exponentiality, limit_constant, residual_variation


def test_residual_variation_follows_its_definition() -> None:
    values = np.random.default_rng(1).normal(size=300)
    top = np.sort(values)[::-1][:60]
    found = residual_variation(top)
    for k in (10, 37, 60):
        excess = top[: k - 1] - top[k - 1]
        assert found[k - 10] == pytest.approx(excess.std(ddof=1) / excess.mean())


def test_residual_variation_does_not_lose_digits_far_from_zero() -> None:
    top = np.sort(np.random.default_rng(2).exponential(size=50))[::-1]
    np.testing.assert_allclose(residual_variation(top + 1e6), residual_variation(top), rtol=1e-6)


def _failures(kmax: int, *, printed: bool, replications: int = 2000) -> float:
    rng = np.random.default_rng(3)
    spacings = rng.standard_exponential((replications, kmax)) / np.arange(1, kmax + 1)
    tops = np.cumsum(spacings[:, ::-1], axis=1)[:, ::-1]  # the largest values of an exponential sample
    return float(np.mean([not exponentiality(t, kmax=kmax, printed=printed).passed for t in tops]))


@pytest.mark.parametrize(("kmax", "rate"), [(50, 0.074), (200, 0.133)])
def test_printed_limits_fail_too_often_and_calibrated_ones_hold(kmax: int, rate: float) -> None:
    # 2,000 samples: three standard errors are .018 at 7 %, .023 at 13 % and .015 at 5 %.
    assert _failures(kmax, printed=True) == pytest.approx(rate, abs=0.023)
    assert _failures(kmax, printed=False) == pytest.approx(0.05, abs=0.015)


def _largest_deviation(kmax: int, samples: int) -> np.ndarray:
    """The definition, spelled out: max over k of sqrt(k) (CV of the excesses over the k-th largest value - 1)."""
    rng = np.random.default_rng(5)
    top = -np.sort(-rng.exponential(size=(samples, 4 * kmax)), axis=1)[:, :kmax]
    found = np.full(samples, -np.inf)
    for k in range(10, kmax + 1):
        excess = top[:, : k - 1] - top[:, k - 1 : k]
        found = np.maximum(found, np.sqrt(k) * (excess.std(axis=1, ddof=1) / excess.mean(axis=1) - 1))
    return found


@pytest.mark.parametrize(
    ("kmax", "samples", "printed", "larger"),
    [(50, 20_000, 0.074, 2.72), (100, 8000, 0.103, 2.82), (200, 4000, 0.132, 3.00)],
)
def test_constants_are_the_95_percent_quantiles_and_larger_ones_are_not(
    kmax: int, samples: int, printed: float, larger: float
) -> None:
    deviation = _largest_deviation(kmax, samples)

    def share(constant: float) -> float:
        return float((deviation > constant).mean())

    def error(at: float) -> float:
        return 3.5 * float(np.sqrt(at * (1 - at) / samples))

    assert share(limit_constant(kmax)) == pytest.approx(0.05, abs=error(0.05))
    assert share(1.96) == pytest.approx(printed, abs=error(printed))
    # 2.72, 2.82 and 3.00 have been given for a level of 5 %. They are the 97.5 % quantiles (2.64, 2.86, 3.02): with
    # 7 to 14 % above 1.96 no such constant can leave 5 %.
    assert share(larger) == pytest.approx(0.025, abs=0.004 + error(0.025))
    assert share(larger) < 0.05 - error(0.05) / 2


def test_light_tails_pass_and_heavy_tails_fail() -> None:
    rng = np.random.default_rng(4)
    assert exponentiality(rng.random(1000)).passed
    assert not exponentiality(rng.pareto(1.0, size=1000)).passed


def test_limits_grow_with_the_range_of_k() -> None:
    assert limit_constant(50) < limit_constant(100) < limit_constant(200)


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 50 values"):
        exponentiality(np.arange(20.0))
