from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.intake import AuditData, read
from evenhand.intake.columns import from_values, is_missing, object_array, text_of

G = ["a", "b", "a", "b"]


def outcome_of(values: Any, **options: Any) -> AuditData:
    return AuditData.from_arrays(outcome=values, groups={"g": G}, **options)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False, True, False], [1, 0, 1, 0]),
        ([1, 0, 1, 0], [1, 0, 1, 0]),
        ([1.0, 0.0, 1.0, 0.0], [1, 0, 1, 0]),
        (np.array([1, -1, 1, -1]), [1, 0, 1, 0]),
        (["Yes", "no", "YES ", "No"], [1, 0, 1, 0]),
        (["true", "false", "True", "False"], [1, 0, 1, 0]),
        (["y", "n", "y", "n"], [1, 0, 1, 0]),
        (["t", "f", "t", "f"], [1, 0, 1, 0]),
        (["Positive", "Negative"] * 2, [1, 0, 1, 0]),
        (["good", "bad"] * 2, [1, 0, 1, 0]),
        (["denied", "approved"] * 2, [0, 1, 0, 1]),
        (["rejected", "accepted"] * 2, [0, 1, 0, 1]),
        (["Hired", "not hired"] * 2, [1, 0, 1, 0]),
        (["pass", "fail"] * 2, [1, 0, 1, 0]),
        (["1", "0"] * 2, [1, 0, 1, 0]),
        (["1.0", "0.0"] * 2, [1, 0, 1, 0]),
        ([">50K", "<=50K", ">50K.", " <=50K."], [1, 0, 1, 0]),
        ([">=3", "<3"] * 2, [1, 0, 1, 0]),
        ([0, 0, 0, 0], [0, 0, 0, 0]),
        (["yes"] * 4, [1, 1, 1, 1]),
        ([False] * 4, [0, 0, 0, 0]),
    ],
)
def test_known_labels_are_read_without_help(values: Any, expected: list[int]) -> None:
    data = outcome_of(values)
    assert data.outcome_kind == "binary"
    assert data.outcome is not None
    assert data.outcome.tolist() == expected


def test_words_are_noted_and_plain_codes_are_not() -> None:
    assert outcome_of([">50K", "<=50K"] * 2).notes == ("`outcome`: `>50K` counts as 1 and `<=50K` as 0.",)
    assert outcome_of([-1, 1, -1, 1]).notes == ("`outcome`: `1` counts as 1 and `-1` as 0.",)
    assert outcome_of([0, 1, 0, 1]).notes == ()


@pytest.mark.parametrize("values", [["cat", "dog"] * 2, ["high", "low"] * 2, [">50K", "<=40K"] * 2])
def test_an_unknown_pair_needs_help_and_the_error_shows_both(values: list[str]) -> None:
    with pytest.raises(DataError, match=rf"`{min(values)}` and `{max(values)}`.*Pass `positive='"):
        outcome_of(values)
    data = outcome_of(values, positive=values[1])
    assert data.outcome is not None
    assert data.outcome.tolist() == [0, 1, 0, 1]


def test_a_pair_of_other_whole_numbers_needs_help() -> None:
    with pytest.raises(DataError, match=r"`1` and `2`.*Pass `positive=1` or `positive=2`"):
        outcome_of([1, 2, 1, 2])
    data = outcome_of([1, 2, 1, 2], positive=2)
    assert data.outcome is not None
    assert data.outcome.tolist() == [0, 1, 0, 1]


def test_other_numbers_are_a_numeric_outcome() -> None:
    data = outcome_of([1.5, 2.0, 7.0, -3.0])
    assert data.outcome_kind == "numeric"
    assert data.outcome is not None
    assert data.outcome.tolist() == [1.5, 2.0, 7.0, -3.0]


def test_more_than_two_labels_need_help_and_become_one_against_the_rest() -> None:
    with pytest.raises(DataError, match=r"has 3 labels \(`a`, `b`, `c`\); a binary outcome has 2.*`positive=`"):
        outcome_of(["a", "b", "c", "a"])
    data = outcome_of(["a", "b", "c", "a"], positive="a")
    assert data.outcome is not None
    assert data.outcome.tolist() == [1, 0, 0, 1]
    assert data.notes == ("`outcome`: `a` counts as 1 and `b`, `c` as 0.",)


def test_a_decision_must_be_binary() -> None:
    with pytest.raises(DataError, match=r"has 4 values .* a decision has 2.*`score=` with a `threshold=`"):
        AuditData.from_arrays(decision=[0.1, 0.2, 0.3, 0.4], groups={"g": G})
    with pytest.raises(DataError, match=r"a binary decision has 2"):
        AuditData.from_arrays(decision=["a", "b", "c", "c"], groups={"g": G})


def test_positive_by_role_and_for_both() -> None:
    table = {"y": ["x", "z", "x", "z"], "d": [0, 1, 1, 0], "g": G}
    options = {"outcome": "y", "decision": "d", "groups": "g"}
    both = read(table, positive="z", **options)
    by_role = read(table, positive={"outcome": "z", "decision": 0}, **options)
    assert both.outcome is not None
    assert both.decision is not None
    assert by_role.decision is not None
    assert both.outcome.tolist() == [0, 1, 0, 1]
    assert both.decision.tolist() == [0, 1, 1, 0], "the value for both occurs in the outcome only"
    assert by_role.decision.tolist() == [1, 0, 0, 1]


def test_positive_for_a_decision_leaves_a_numeric_outcome() -> None:
    table = {"y": [0.5, 1.5, 2.5, 3.5], "d": ["x", "z", "x", "z"], "g": G}
    data = read(table, outcome="y", decision="d", groups="g", positive="z")
    assert data.outcome_kind == "numeric"


def test_positive_that_does_not_occur() -> None:
    with pytest.raises(DataError, match=r"`positive=` is 'yess'.*`no`, `yes`"):
        outcome_of(["yes", "no", "yes", "no"], positive="yess")
    with pytest.raises(DataError, match=r"`positive=` for outcome is 'x'.*does not occur in column `outcome`"):
        outcome_of(["yes", "no", "yes", "no"], positive={"outcome": "x"})
    with pytest.raises(UsageError, match=r"`positive=` has the key `outcom`; allowed"):
        outcome_of(["yes", "no", "yes", "no"], positive={"outcom": "yes"})


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, pd.NaT, "", "  "])
def test_rows_without_outcome_are_dropped_and_counted(gap: Any) -> None:
    data = AuditData.from_arrays(
        outcome=["yes", gap, "no", "yes", "no"], decision=[1, 1, None, 0, 0], groups={"g": ["a", "b", *G[:3]]}
    )
    assert data.rows.dropped == {"`outcome` is missing": 1, "`decision` is missing": 1}
    assert (data.rows.rows_in, data.rows.rows_used) == (5, 3)


def test_nullable_columns_of_frames() -> None:
    frame = pd.DataFrame(
        {
            "y": pd.array([1, 0, None, 1, 0], dtype="Int64"),
            "d": pd.array([True, None, False, True, False], dtype="boolean"),
            "g": pd.array(["a", "b", "a", "b", None], dtype="string"),
        }
    )
    data = read(frame, outcome="y", decision="d", groups="g")
    assert data.rows.dropped == {"`y` is missing": 1, "`d` is missing": 1, "`g` is missing": 1}
    assert data.outcome is not None
    assert data.outcome.tolist() == [1, 1]


def test_an_infinite_outcome_is_refused() -> None:
    with pytest.raises(DataError, match=r"Outcome `outcome` is infinite"):
        outcome_of([1.5, 2.5, float("inf"), 0.1])


NAN = float("nan")


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b", "", "c", " ", "a"],
        ["b", None, "a", NAN, float("nan"), NAN, "b"],
        ["1", 1, 1.0, True, "True", "1.0"],
        [b"a", "a", "b", b"b", None],
        [],
    ],
)
def test_objects_are_coded_as_one_by_one(values):
    """The slow way: look each value up in a list of those that came before it."""
    distinct: list[object] = []
    places = []
    for value in values:
        same = [i for i, known in enumerate(distinct) if known is value or known == value]
        places.append(same[0] if same else len(distinct))
        if not same:
            distinct.append(value)
    blank = [is_missing(value) or not text_of(value).strip() for value in distinct]
    column = from_values(object_array(values), "g")
    assert column.values.tolist() == [-1 if blank[place] else place for place in places]
    assert list(column.labels) == ["" if is_missing(value) else text_of(value) for value in distinct]


def test_objects_have_the_labels_that_pandas_finds():
    rng = np.random.default_rng(3)
    values = np.array(["White", "Asian", None, "not said", "é"], dtype=object)[rng.integers(5, size=5000)]
    codes, texts = pd.factorize(values)
    column = from_values(values, "g")
    labels = [None if code < 0 else column.labels[code] for code in column.values]
    assert labels == [None if code < 0 else texts[code] for code in codes]


def test_a_value_that_cannot_be_a_label_is_refused():
    with pytest.raises(DataError, match="`g` holds values that are not labels or numbers: unhashable type: 'set'"):
        from_values(object_array(["a", {"b"}]), "g")
