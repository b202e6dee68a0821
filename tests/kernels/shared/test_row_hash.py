"""The hash of a row's content against plain integers, and as a source of even numbers."""

from __future__ import annotations

import hashlib
import math
import struct

import numpy as np
from scipy import stats

from evenhand.kernels.shared.row_hash import Coded, row_hash, unit_interval

WORD = 2**64


def plain_mix(word: int) -> int:
    """SplitMix64 as its authors describe it: add the golden ratio, then two rounds of shift and multiply."""
    word = (word + 0x9E3779B97F4A7C15) % WORD
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % WORD
    return word ^ (word >> 31)


def plain_word(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest()[:8], "little")


def plain_hash(row: dict[str, float | str | None], seed: int) -> int:
    total = 0
    for name, value in row.items():
        if value is None:
            bits = 0
        elif isinstance(value, str):
            bits = plain_word(f"label:{value}")
        else:
            bits = int.from_bytes(struct.pack("<d", value + 0.0), "little")
        total += plain_mix(bits ^ plain_word(f"column:{name}"))
    return plain_mix(total % WORD ^ plain_word(f"seed:{seed}"))


def test_the_hash_is_that_of_plain_integers() -> None:
    rows: list[dict[str, float | str | None]] = [
        {"x": 0.5, "sex": "F"},
        {"x": -0.0, "sex": None},
        {"x": math.nan, "sex": "é"},
        {"x": 1e300, "sex": ""},
    ]
    columns = {"x": np.array([r["x"] for r in rows]), "sex": np.array([r["sex"] for r in rows], dtype=object)}
    assert row_hash(columns, seed=7).tolist() == [plain_hash(row, 7) for row in rows]


def test_values_count_and_neither_order_nor_type() -> None:
    x, y = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    assert (row_hash({"x": x, "y": y}, 0) == row_hash({"y": y, "x": x}, 0)).all()
    assert (row_hash({"x": x, "y": y}, 0) != row_hash({"x": y, "y": x}, 0)).all()
    assert (row_hash({"x": x}, 0) != row_hash({"x": x}, 1)).all()
    for same in (np.array([1, 2]), np.array([1, 2], dtype=np.float32), np.array([1, 2], dtype=np.uint8)):
        assert (row_hash({"x": x}, 0) == row_hash({"x": same}, 0)).all()
    assert row_hash({"x": np.array([True])}, 0) == row_hash({"x": np.array([1.0])}, 0)
    texts = np.array(["a", "b"])
    assert (row_hash({"t": texts}, 0) == row_hash({"t": texts.astype(object)}, 0)).all()


def test_the_hash_is_even() -> None:
    u = unit_interval(row_hash({"x": np.arange(100_000.0)}, seed=3))
    assert stats.kstest(u, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / math.sqrt(u.size)


def test_coded_texts_count_as_the_texts_themselves() -> None:
    numbers = np.array([1.5, -2.0, math.nan])
    texts = np.array(["F", None, "M"], dtype=object)
    coded = Coded(np.array([2, 0, 1]), [None, "M", "F"])
    plain = row_hash({"x": numbers, "sex": texts}, seed=3)
    np.testing.assert_array_equal(row_hash({"sex": coded, "x": numbers}, seed=3), plain)
    assert int(plain[0]) == plain_hash({"x": 1.5, "sex": "F"}, 3)
