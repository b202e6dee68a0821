"""The short form of the reproduction: what table IV's words still say, and one of its rows on the bundled data."""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference, demographic_parity_ratio, true_positive_rate_difference
from scipy import stats

HERE = Path(__file__).resolve().parents[2] / "reproductions" / "monjezi2025"


@pytest.fixture(scope="module")
def reproduction() -> Iterator[dict[str, ModuleType]]:
    names = ("cases", "classifiers", "printed", "run", "comparison", "comparison_tables")
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


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    """The stored settings with few rows and rounds."""
    config: dict[str, Any] = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))
    fewer = {"train_rows": 400, "test_rows": 600, "gradient_rounds": 3}
    fewer |= {"minimax_rounds": {"lr": 3}, "ecd_fair_trials": {"lr": 3}}
    return config | {"comparison": config["comparison"] | fewer}


def test_mitigators_are_compared_on_adult_by_sex_and_a_stopped_part_goes_on(
    reproduction: dict[str, ModuleType], small: dict[str, Any], tmp_path: Path
) -> None:
    comparison = reproduction["comparison"]
    first = comparison.run_part("census-sex", "lr", small, tmp_path, list(comparison.METHODS), 1)
    assert set(first["methods"]) == {"plain", *comparison.METHODS}
    both = comparison.run_part("census-sex", "lr", small, tmp_path, ["ecd_fair"], 2)
    assert both["methods"]["plain"][0] == first["methods"]["plain"][0]
    assert [len(both["methods"][m]) for m in ("plain", "ecd_fair", "maat")] == [2, 2, 1]
    assert json.loads((tmp_path / "lr-census-sex.json").read_text()) == both
    again = comparison.once("census-sex", reproduction["cases"].CASES["census-sex"](), "lr", "ecd_fair", small, 1)
    assert again | {"seconds": 0} == both["methods"]["ecd_fair"][1] | {"seconds": 0}
    fewer = small | {"comparison": small["comparison"] | {"train_rows": 300}}
    with pytest.raises(SystemExit, match="other settings"):
        comparison.run_part("census-sex", "lr", fewer, tmp_path, [], 1)


def test_measures_of_the_comparison_are_those_of_fairlearn(
    reproduction: dict[str, ModuleType], small: dict[str, Any]
) -> None:
    case = reproduction["cases"].CASES["census-sex"]()
    comparison = reproduction["comparison"]
    shown = comparison.once("census-sex", case, "lr", "plain", small, 0)
    train, test = comparison.split(case, small, 0)
    frame, y, sex = pd.DataFrame(case.columns), case.outcome.astype(int), case.columns["sex"]
    model = reproduction["classifiers"].learner("lr", case.columns, small, 0).fit(frame.iloc[train], y[train])
    decided = model.predict(frame.iloc[test])
    asked = {"y_true": y[test], "y_pred": decided, "sensitive_features": sex[test]}
    assert shown["accuracy"] == pytest.approx(np.mean(decided == y[test]))
    assert shown["spd"] == pytest.approx(demographic_parity_difference(**asked))
    assert shown["di"] == pytest.approx(1 - demographic_parity_ratio(**asked))
    assert shown["eod"] == pytest.approx(true_positive_rate_difference(**asked))


def test_the_corrected_test_is_the_paired_test_without_shared_rows(reproduction: dict[str, ModuleType]) -> None:
    pvalue = reproduction["comparison_tables"].resampled_pvalue
    gaps = np.array([0.02, 0.05, -0.01, 0.03, 0.04])
    assert pvalue(gaps, 0.0) == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
    # Nadeau and Bengio (2003): the variance times 1/J + n2/n1, here with 30 test and 70 training rows.
    t = gaps.mean() / np.sqrt(gaps.var(ddof=1) * (1 / 5 + 30 / 70))
    assert pvalue(gaps, 0.3) == pytest.approx(2 * stats.t.sf(t, 4))
    assert pvalue(np.zeros(5), 0.3) == 1


def test_the_stored_comparison_and_the_page_follow_from_the_parts(reproduction: dict[str, ModuleType]) -> None:
    tables = reproduction["comparison_tables"]
    config: dict[str, Any] = tomllib.loads((HERE / "config.toml").read_text(encoding="utf-8"))
    made = tables.summarise(HERE / "comparison", config)
    stored = json.loads((HERE / "comparison.json").read_text(encoding="utf-8"))
    assert made["counts"].keys() == stored["counts"].keys()
    for method, counts in stored["counts"].items():
        for measure, values in counts.items():
            assert made["counts"][method][measure] == (pytest.approx(values) if measure != "cells" else values)
    page = (HERE / "README.md").read_text(encoding="utf-8").split(tables.BEGIN)[1].split(tables.END)[0].strip()
    assert page == tables.page(stored)
