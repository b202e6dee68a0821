"""``evenhand audit --by``: a folder for each period, an overview, and one error rate over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.cli import run

BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex", "--metrics", "fnr")


def days() -> list[str]:
    return [f"2024-{1 + i // 200:02d}-{1 + i % 28:02d}" for i in range(600)]


def stored(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_folder_for_each_month_and_an_overview(
    tmp_path: Path, decisions: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    file = decisions(day=days())
    out = tmp_path / "out"
    assert run(["audit", str(file), *BASIC, "--by", "day:month", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert sorted(p.name for p in out.iterdir()) == [
        "2024-01", "2024-02", "2024-03", "periods.json", "report.html", "report.md",
    ]  # fmt: skip
    overview = stored(out / "periods.json")
    assert overview["alpha"] == 0.05
    assert overview["alpha_of_each"] == pytest.approx(0.05 / 3)
    assert [p["rows_used"] for p in overview["periods"]] == [200, 200, 200]
    assert "The error rate 0.05 is divided evenly over 3 periods, 0.0167 for each" in shown
    assert 'href="2024-02/report.html"' in (out / "report.html").read_text()
    # What a period says is what an audit of its rows alone at its share of the error rate says.
    lines = file.read_text().splitlines()
    for month in ("2024-01", "2024-02", "2024-03"):
        alone = tmp_path / f"{month}.csv"
        alone.write_text("\n".join([lines[0], *(line for line in lines if f",{month}-" in line)]) + "\n")
        words = ["audit", str(alone), *BASIC, "--alpha", str(0.05 / 3), "--out", str(tmp_path / month)]
        assert run([*words, "--reference", "sex=F"]) == 0
        assert (
            stored(out / month / "findings.json")["findings"] == stored(tmp_path / month / "findings.json")["findings"]
        )


def test_the_error_rate_of_each_period_alone(tmp_path: Path, decisions: Callable[..., Path]) -> None:
    file = decisions(day=days())
    for words, share in ((["--by-alpha", "each"], 0.05), (["--correction", "none"], 0.05), (["--alpha", "0.3"], 0.1)):
        out = tmp_path / "out"
        assert run(["audit", str(file), *BASIC, "--by", "day:month", *words, "--out", str(out), "--quiet"]) == 0
        assert stored(out / "periods.json")["alpha_of_each"] == pytest.approx(share)
        assert stored(out / "2024-01" / "findings.json")["plan"]["alpha"] == pytest.approx(share)


def test_one_reference_for_all_periods_and_a_period_without_it(
    tmp_path: Path, decisions: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """F is the larger group overall, has few rows in the second period and none in the third."""
    sex = ["F"] * 200 + ["F"] * 30 + ["M"] * 170 + ["M"] * 200
    sex[:60] = ["M"] * 60
    sex = ["F" if s == "M" else "M" for s in sex] if sex.count("F") < 300 else sex
    file = decisions(sex=np.array(sex), when=["a/1"] * 200 + ["../b"] * 200 + ["c"] * 200)
    out = tmp_path / "out"
    assert run(["audit", str(file), *BASIC, "--by", "when", "--out", str(out), "--fail-on", "disparity"]) in (0, 3)
    assert sorted(p.name for p in out.iterdir() if p.is_dir()) == ["_b", "a_1", "c"]
    groups = {tuple(f["groups"]) for p in ("_b", "a_1") for f in stored(out / p / "findings.json")["findings"]}
    assert len(groups) == 1, "compared with the same group in every period"
    verdicts = {f["verdict"] for f in stored(out / "c" / "findings.json")["findings"]}
    assert verdicts == {"not_computable"}


def test_a_gate_names_the_period(
    tmp_path: Path, decisions: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["audit", str(decisions(day=days())), *BASIC, "--by", "day:month", "--fail-on", "fnr:disparity", "--quiet"]
    assert run([*words, "--out", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all(line.startswith("evenhand: 2024-0") for line in said)


def test_a_model_that_decides_in_each_period(tmp_path: Path, decisions: Callable[..., Path]) -> None:
    import skops.io

    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 2))
    file = decisions(day=days(), x0=x[:, 0], x1=x[:, 1])
    model = LogisticRegression().fit(x, rng.integers(0, 2, 600))
    skops.io.dump(model, tmp_path / "model.skops")
    words = ["audit", str(file), "--outcome", "y", "--group", "sex", "--model", str(tmp_path / "model.skops")]
    words += ["--features", "x0,x1", "--audits", "group", "--metrics", "fnr", "--by", "day:month", "--quiet"]
    assert run([*words, "--out", str(tmp_path / "out")]) == 0
    for month in ("2024-01", "2024-02", "2024-03"):
        findings = stored(tmp_path / "out" / month / "findings.json")
        assert any("Scores and decisions are those of the model" in note for note in findings["data"]["notes"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "race:month"), "Column `race` holds `x` and cannot be cut into months"),
        (("--by", "dya:month"), "Did you mean `day`"),
        (("--by", "sex"), "used as group and as period"),
        (("--by", "day:month", "--format", "ll144"), "makes the tables of one period; leave out `--by`"),
        (("--by", "day:month", "--suppress", "10"), "leave out `--by`"),
    ],
)
def test_periods_that_make_no_sense(
    words: tuple[str, ...], message: str, tmp_path: Path, decisions: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = decisions(day=days())
    assert run(["audit", str(file), *BASIC, *words, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said
    assert not (tmp_path / "out").exists()
