"""The reference group is chosen and checked in one place."""

from __future__ import annotations

import pytest

import evenhand as eh
from evenhand.audits.reference import references

DATA = eh.AuditData.from_arrays(
    decision=[0, 1, 1, 0], groups={"sex": ["F", "M", "M", "M"], "race": ["x", "x", "y", "y"]}
)


def test_the_largest_group_or_the_first_of_equals_unless_another_is_named():
    assert references(DATA) == {"sex": "M", "race": "x"}
    assert references(DATA, {"race": "y"}) == {"sex": "M", "race": "y"}
    assert references(DATA, "F", [DATA.attribute("sex")]) == {"sex": "F"}
    assert references(DATA, {"sex": "F", "race": "y"}, [DATA.attribute("sex")]) == {"sex": "F"}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("F", "single label `F` but there are 2 attributes"),
        ({"sx": "F"}, "`sx`, which is not audited. Did you mean `sex`"),
        ({"sex": "f"}, "`sex=f` is not a group in the data. Did you mean `F`"),
    ],
)
def test_what_cannot_be_meant_is_refused(wanted, says):
    with pytest.raises(eh.UsageError, match=says):
        references(DATA, wanted)
