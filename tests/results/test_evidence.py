"""Evidence is written as plain data and read back as it was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from evenhand.results import Interval
from evenhand.results.evidence import Ends, Evidence, OpenPart, Part, read_evidence


class Inner(Part):
    from_: int
    outcome: int | None
    sizes: tuple[tuple[float, ...], ...] = ()


class Described(OpenPart):
    kind: str


class Full(Evidence):
    inner: tuple[Inner, ...]
    described: Described
    ends: Ends | Mapping[str, float] | None = None
    free: Mapping[str, Any] | None = None


FULL = Full(
    fact="So.",
    statistic=math.nan,
    verdict_interval=Interval(low=-math.inf, high=0.5, level=0.9, kind="score"),
    inner=(Inner(from_=1, outcome=None, sizes=((1.0, math.inf),)),),
    described=Described(kind="learned", details={"rank": 2}),
)
WRITTEN = {
    "fact": "So.",
    "statistic": None,
    "verdict_interval": {"low": None, "high": 0.5, "level": 0.9, "kind": "score"},
    "inner": [{"from": 1, "outcome": None, "sizes": [[1.0, None]]}],
    "described": {"rank": 2, "kind": "learned"},
}


def test_what_is_none_is_left_out_and_what_is_not_finite_is_null():
    assert FULL.to_dict() == WRITTEN


def test_it_is_read_back():
    read = read_evidence(WRITTEN, (Full, Evidence))
    assert isinstance(read, Full)
    assert math.isnan(read.statistic)
    assert read.verdict_interval == FULL.verdict_interval
    assert read.inner[0].outcome is None
    assert math.isnan(read.inner[0].sizes[0][1])
    assert read.described.details == {"rank": 2}
    assert read.to_dict() == WRITTEN


def test_the_first_class_that_fits_is_taken():
    assert type(read_evidence({"fact": "So."}, (Full, Evidence))) is Evidence
    with pytest.raises(ValueError, match="not the evidence of a finding: fact, other"):
        read_evidence({"fact": "So.", "other": 1}, (Full, Evidence))


def test_a_part_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="this is no Inner"):
        Full.from_dict({**WRITTEN, "inner": [{"from": 1}]})
    ends = {"low": 0.0, "high": 1.0, "level": 0.9}
    assert isinstance(Full.from_dict({**WRITTEN, "ends": ends}).ends, Ends)
    assert Full.from_dict({**WRITTEN, "ends": {"a": 1.0}}).ends == {"a": 1.0}
