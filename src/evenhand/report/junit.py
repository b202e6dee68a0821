"""A document as JUnit XML: one test case per finding, so that any CI shows them."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

from evenhand.report.document import Document, compared
from evenhand.results import Finding, Verdict, printable

Fails = Callable[[Finding], bool]
_KINDS = {Verdict.NOT_COMPUTABLE: "error", Verdict.INCONCLUSIVE: "skipped"}  # of what does not fail


def junit_suites(page: Document, fails: Fails | None = None) -> str:
    """Write a document as JUnit XML.

    A failure is what `fails` says, by default the verdict `disparity`. A finding that is not computable is an error,
    one that decides nothing is skipped with its reason.
    """
    fails = fails or (lambda finding: finding.verdict is Verdict.DISPARITY)
    root = ElementTree.Element("testsuites", name="evenhand")
    for section in page.sections:
        suite = ElementTree.SubElement(root, "testsuite", name=f"evenhand.{section.audit}")
        totals = {"tests": len(section.entries), "failures": 0, "errors": 0, "skipped": 0}
        for finding in (entry.finding for entry in section.entries):
            name = printable(f"{finding.measure} {compared(finding.groups)}")
            case = ElementTree.SubElement(suite, "testcase", classname=f"evenhand.{section.audit}", name=name)
            kind = "failure" if fails(finding) else _KINDS.get(finding.verdict)
            if kind is not None:
                said = {"message": printable(finding.reason), "type": str(finding.verdict)}
                ElementTree.SubElement(case, kind, {"message": said["message"]} if kind == "skipped" else said)
                totals[{"failure": "failures", "error": "errors", "skipped": "skipped"}[kind]] += 1
        suite.attrib.update({key: str(n) for key, n in totals.items()})
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
    return text.replace("encoding='us-ascii'", "encoding='utf-8'", 1)
