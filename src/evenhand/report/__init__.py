"""From an `AuditRun` to a page: document first, then HTML, Markdown or JUnit."""

from __future__ import annotations

from pathlib import Path

from evenhand.files import written
from evenhand.report.compose import compose
from evenhand.report.html import html_page
from evenhand.report.junit import Fails, junit_suites
from evenhand.report.markdown import markdown_page
from evenhand.report.plot import plot
from evenhand.results import AuditRun

__all__ = ["compose", "plot", "to_html", "to_junit", "to_markdown"]


def to_html(run: AuditRun, path: str | Path | None = None, *, title: str | None = None) -> str:
    """Write a run as one HTML file that works offline.

    Parameters
    ----------
    run : AuditRun
        What was found.
    path : str or Path, optional
        Where to write it, in one step.
    title : str, optional
        Of the page; by default "Audit report" with the run's label.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> to_html(run)[:15]
    '<!doctype html>'
    """
    return written(html_page(compose(run, title=title)), path)


def to_markdown(run: AuditRun, path: str | Path | None = None, *, title: str | None = None) -> str:
    """Write a run as Markdown.

    Parameters
    ----------
    run : AuditRun
        What was found.
    path : str or Path, optional
        Where to write it, in one step.
    title : str, optional
        Of the page; by default "Audit report" with the run's label.

    Returns
    -------
    str

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), plan=eh.Plan(group={"metrics": ["fnr"]}), rng=0)
    >>> to_markdown(run).splitlines()[0]
    '# Audit report'
    """
    return written(markdown_page(compose(run, title=title)), path)


def to_junit(run: AuditRun, path: str | Path | None = None, *, fails: Fails | None = None) -> str:
    """Write a run as JUnit XML: one test case per finding.

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
    return written(junit_suites(compose(run), fails), path)
