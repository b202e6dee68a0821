"""What intake keeps as it is written, and what it points out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.intake import read

ROWS = 400


def decisions(**columns: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {"y": rng.integers(0, 2, ROWS), "d": rng.integers(0, 2, ROWS), **columns}


def written(folder: Path, table: dict[str, Any]) -> Path:
    pd.DataFrame(table).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


@pytest.mark.parametrize("rows", ["keep", "cells"])
@pytest.mark.parametrize(
    ("pair", "labels"),
    [
        (("T", "F"), ("F", "T")),
        (("t", "f"), ("f", "t")),
        (("yes", "no"), ("no", "yes")),
        (("true", "false"), ("False", "True")),
        (("1", "0"), ("0", "1")),
    ],
)
def test_letters_of_a_group_stay_letters(
    tmp_path: Path, rows: str, pair: tuple[str, str], labels: tuple[str, str]
) -> None:
    table = decisions(g=np.random.default_rng(1).choice(pair, ROWS))
    data = read(written(tmp_path, table), outcome="y", decision="d", groups="g", rows=rows)
    assert data.attribute("g").labels == labels


def test_letters_further_down_stay_letters(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    body = "".join(f"{'true' if i % 2 else 'false'},{i % 3 % 2},{i % 2}\n" for i in range(30_000))
    path.write_text("g,y,d\n" + body + "T,1,0\nF,0,1\n", encoding="utf-8")
    assert read(path, outcome="y", decision="d", groups="g").attribute("g").labels == ("F", "T", "false", "true")


def test_one_label_in_several_spellings_is_pointed_out() -> None:
    table = decisions(g=np.random.default_rng(1).choice(["F", "F ", "f", "M"], ROWS))
    data = read(table, outcome="y", decision="d", groups="g")
    assert "differ only in case or blanks: `F`, `F `, `f`" in " ".join(data.notes)
    plain = read(decisions(g=np.tile(["F", "M"], ROWS // 2)), outcome="y", decision="d", groups="g")
    assert plain.notes == ()


def test_uncut_numbers_are_pointed_out() -> None:
    table = decisions(age=np.random.default_rng(1).integers(18, 80, ROWS))
    [note] = read(table, outcome="y", decision="d", groups="age").notes
    assert note.startswith("Column `age` has 62 groups")
    assert "`cuts=`" in note
    assert read(table, outcome="y", decision="d", groups="age", cuts={"age": [30, 50]}).notes == ()


@pytest.mark.parametrize("rows", ["keep", "cells"])
def test_an_outcome_with_three_values_says_what_is_left_out(rows: str) -> None:
    table = decisions(g=np.tile(["F", "M"], ROWS // 2)) | {"y": np.arange(ROWS) % 3}
    data = read(table, outcome="y", decision="d", groups="g", rows=rows)
    assert "Outcome `y` has 3 values (`0`, `1`, `2`) beside a yes/no decision" in " ".join(data.notes)
    assert "`fnr`, `fpr`" in " ".join(data.notes)
