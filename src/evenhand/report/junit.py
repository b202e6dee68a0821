"""A run as JUnit XML: one test case per finding, so that any CI shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from evenhand.files import write_atomic
from evenhand.report.document import compared
from evenhand.results import AuditRun, Finding, Verdict, printable


def to_junit(run: AuditRun, path: str | Path | None = None, *, fails: Callable[[Finding], bool] | None = None) -> str:
    """Write a run as JUnit XML.

    Parameters
    ----------
    run : AuditRun
        What was found.
    path : str or Path, optional
        Where to write it, in one step.
    fails : callable, optional
        Which findings count as failures; by default those with the verdict `disparity`. A finding that is
        not computable is an error, one that decides nothing is skipped with its reason.

    Returns
    -------
    str

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> "<testsuites" in to_junit(run)
    True
    """
    fails = fails or (lambda finding: finding.verdict is Verdict.DISPARITY)
    root = ElementTree.Element("testsuites", name="evenhand")
    for result in run.results:
        suite = ElementTree.SubElement(root, "testsuite", name=f"evenhand.{result.audit}")
        totals = {"tests": len(result), "failures": 0, "errors": 0, "skipped": 0}
        for finding in result.findings:
            name = printable(f"{finding.measure} {compared(finding.groups)}")
            case = ElementTree.SubElement(suite, "testcase", classname=f"evenhand.{result.audit}", name=name)
            kind = (
                "failure"
                if fails(finding)
                else {Verdict.NOT_COMPUTABLE: "error", Verdict.INCONCLUSIVE: "skipped"}.get(finding.verdict)
            )
            if kind is not None:
                told = {"message": printable(finding.reason)}
                ElementTree.SubElement(
                    case, kind, told if kind == "skipped" else {**told, "type": str(finding.verdict)}
                )
                totals[{"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]] += 1
        suite.attrib.update({key: str(n) for key, n in totals.items()})
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
    text = text.replace("encoding='us-ascii'", "encoding='utf-8'", 1)
    if path is not None:
        write_atomic(Path(path), text)
    return text
