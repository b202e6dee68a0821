"""The short form of the reproduction: what table IV's words still say, and one of its rows on the bundled data."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).resolve().parents[2] / "reproductions" / "monjezi2025"


@pytest.fixture(scope="module")
def reproduction() -> Iterator[dict[str, ModuleType]]:
    names = ("cases", "classifiers", "printed", "run")
    sys.path.insert(0, str(HERE))
    before = {n: sys.modules.pop(n, None) for n in names}
    try:
        yield {n: importlib.import_module(n) for n in names}
    finally:
        sys.path.remove(str(HERE))
        for n, module in before.items():
            sys.modules.pop(n, None)
            if module is not None:
                sys.modules[n] = module


def test_the_words_of_table_iv_give_the_95_percent_of_the_abstract(reproduction: dict[str, ModuleType]) -> None:
    types = Counter(reproduction["printed"].TYPES.values())
    assert types == {"III": 62, "I": 14, "II": 4}
    assert (types["I"] + types["III"]) / 80 == 0.95


def test_the_printed_test_of_raw_values_accepts_a_heavy_tail(reproduction: dict[str, ModuleType]) -> None:
    rng = np.random.default_rng(0)
    heavy = [0.3 + 0.01 * rng.pareto(1.5, size=2000) for _ in range(40)]
    passes = reproduction["printed"].passes
    assert np.mean([passes(v, "values") for v in heavy]) > 0.8
    assert np.mean([passes(v, "excesses") for v in heavy]) < 0.3


def test_logistic_regression_on_adult_by_sex(reproduction: dict[str, ModuleType]) -> None:
    config: dict[str, Any] = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))
    cells = reproduction["run"].table_iv(["census-sex"], ("lr",), config | {"n_resamples": 99}, {})
    cell = cells["lr census-sex"]
    women, men = cell["groups"]
    assert women["group"] == "sex=Female"
    assert women["type"] == "III"
    assert men["maximum"] <= 1e-9  # a logistic model harms one side only
    assert cell["verdict"] == "disparity"
    assert cell["ecd"] == pytest.approx(women["location"], abs=1e-6)
    counted = reproduction["run"].feasibility(cells)
    assert counted["valid as the paper counts"] == counted["tails"] == 2
