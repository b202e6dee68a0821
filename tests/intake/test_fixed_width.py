"""Texts of fixed width are coded as Python's own dictionary would code them."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.intake import fixed_width
from evenhand.intake.columns import from_values
from evenhand.intake.fixed_width import code_texts

WORDS = ["", "a", "b", "ab", "ba", " a", "é", "日本", "a" * 16, "a" * 15 + "b", "b" + "a" * 15, "\U0001f600"]


def one_by_one(items: list[object]) -> tuple[list[int], list[object]]:
    place: dict[object, int] = {}
    return [place.setdefault(item, len(place)) for item in items], list(place)


@pytest.mark.parametrize("longest", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("kind", ["U", "S"])
def test_codes_are_those_of_a_dictionary(longest: int, kind: str) -> None:
    rng = np.random.default_rng(longest)
    words = [w[:longest] for w in WORDS if kind == "U" or w.isascii()]
    array = np.array(words, dtype=f"{kind}{longest}")[rng.integers(len(words), size=30_000)]
    coded = code_texts(array)
    assert coded is not None
    codes, texts = one_by_one(array.tolist())
    assert coded[0].tolist() == codes
    assert coded[1].tolist() == texts
    swapped = code_texts(array.astype(array.dtype.newbyteorder()))
    assert swapped is not None
    assert swapped[0].tolist() == codes
    assert swapped[1].tolist() == texts
    every_second = code_texts(np.repeat(array, 2)[::2])
    assert every_second is not None
    assert every_second[0].tolist() == codes


def test_two_texts_in_one_place_are_never_one_label(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.array(["a", "b", "c"] * 10_000)
    monkeypatch.setattr(fixed_width, "_hashed", lambda words: words[:, 0] % 2)
    assert code_texts(array) is None
    column = from_values(array, "x")
    assert column.labels == ("a", "b", "c")
    assert column.values[:3].tolist() == [0, 1, 2]


def test_few_rows_and_many_texts_are_left_to_the_caller() -> None:
    assert code_texts(np.array(["a", "b"])) is None
    assert code_texts(np.empty(0, dtype="U3")) is None
    assert code_texts(np.arange(30_000).astype(str)) is None


@pytest.mark.parametrize("dtype", ["U", "S", object, "T"])
def test_a_column_is_the_same_however_numpy_keeps_its_texts(dtype: object) -> None:
    words = np.array(["b", " ", "a", ""] * 10_000)
    array = words.astype(np.dtypes.StringDType() if dtype == "T" else dtype)
    codes, labels = from_values(array, "x").texts()
    assert labels == ("a", "b")
    assert codes[:4].tolist() == [1, -1, 0, -1]
