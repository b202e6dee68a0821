"""``evenhand mitigate``: words in, a certified model with its card and pages out, or one sentence and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli import run
from evenhand.models import load_model

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sex = rng.choice([HOSTILE, "m"], 4000)
    skill = rng.normal(size=4000) + 0.6 * (sex == "m")
    paid = np.where(skill + rng.normal(size=4000) > 0, "paid", "failed")
    return pd.DataFrame({"skill": skill, "town": rng.choice(["n", "s"], 4000), "sex": sex, "paid": paid})


@pytest.fixture
def file(table: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    return path


def words(file: Path, out: Path, *more: str) -> list[str]:
    start = [
        "mitigate",
        str(file),
        "--outcome",
        "paid",
        "--positive",
        "paid",
        "--group",
        "sex",
        "--features",
        "skill,town",
    ]
    return [*start, "--metric", "selection_rate", "--margin", "0.15", "--out", str(out), *more]


def test_a_certified_model_is_written_with_its_card_and_pages(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(words(file, out, "--methods", "threshold_optimizer", "--most-loss", "0.2", "--no-audits")) == 0
    said = capsys.readouterr().out
    assert "Certified: " in said
    assert "unlawful" in said
    assert {p.name for p in out.iterdir()} == {"card.md", "mitigation.json", "model.skops", "report.html", "report.md"}
    stored = json.loads((out / "mitigation.json").read_text())
    assert stored["certificate"]["verdict"] == "equivalent"
    page = (out / "report.html").read_text()
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page
    assert HOSTILE not in (out / "report.md").read_text()
    model = load_model(out / "model.skops")
    people = pd.DataFrame({"skill": [3.0, -3.0], "town": ["n", "s"], "sex": ["m", "m"]})
    assert model.predict(people).tolist() == [1, 0]


def test_nothing_certified_is_an_answer_and_a_gate_can_fail_on_it(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = words(file, tmp_path / "out", "--methods", "reweighing", "--margin", "0.01", "--no-audits")
    assert run(asked) == 0
    assert "Nothing is certified" in capsys.readouterr().out
    assert not (tmp_path / "out" / "model.skops").exists()
    assert run([*asked, "--fail-on", "inconclusive"]) == 3


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--methods", "reweigh"], "Did you mean `reweighing`"),
        (["--metric", "nonsense"], "nonsense"),
        (["--margin", "2"], "can never be exceeded"),
        (["--parts", "1,1"], "three positive shares"),
        (["--parts", "a,b"], "not understood"),
        (["--features", "skill,absent"], "absent"),
        (["--outcome", "absent"], "absent"),
        (["--group", "absent"], "absent"),
        (["--learner", "logistic", "--model", "math:pi"], "not both"),
    ],
)
def test_bad_words_get_one_sentence_and_exit_code_2(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], sentence: str
) -> None:
    assert run(words(file, tmp_path / "out", *more)) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("learner", ["forest", "boosting", "network"])
def test_other_learners(file: Path, tmp_path: Path, learner: str) -> None:
    asked = ["--learner", learner, "--methods", "reweighing", "--no-audits", "--quiet"]
    assert run(words(file, tmp_path / "out", *asked)) == 0
    assert learner[:4].lower() in (tmp_path / "out" / "card.md").read_text().lower() or learner == "network"
