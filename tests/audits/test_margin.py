from __future__ import annotations

import pytest

from evenhand.audits.margin import parse_margin
from evenhand.errors import UsageError


def test_difference_and_ratio():
    assert (parse_margin(0.05).low, parse_margin("0.05").high) == (-0.05, 0.05)
    assert parse_margin("ratio:0.5").high == 2
    assert parse_margin("four-fifths").ratio
    assert parse_margin(None) is None


@pytest.mark.parametrize("bad", [0, -0.1, "five-fourths", "ratio:1.2", "ratio:0", float("nan"), float("inf"), ""])
def test_nonsense_is_refused(bad):
    with pytest.raises(UsageError, match="is not understood"):
        parse_margin(bad)
