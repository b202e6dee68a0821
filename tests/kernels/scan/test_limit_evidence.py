"""Evidence from limit laws against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.kernels.scan.limit_evidence import MOST, chisquare_evidence, normal_evidence, student_evidence


@pytest.mark.parametrize("df", [1.0, 2.5, 7.9, 8.0, 12.0, 40.0, 3000.0, np.inf])
def test_student_is_scipys(df):
    t = np.array([0.0, 0.3, 1.0, 2.0, 4.0, 8.0])
    law = stats.norm if np.isinf(df) else stats.t(df)
    expected = np.minimum(-np.log(2 * law.sf(t)), MOST)
    assert student_evidence(t, np.array(df)) == pytest.approx(expected, rel=1e-4, abs=1e-9)
    assert student_evidence(-t, np.array(df)) == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_normal_and_chisquare_are_scipys():
    z = np.linspace(-6, 6, 25)
    assert normal_evidence(z) == pytest.approx(-np.log(2 * stats.norm.sf(np.abs(z))), rel=1e-12, abs=1e-12)
    x = np.array([0.1, 3.0, 20.0, 90.0])
    assert chisquare_evidence(x, np.array([1, 2, 7, 10])) == pytest.approx(
        -stats.chi2.logsf(x, [1, 2, 7, 10]), rel=1e-9
    )


def test_evidence_has_an_end():
    assert student_evidence(np.array([1e6]), np.array([100.0]))[0] == MOST
    assert chisquare_evidence(np.array([1e6]), np.array([3]))[0] == MOST
