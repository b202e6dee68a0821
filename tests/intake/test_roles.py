"""Which column is what: proposals on real files, on hostile ones, and on large ones."""

from __future__ import annotations

import gzip
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import openpyxl
import pytest

import evenhand as eh
from evenhand.errors import DataError
from evenhand.intake.glimpse import MOST_ROWS
from evenhand.intake.roles import ROLES, Proposal, propose_roles


def _roles(proposal: Proposal) -> dict[str, str]:
    return {column.name: column.role for column in proposal.columns}


def _file(folder: Path, text: str, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def _loans(n: int = 400) -> str:
    rng = np.random.default_rng(8)
    lines = ["case_id,Gender,age,amount,opened,p_hat,granted,default"]
    for i in range(n):
        p = rng.random()
        day = f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}"
        good = "no" if rng.random() < p else "yes"
        decided = "granted" if p > 0.5 else "denied"
        lines.append(
            f"{1000 + 7 * i},{'FM'[i % 2]},{rng.integers(18, 80)},{rng.normal():.4f},{day},{p:.4f},{decided},{good}"
        )
    return "\n".join(lines) + "\n"


def test_a_table_of_loans(tmp_path):
    proposal = propose_roles(_file(tmp_path, _loans()))
    assert _roles(proposal) == {
        "case_id": "identifier", "Gender": "group", "age": "group", "amount": "feature", "opened": "none",
        "p_hat": "score", "granted": "decision", "default": "outcome",
    }  # fmt: skip
    by_name = {column.name: column for column in proposal.columns}
    assert by_name["granted"].labels == ("denied", "granted")
    assert by_name["granted"].favourable == "granted"
    # Yes is the bad label here, and the score is high for those who do not default.
    assert by_name["default"].favourable == "no"
    assert "bad for the person" in by_name["default"].favourable_reason
    assert by_name["opened"].kind == "date"
    assert len(by_name["age"].cuts) == 2
    assert by_name["Gender"].values == (("F", 200), ("M", 200))
    assert (proposal.rows, proposal.seen, proposal.exact, proposal.notes) == (400, 400, True, ())
    assert {column.role for column in proposal.columns} <= set(ROLES)
    assert all(column.reason.endswith(".") for column in proposal.columns)


def test_what_was_agreed_to_can_be_read_and_audited(tmp_path):
    path = _file(tmp_path, _loans())
    data = eh.read(path, **propose_roles(path).options())
    assert [attribute.name for attribute in data.attributes] == ["Gender", "age"]
    assert data.labels["decision"].one == ("granted",)
    assert data.labels["outcome"].one == ("no",)
    assert len(eh.audit_group(data, rng=0).findings) > 0


def test_a_score_that_rises_with_the_bad_label_wins_and_says_so(tmp_path):
    rows = "".join(f"{i % 10},{'FM'[i % 2]},{int(i % 10 > 5)}\n" for i in range(200))
    outcome = propose_roles(_file(tmp_path, "decile_score,sex,two_year_recid\n" + rows)).of_role("outcome")[0]
    assert outcome.favourable == "1"
    assert "have the higher `decile_score`" in outcome.favourable_reason
    assert "not to be what people wish for" in outcome.favourable_reason


def test_adult(tmp_path):
    roles = _roles(propose_roles(Path(str(files("evenhand") / "datasets" / "adult.parquet"))))
    assert {name for name, role in roles.items() if role == "group"} >= {"sex", "race"}
    assert [name for name, role in roles.items() if role == "outcome"] == ["income"]


def test_words_that_do_not_say_which_label_is_good_are_left_to_the_person(tmp_path):
    outcome = propose_roles(_file(tmp_path, "sex,y\n" + "F,a\nM,b\n" * 20)).of_role("outcome")[0]
    assert outcome.favourable is None
    assert "do not say which one people would rather have" in outcome.favourable_reason
    assert "positive" not in propose_roles(tmp_path / "a.csv").options()
    three = propose_roles(_file(tmp_path, "sex,outcome\n" + "F,a\nM,b\nM,c\n" * 20)).of_role("outcome")[0]
    assert (three.labels, three.favourable) == (("a", "b", "c"), None)


def test_the_same_table_in_every_form_gives_the_same_proposal(tmp_path):
    import pandas as pd

    path = _file(tmp_path, _loans())
    frame = pd.read_csv(path, parse_dates=["opened"])
    with gzip.open(tmp_path / "a.csv.gz", "wb") as packed:
        packed.write(path.read_bytes())
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_feather(tmp_path / "a.feather")
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    expected = propose_roles(path)
    for form in ("csv.gz", "parquet", "feather", "xlsx"):
        proposal = propose_roles(tmp_path / f"a.{form}")
        assert proposal.options() == expected.options(), form
        assert _roles(proposal) == _roles(expected), form
        assert [c.values for c in proposal.columns if c.name != "opened"] == [
            c.values for c in expected.columns if c.name != "opened"
        ]


def test_hostile_names_and_cells_are_only_shown(tmp_path):
    evil = ['=HYPERLINK("http://x")', "<script>alert(1)</script>", "\x1b[31mred", "x" * 5000, "'; DROP TABLE t; --"]
    quoted = ['"' + text.replace('"', '""') + '"' for text in evil]
    head = '"=1+1","<img src=x onerror=alert(1)>",sex'
    path = _file(tmp_path, head + "\n" + "".join(f"{q},{i % 2},F\n" for i in range(10) for q in quoted))
    proposal = propose_roles(path)
    assert [column.name for column in proposal.columns] == ["=1+1", "<img src=x onerror=alert(1)>", "sex"]
    shown = [text for text, _ in proposal.columns[0].values]
    assert all(text.isprintable() and len(text) <= 60 for text in shown)
    assert "�[31mred" in shown


def test_a_thousand_columns_and_odd_ones(tmp_path):
    head = ",".join(["nothing", "same", "sex", *(f"x{i}" for i in range(997))])
    row = ",".join([",1,F", *["0.5"] * 996, "2"])
    proposal = propose_roles(_file(tmp_path, head + "\n" + (row + "\n") * 30))
    assert len(proposal.columns) == 1000
    nothing, same = proposal.columns[:2]
    assert (nothing.kind, nothing.missing, nothing.role) == ("empty", 30, "none")
    assert (same.distinct, same.role) == (1, "none")
    assert "No column looks like what really happened" in " ".join(proposal.notes)


def test_a_file_without_rows_or_without_anything(tmp_path):
    proposal = propose_roles(_file(tmp_path, "y,sex\n"))
    assert (proposal.rows, [column.role for column in proposal.columns]) == (0, ["none", "none"])
    with pytest.raises(DataError, match="is empty"):
        propose_roles(_file(tmp_path, ""))
    with pytest.raises(DataError, match="`y` occurs more than once"):
        propose_roles(_file(tmp_path, "y,y\n1,2\n"))
    with pytest.raises(DataError, match="does not exist"):
        propose_roles(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"extension `\.exe`"):
        propose_roles(_file(tmp_path, "x", "a.exe"))


def test_marks_for_missing_values_and_a_missing_head_are_noted(tmp_path):
    proposal = propose_roles(_file(tmp_path, "y,job\n" + "1,?\n0,clerk\n" * 20))
    assert "`?` may mean that the value is not known" in proposal.columns[1].note
    without = propose_roles(_file(tmp_path, "39,77516,Male\n" + "50,83311,Female\n38,1,Male\n" * 20))
    assert "looks like a row and not like names" in " ".join(without.notes)


def test_people_with_several_rows_are_noted(tmp_path):
    path = _file(tmp_path, "person_id,y,sex\n" + "".join(f"{i // 3},{i % 2},F\n" for i in range(300)))
    assert "some of its values occur in several rows" in " ".join(propose_roles(path).notes)


def test_a_large_file_is_looked_at_in_ten_places_and_quickly(tmp_path):
    # Sorted by group and outcome: the first rows alone would show one group and one label.
    half = 200_000
    lines = "F,no,0.1234567,some words\n" * half + "M,yes,0.7654321,other words\n" * half
    path = _file(tmp_path, "sex,repaid,score,text\n" + lines)
    begin = time.process_time()
    proposal = propose_roles(path)
    assert time.process_time() - begin < 3
    assert proposal.seen <= MOST_ROWS
    assert not proposal.exact
    assert proposal.rows == pytest.approx(2 * half, rel=0.02)
    assert f"of about {proposal.rows:,} rows" in proposal.notes[0]
    by_name = {column.name: column for column in proposal.columns}
    assert by_name["sex"].distinct == 2
    assert by_name["repaid"].labels == ("no", "yes")


def test_a_packed_file_is_thinned_evenly(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as packed:
        packed.write("sex,y\n" + "F,0\n" * 30_000 + "M,1\n" * 30_000)
    proposal = propose_roles(tmp_path / "a.csv.gz")
    assert (proposal.rows, proposal.exact) == (60_000, True)
    counts = dict(proposal.columns[0].values)
    assert proposal.seen <= MOST_ROWS
    assert abs(counts["F"] - counts["M"]) <= 1


def test_a_large_workbook_is_looked_at_from_its_beginning(tmp_path, monkeypatch):
    from evenhand.intake import glimpse

    monkeypatch.setattr(glimpse, "MOST_ROWS", 50)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("a")
    for row in [["sex", "y"], *([("F", "M")[i % 2], i % 3 == 0] for i in range(200))]:
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    proposal = propose_roles(tmp_path / "a.xlsx")
    assert (proposal.seen, proposal.rows, proposal.exact) == (50, None, False)
    assert "come from 50 rows" in proposal.notes[0]
