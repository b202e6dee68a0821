"""The exact null distribution in bins against scipy's hypergeometric law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.inference.rates.conditional import exact_null


@pytest.mark.parametrize(("successes", "trials"), [((3, 1), (4, 4)), ((282, 1262), (590, 3256)), ((0, 5), (3, 900))])
def test_bins_hold_the_hypergeometric_law(successes, trials):
    edges, shares = exact_null(successes, trials)
    law = stats.hypergeom(sum(trials), sum(successes), trials[0])
    x = np.arange(0, min(trials[0], sum(successes)) + 1)
    difference = x / trials[0] - (sum(successes) - x) / trials[1]
    wanted, _ = np.histogram(difference, bins=edges, weights=law.pmf(x))
    assert shares == pytest.approx(wanted, abs=1e-12)
    assert sum(shares) == pytest.approx(1, abs=1e-6)


def test_nobody_chosen_is_one_value():
    edges, shares = exact_null((0, 0), (5, 9))
    assert shares == pytest.approx([1.0])
    assert edges[0] < 0 < edges[1]
