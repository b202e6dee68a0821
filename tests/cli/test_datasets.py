"""``evenhand datasets``: the list, adding a copy, writing one as CSV."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand import datasets
from evenhand.cli import run
from evenhand.datasets import registry


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data folder of one's own, and a file of two rows that is known as `heart`."""
    import hashlib

    content = b"1 2\n3 4\n"
    entry = registry.Source(
        name="heart", file="heart/heart.dat.gz", rows=2, licence="free", origin="nowhere",
        sha256=(hashlib.sha256(content).hexdigest(),), delimiter="space", header=False, columns=("a", "b"),
    )  # fmt: skip
    monkeypatch.setenv(registry.ENVIRONMENT, str(tmp_path / "own"))
    monkeypatch.setattr(registry, "sources", lambda: (entry,))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy.dat").write_bytes(content)
    (tmp_path / "copy.dat.gz").write_bytes(gzip.compress(content))
    (tmp_path / "other.dat").write_bytes(b"1 2\n")
    return tmp_path


@pytest.mark.parametrize("copy", ["copy.dat", "copy.dat.gz"])
def test_a_copy_is_checked_kept_and_found(known: Path, copy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["datasets"]) == 0
    assert "get it from nowhere" in capsys.readouterr().out
    assert run(["datasets", "add", "heart", copy]) == 0
    assert "own" in capsys.readouterr().out
    assert datasets.table("heart")["b"].tolist() == [2.0, 4.0]
    assert run(["datasets"]) == 0
    assert "found at" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["heart", "other.dat"], "is not the file known as `heart`"),
        (["heart", "absent.dat"], "There is no file"),
        (["hart", "copy.dat"], "Did you mean `heart`"),
    ],
)
def test_another_file_is_refused(
    known: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["datasets", "add", *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not (known / "own").exists()


def test_rows_with_decisions_are_written_as_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "new" / "decisions.csv"
    assert run(["datasets", "export", "adult", str(file)]) == 0
    assert "CC BY 4.0" in capsys.readouterr().out
    back = eh.read(file, outcome="outcome", decision="decision", score="score", groups=["sex", "race"])
    data = datasets.adult()
    for role in ("outcome", "decision", "score"):
        assert np.array_equal(getattr(back, role), getattr(data, role))
    for name in ("sex", "race"):
        assert _labels(back, name) == _labels(data, name)
    header = file.read_text().splitlines()[0].split(",")
    assert header == ["outcome", "decision", "score", "sex", "race", *data.features]


def _labels(data: eh.AuditData, name: str) -> list[str]:
    attribute = data.attribute(name)
    return [attribute.labels[code] for code in attribute.codes]


@pytest.mark.parametrize(
    ("name", "sentence"), [("german", "has outcomes but no decisions"), ("adlut", "Did you mean `adult`")]
)
def test_rows_without_decisions_are_not_written(
    tmp_path: Path, name: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "decisions.csv"
    assert run(["datasets", "export", name, str(file)]) == 2
    assert sentence in capsys.readouterr().err
    assert not file.exists()
