"""Draw the pictures of reports that README and docs show: ``python evidence/picture.py``.

It runs the demo and the worked examples of the repair and of the comparison, and photographs the tops of their reports
in a headless Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright
from sklearn.linear_model import LogisticRegression

import evenhand as eh
from evenhand.cli import run
from evenhand.report.change import compose_comparison
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
        chart = page.locator("figure[data-chart]").first.bounding_box()
        if chart is not None and chart["y"] < height:  # only charts in sight are drawn
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


def compared() -> str:
    """Return the report of the worked example in docs/compare.md."""
    table = pd.DataFrame(dict(eh.datasets.adult_table()))
    X = pd.get_dummies(table[["age", "education_num", "hours_per_week", "marital_status"]]).astype(float)
    y = (table["income"] == ">50K").to_numpy().astype(int)
    half = np.random.default_rng(0).random(len(table)) < 0.5
    single = [c for c in X if not c.startswith("marital_status")]
    old = LogisticRegression(max_iter=5000).fit(X[half], y[half]).predict(X[~half])
    new = LogisticRegression(max_iter=5000).fit(X[half][single], y[half]).predict(X[~half][single])
    people = eh.AuditData.from_arrays(outcome=y[~half], groups={"sex": table["sex"][~half]}, decision=old)
    return html_page(compose_comparison(eh.compare(people, old, new, names=("old", "new"))))


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        if run(["demo", "--quiet", "--out", folder]) != 0:
            raise SystemExit("the demo failed")
        photograph(Path(folder) / "report.html", IMAGES / "report.png", 948)
        page = Path(folder) / "repaired.html"
        page.write_text(repaired(), encoding="utf-8")
        photograph(page, IMAGES / "mitigation.png", 1640)
        page.write_text(compared(), encoding="utf-8")
        photograph(page, IMAGES / "compare.png", 1150)


if __name__ == "__main__":
    main()
