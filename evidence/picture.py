"""Draw the pictures of reports that README and docs show: ``python evidence/picture.py``.

It runs the demo and the worked example of the repair, and photographs the tops of their reports in a headless Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path

from playwright.sync_api import sync_playwright

import evenhand as eh
from evenhand.cli import run
from evenhand.report.html import html_page
from evenhand.report.mitigation import compose_mitigation

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def photograph(report: Path, target: Path, height: int) -> None:
    """Write a picture of the top of a report."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1180, "height": height}, color_scheme="light")
        page.goto(report.as_uri())
        page.wait_for_selector("figure.drawn .live svg")
        page.wait_for_timeout(500)
        page.screenshot(path=target)
        browser.close()


def repaired() -> str:
    """Return the report of the worked example in docs/mitigation.md."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = eh.mitigate(
            eh.datasets.load("adult"),
            methods=["reweighing", "maat", "exponentiated_gradient"],
            metric="selection_rate",
            margin=0.1,
            attribute="sex",
            audits=False,
            rng=0,
        )
    return html_page(compose_mitigation(result))


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        if run(["demo", "--quiet", "--out", folder]) != 0:
            raise SystemExit("the demo failed")
        photograph(Path(folder) / "report.html", IMAGES / "report.png", 1560)
        page = Path(folder) / "repaired.html"
        page.write_text(repaired(), encoding="utf-8")
        photograph(page, IMAGES / "mitigation.png", 1640)


if __name__ == "__main__":
    main()
