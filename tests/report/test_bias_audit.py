"""Bias-audit tables: their numbers against plain counting, their files against hostile names."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from scipy import stats

import evenhand as eh
from evenhand.cli import run as command

# Sex, race, applicants, selected; None for unknown.
PEOPLE = [
    ("F", "A", 400, 120),
    ("M", "A", 500, 210),
    ("F", "B", 300, 60),
    ("M", "B", 250, 80),
    ("F", "C", 12, 6),
    ("M", "C", 14, 4),
    ("F", None, 40, 9),
    (None, "B", 25, 7),
]
FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1+1", "<script>alert(1)</script>", "a[b]:*?/\\c"]


def _read(people=PEOPLE, **options):
    sex, race, decision = [], [], []
    for s, r, n, k in people:
        sex += [s] * n
        race += [r] * n
        decision += [1] * k + [0] * (n - k)
    options = {"missing": "unknown", "intersections": True, **options}
    return eh.AuditData.from_arrays(decision=decision, groups={"sex": sex, "race": race}, **options)


@pytest.fixture(scope="module")
def audit():
    return eh.bias_audit(_read(), form="ll144", rng=0)


def test_the_numbers_are_those_of_plain_counting(audit):
    assert [table.attribute for table in audit.tables] == ["sex", "race", "sex × race"]
    parts = [lambda s, r: s, lambda s, r: r, lambda s, r: None if s is None or r is None else f"{s} & {r}"]
    for table, part in zip(audit.tables, parts, strict=True):
        sums = {}
        for s, r, n, k in PEOPLE:
            old = sums.get(part(s, r), (0, 0))
            sums[part(s, r)] = (old[0] + n, old[1] + k)
        assert table.unknown == sums.pop(None)[0]
        best = max(k / n for n, k in sums.values())
        known = sum(n for n, _ in sums.values())
        for category in table.categories:
            n, k = sums.pop(category.label)
            assert (category.people, category.chosen) == (n, k)
            assert category.rate == pytest.approx(k / n)
            assert category.ratio == pytest.approx(k / n / best)
            assert category.small == (n / known < 0.02)
        assert sums == {}


def test_intervals_hold_together_and_agree_with_the_verdicts(audit):
    ratios = [c for table in audit.tables for c in table.categories if c.verdict is not None]
    assert len(ratios) == 1 + 2 + 5
    assert [c.interval.level for c in ratios] == [pytest.approx(1 - 0.05 / 8)] * 8
    for category in ratios:
        assert category.interval.low <= category.ratio <= category.interval.high
        assert (category.verdict == "disparity") == (category.interval.high < 1)
    assert {"disparity", "inconclusive"} <= {str(c.verdict) for c in ratios}


def test_two_categories_have_the_p_value_of_two_rates():
    """With two categories nothing is chosen; scipy's exact test of the pooled null is an outside bound."""
    data = eh.AuditData.from_arrays(
        decision=[1] * 30 + [0] * 70 + [1] * 55 + [0] * 45, groups={"g": ["a"] * 100 + ["b"] * 100}
    )
    (category,) = (c for c in eh.bias_audit(data, rng=0).tables[0].categories if c.verdict is not None)
    assert category.ratio == pytest.approx(30 / 55)
    assert category.pvalue_adjusted == pytest.approx(stats.barnard_exact([[30, 55], [70, 45]]).pvalue, rel=0.35)


def test_small_categories_are_marked_in_the_form_of_the_law_only(audit):
    plain = eh.bias_audit(_read(), rng=0)
    # 12 and 14 of 1,476 people.
    assert audit.to_csv().count("below 2 % of the people") == 3
    assert "below 2 %" not in plain.to_csv()
    assert "Local Law" not in plain.to_html()


def test_the_page_says_what_the_tables_are_not(audit):
    page = audit.to_html()
    assert "not legal advice and no finding of discrimination" in page
    assert "The rules name no value from which on an impact ratio would be too low" in page
    assert "Four fifths is a convention" in page
    assert "every ratio here rests on a small category" in page  # F & C, 6 of 12
    assert "The calculations leave out 65 people whose category is not known." in page


def test_one_attribute_is_not_what_the_rules_ask():
    data = eh.AuditData.from_arrays(decision=[0, 1, 1, 0] * 30, groups={"sex": ["F", "M", "M"] * 40})
    assert "The rules ask for three tables" in eh.bias_audit(data, form="ll144", rng=0).to_html()


def test_with_four_fifths_the_verdicts_refer_to_it():
    audit = eh.bias_audit(_read(), margin="four-fifths", rng=0)
    assert "shown to lie below 0.8." in audit.to_html()
    assert {c.verdict for t in audit.tables for c in t.categories} >= {None, eh.Verdict.DISPARITY}


def test_scoring_rates_are_shares_above_the_median_of_everybody():
    rng = np.random.default_rng(0)
    score, group = rng.normal(size=900), rng.choice(["a", "b", "c"], 900)
    score[group == "b"] += 0.5
    (table,) = eh.bias_audit(eh.AuditData.from_arrays(score=score, groups={"g": group}), rng=0).tables
    assert table.metric == "scoring_rate"
    for category in table.categories:
        assert category.rate == pytest.approx((score[group == category.label] > np.median(score)).mean())


def test_shared_scoring_rates_are_those_of_everybody():
    rng = np.random.default_rng(0)
    score, group = rng.normal(size=2000), rng.choice(["a", "b", "c", "d"], 2000, p=[0.47, 0.47, 0.03, 0.03])
    score[np.isin(group, ["c", "d"])] -= 1.2
    data = eh.AuditData.from_arrays(score=score, groups={"g": group})
    (table,) = eh.bias_audit(data, rng=0, suppress=10).tables
    shown = {c.label: c.rate for c in table.categories if not c.held_back}
    assert shown == {
        label: pytest.approx((score[group == label] > np.median(score)).mean()) for label in set(group) & set(shown)
    }
    assert [c.label for c in table.categories if c.held_back]


def _hostile():
    rng = np.random.default_rng(0)
    group = np.array(FORMULAS)[rng.integers(0, len(FORMULAS), 1400)]
    return eh.AuditData.from_arrays(decision=rng.integers(0, 2, 1400), groups={"=HYPERLINK()": group})


def test_no_text_in_a_csv_file_is_taken_for_a_formula():
    rows = list(csv.reader(io.StringIO(eh.bias_audit(_hostile(), rng=0).to_csv())))
    assert len(rows) == 1 + len(FORMULAS)
    for row in rows:
        for cell in row[:2] + row[-2:]:
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "|", "%"))


def test_no_text_in_a_workbook_is_a_formula(tmp_path):
    audit = eh.bias_audit(_hostile(), rng=0)
    audit.to_xlsx(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    kinds = {cell.data_type for sheet in book for row in sheet.iter_rows() for cell in row}
    assert kinds <= {"s", "inlineStr", "n"}  # "f" is a formula
    names = {row[0].value for row in book.worksheets[1].iter_rows(min_row=2)}
    assert {"=1+1", "-2+3", "@SUM(A1)"} <= names
    assert audit.to_xlsx() == eh.bias_audit(_hostile(), rng=0).to_xlsx()


def test_the_workbook_has_the_tables(audit, tmp_path):
    audit.to_xlsx(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert book.sheetnames == ["About", "By sex", "By race", "By sex × race"]
    for table in audit.tables:
        rows = {row[0]: row for row in book[f"By {table.attribute}"].iter_rows(min_row=2, values_only=True)}
        for category in table.categories:
            assert rows[category.label][1] == category.people
            assert rows[category.label][3:6] == pytest.approx((category.chosen, category.rate, category.ratio))
        assert rows["(unknown)"][1] == table.unknown


def test_hostile_names_are_inert_in_the_page():
    rng = np.random.default_rng(0)
    groups = {"<img src=x onerror=alert(1)>": np.array(FORMULAS)[rng.integers(0, len(FORMULAS), 1400)]}
    audit = eh.bias_audit(eh.AuditData.from_arrays(decision=rng.integers(0, 2, 1400), groups=groups), rng=0)
    for page in (audit.to_html(), audit.to_markdown(), audit._repr_html_()):
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def test_nobody_selected_gives_no_ratio():
    data = eh.AuditData.from_arrays(decision=[0] * 60, groups={"g": ["a", "b", "c"] * 20})
    audit = eh.bias_audit(data, rng=0)
    assert [(c.people, c.chosen, c.rate) for c in audit.tables[0].categories] == [(20, 0, 0.0)] * 3
    assert all(c.ratio != c.ratio for c in audit.tables[0].categories)
    assert audit.to_csv().count("no ratio: every rate is 0") == 3
    assert "None of the 2 ratios" in audit.to_html()


def test_everybody_unknown_is_an_error_in_words():
    with pytest.raises(eh.DataError, match="`g`"):
        eh.AuditData.from_arrays(decision=[0, 1] * 5, groups={"g": [None] * 10}, missing="unknown")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"form": "ll145"}, "`form` is `ll145`; allowed: `ll144`, `bias-audit`"),
        ({"metric": "fnr"}, "A bias audit is made of one rate; got the metrics `fnr`"),
    ],
)
def test_what_is_no_bias_audit_is_refused(asked, sentence):
    with pytest.raises(eh.UsageError, match=sentence):
        eh.bias_audit(_read(), rng=0, **asked)


def test_ages_are_no_categories():
    data = eh.AuditData.from_arrays(
        decision=[0, 1] * 30, groups={"g": ["a", "b", "b"] * 20, "age": list(range(60))}, continuous=["age"]
    )
    with pytest.raises(eh.UsageError, match="`age` has none"):
        eh.bias_audit(data, rng=0)


def test_sampling_weights_enter_the_rates():
    weight = np.tile([0.5, 1.5], 300)
    decision, group = np.tile([1, 0, 0], 200), np.repeat(["a", "b"], 300)
    data = eh.AuditData.from_arrays(decision=decision, groups={"g": group}, weight=weight, weight_kind="sampling")
    for category in eh.bias_audit(data, rng=0).tables[0].categories:
        own = group == category.label
        assert category.rate == pytest.approx(np.average(decision[own], weights=weight[own]))


def test_frames_are_not_data():
    with pytest.raises(eh.UsageError, match="needs data that were read: got dict"):
        eh.bias_audit({"sex": ["F"]})


def test_held_back_categories_are_named_without_numbers():
    audit = eh.bias_audit(_read(), form="ll144", rng=0, suppress=10)
    held = [c for table in audit.tables for c in table.categories if c.held_back]
    assert held
    for category in held:
        assert (category.chosen, category.verdict) == (None, None)
    assert "one that is held back may be higher" in audit.to_html()
    text = audit.to_csv()
    assert text.count("held back") >= len(held)
    crossed = {row[1]: row for row in csv.reader(io.StringIO(text)) if row[0] == "By sex × race"}
    assert crossed["F & C"][2:-1] == [""] * 9


def _file(folder):
    lines = ["sex,race,hired"]
    for s, r, n, k in PEOPLE:
        lines += [f"{s or ''},{r or ''},yes"] * k + [f"{s or ''},{r or ''},no"] * (n - k)
    (folder / "people.csv").write_text("\n".join(lines))
    return [
        "audit",
        str(folder / "people.csv"),
        "--decision",
        "hired",
        "--positive",
        "yes",
        "--group",
        "sex",
        "--group",
        "race",
    ]


def test_the_command_reads_and_writes_the_pack(tmp_path, capsys, audit):
    out = tmp_path / "out"
    assert command([*_file(tmp_path), "--format", "ll144", "--out", str(out)]) == 0
    names = {"report.html", "report.md", "findings.json", "junit.xml", "bias-audit.csv", "bias-audit.xlsx"}
    assert {path.name for path in out.iterdir()} == names
    # The unknown are kept and the attributes crossed without being asked for.
    assert (out / "bias-audit.csv").read_text() == audit.to_csv()
    assert "Local Law 144" in (out / "report.md").read_text()
    said = capsys.readouterr().out
    assert "Impact ratio" in said
    assert "(unknown)" in said
    # A report of another kind does not leave these tables beside it.
    assert command([*_file(tmp_path), "--quiet", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {"report.html", "report.md", "findings.json", "junit.xml"}


def test_what_is_said_goes_before_what_the_pack_takes(tmp_path):
    out = tmp_path / "out"
    assert command([*_file(tmp_path), "--format", "bias-audit", "--missing", "drop", "--quiet", "--out", str(out)]) == 0
    assert "(unknown)" not in (out / "bias-audit.csv").read_text()


@pytest.mark.parametrize(
    "words", [["--reference", "sex=M"], ["--correction", "holm"], ["--metrics", "fnr"], ["--audits", "tail"]]
)
def test_the_command_refuses_what_is_no_bias_audit(tmp_path, capsys, words):
    assert command([*_file(tmp_path), "--format", "ll144", "--out", str(tmp_path / "out"), *words]) == 2
    assert "bias audit" in capsys.readouterr().err


def test_without_openpyxl_the_other_files_are_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    assert command([*_file(tmp_path), "--format", "ll144", "--quiet", "--out", str(tmp_path / "out")]) == 0
    assert "pip install evenhand[xlsx]" in capsys.readouterr().err
    assert (tmp_path / "out" / "bias-audit.csv").exists()
    assert not (tmp_path / "out" / "bias-audit.xlsx").exists()


def test_the_docs_show_what_their_examples_print():
    docs = Path(__file__).resolve().parents[2] / "docs"
    adult = eh.datasets.adult()
    groups = {a.name: [a.labels[code] for code in a.codes] for a in adult.attributes}
    data = eh.AuditData.from_arrays(decision=adult.decision, groups=groups, intersections=True, missing="unknown")
    assert str(eh.bias_audit(data, form="ll144", rng=0)) in (docs / "bias-audit.md").read_text(encoding="utf-8")
    crossed = str(eh.bias_audit(data, suppress=10, rng=0)).split("\n\n")[-1]
    assert crossed in (docs / "sharing.md").read_text(encoding="utf-8")
