"""Which of a model's classes is decision 1, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import UsageError
from evenhand.intake.parts import Labels
from evenhand.models.orientation import class_of_one

WORDS = {"decision": Labels(one=("approved",), zero=("denied",))}
NUMBERS = {"outcome": Labels(one=("1",), zero=("0",))}


@pytest.mark.parametrize(
    ("classes", "labels", "place"),
    [
        ([0, 1], {}, 1),
        ([1, 0], {}, 0),
        ([False, True], NUMBERS, 1),
        (np.array([-1, 1]), NUMBERS, 1),
        (["0", "1"], NUMBERS, 1),
        ([0.0, 1.0], {"outcome": Labels(one=("True",), zero=("False",))}, 1),
        (["approved", "denied"], WORDS, 0),
        (np.array(["APPROVED ", "denied."]), WORDS, 0),
        ([0, 1], WORDS, 1),
        (["accepted", "rejected"], NUMBERS, 0),
        (["accepted", "rejected"], {}, 0),
        (["<=50K", ">50K"], {"outcome": Labels(one=(">50K.",), zero=("<=50K.",))}, 1),
        (["bad", "good"], {"outcome": Labels(one=("bad",), zero=("good",))}, 0),
        (["bad", "good"], {"outcome": Labels(one=("bad",), zero=("good", "none"))}, 0),
        ([1, 2], {"outcome": Labels(one=("2",), zero=("1",))}, 1),
        ([1, 2], {"outcome": Labels(one=("1",), zero=("2",))}, 0),
        (["approved", "denied"], {"decision": Labels(one=("approved",))}, 0),
        (["approved", "denied"], {"decision": Labels(one=(), zero=("denied",))}, 0),
        (["a", "b"], {"model": Labels(one=("a",)), **NUMBERS}, 0),
    ],
)
def test_classes_are_matched_to_the_labels_of_the_data(classes, labels, place):
    assert class_of_one(classes, labels, name="M")[0] == place


def test_what_was_taken_is_said_unless_it_is_plain():
    assert class_of_one([0, 1], NUMBERS, name="M")[1] == ""
    assert "Class 1 of the model `M` is taken to be `approved`" in class_of_one([0, 1], WORDS, name="M")[1]
    assert "as in the decision column" in class_of_one(["approved", "denied"], WORDS, name="M")[1]


@pytest.mark.parametrize(
    ("classes", "labels", "message"),
    [
        (["a", "b"], {}, r"which of them is decision 1 is not known. .* `positive=\{'model': 'a'\}`"),
        (["accepted", "rejected"], WORDS, r"do not match the data \(decision: `approved` is 1, `denied` is 0\)"),
        ([1, 2], NUMBERS, r"`positive=\{'model': 1\}` or `positive=\{'model': 2\}`"),
        (["approved", "maybe"], WORDS, "do not match"),
        (
            ["a", "b"],
            {"model": Labels(one=("c",))},
            "names the class `c` of the model `M`, whose",
        ),
        (
            ["bad", "good"],
            {"decision": Labels(one=("good",), zero=("bad",)), "outcome": Labels(one=("bad",), zero=("good",))},
            "is decision 1 and outcome 0",
        ),
    ],
)
def test_what_cannot_be_matched_is_refused_with_a_way_out(classes, labels, message):
    with pytest.raises(UsageError, match=message):
        class_of_one(classes, labels, name="M")
