"""A further audit is a folder and a row: plan, run, command line and report find it through the registry alone."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest

import evenhand as eh
from evenhand.audits import needs
from evenhand.audits.options import AuditOptions, option, record, with_options
from evenhand.audits.registry import AUDITS, Audit, Hypothesis
from evenhand.results import AuditResult, Evidence, Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class SixthOptions(AuditOptions):
    """What the further audit is asked."""

    colour: str = option("red", "Which colour.", words=("red", "green"), offer=("green", "another colour"))


@with_options(SixthOptions)
def audit_sixth(data: eh.AuditData, asked: SixthOptions) -> AuditResult:
    """Find something.

    Parameters
    ----------
    data : AuditData
        Rows.

    Returns
    -------
    AuditResult
    """
    found = Finding(audit="sixth", measure="hue", groups=("a", "b"), estimate=0.5, pvalue=1e-6)
    return AuditResult(audit="sixth", findings=(found,), evidence=(Evidence(fact="It is 0.5."),), options=record(asked))


ROW = Audit(
    name="sixth",
    question="Which colour is it?",
    method="We look.",
    sources=(),
    needs=(needs.groups,),
    hypotheses=(Hypothesis(measure="hue", null="It has none."),),
    measures={"hue": "the colour"},
)


@pytest.fixture
def sixth(monkeypatch):
    folder, options = ModuleType("evenhand.audits.sixth"), ModuleType("evenhand.audits.sixth.options")
    folder.audit_sixth, options.SixthOptions = audit_sixth, SixthOptions
    for module in (folder, options):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(AUDITS, "sixth", ROW)


def test_a_folder_and_a_row_are_enough(sixth, tmp_path, capsys):
    from evenhand.cli import run

    data = eh.datasets.planted(rows=200, rng=0)
    assert eh.Plan.default(data).audits == ("group", "sixth")
    with pytest.raises(
        eh.UsageError, match=r"`sixth\.colour` is `gren`; allowed: `red`, `green`\. Did you mean `green`"
    ):
        eh.Plan(sixth={"colour": "gren"})
    made = eh.audit(data, plan=eh.Plan(audits=("group", "sixth"), sixth={"colour": "green"}), rng=0)
    assert made.results[1].options["colour"] == made.plan["sixth"]["colour"] == "green"
    assert str(made.results[1][0].verdict) == "disparity"
    made.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Which colour is it?" in page
    assert "It has none." in page
    file = tmp_path / "people.csv"
    file.write_text("d,sex\n" + "1,F\n0,M\n" * 20)
    assert run(["plan", str(file), "--decision", "d", "--group", "sex", "--out", "-"]) == 0
    assert '[sixth]\n# colour = "green"  # another colour' in capsys.readouterr().out
    words = ["audit", str(file), "--decision", "d", "--group", "sex", "--out", str(tmp_path / "out"), "--quiet"]
    assert run([*words, "--fail-on", "sixth:disparity"]) == 3
