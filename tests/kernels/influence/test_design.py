"""Which values a feature is toggled over."""

from __future__ import annotations

import numpy as np

from evenhand.kernels.influence.design import make_design


def test_a_number_that_is_nearly_always_zero_still_has_its_other_values():
    """Losses of capital: 97 in 100 people have none, so every quantile is zero."""
    values = np.zeros(1000)
    values[:30] = np.arange(1, 31)
    design = make_design({"loss": values}, np.ones(1000), np.ones(1000, dtype=bool))
    assert [raw[0] for raw in design.blocks[0].raw] == [0.0, 8.0, 15.0, 23.0]


def test_a_number_with_many_values_is_toggled_over_its_quantiles():
    values = np.arange(100.0)
    design = make_design({"age": values}, np.ones(100), np.ones(100, dtype=bool))
    assert [raw[0] for raw in design.blocks[0].raw] == [4.0, 14.0, 24.0, 34.0, 49.0, 64.0, 74.0, 84.0, 94.0]
