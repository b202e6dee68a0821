"""Draw the picture of the report that README and docs show: ``python evidence/picture.py``.

It runs the demo and photographs the top of its report in a headless Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from evenhand.cli import run

TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "report.png"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        if run(["demo", "--quiet", "--out", folder]) != 0:
            raise SystemExit("the demo failed")
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1180, "height": 1560}, color_scheme="light")
            page.goto((Path(folder) / "report.html").as_uri())
            page.wait_for_selector("figure.drawn .live svg")
            page.wait_for_timeout(500)
            page.screenshot(path=TARGET)
            browser.close()


if __name__ == "__main__":
    main()
