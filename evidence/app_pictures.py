"""Photograph the pages of ``evenhand app`` for docs/app.md: ``python evidence/app_pictures.py``.

It starts the app, gives it a made table of loans, and walks through it in a headless Chromium as a person would.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LARGEST = 150_000  # bytes of a picture


def loans(rows: int = 6000) -> str:
    """Return a table in which women who repay are refused more often."""
    rng = np.random.default_rng(2)
    lines = ["customer_id,sex,age,income,score,granted,repaid"]
    for i in range(rows):
        sex = rng.choice(["Female", "Male"], p=[0.4, 0.6])
        repaid = rng.random() < 0.7
        score = np.clip(rng.normal(0.62 if repaid else 0.42, 0.16) - 0.05 * (sex == "Female"), 0.01, 0.99)
        granted = "yes" if score > 0.5 else "no"
        income = f"{rng.normal(38_000, 9_000):.0f}"
        age = rng.integers(18, 80)
        lines.append(f"{10_000 + i},{sex},{age},{income},{score:.3f},{granted},{'yes' if repaid else 'no'}")
    return "\n".join(lines) + "\n"


def photograph(page: Page, name: str, height: int, *, first: str | None = None) -> None:
    """Write a picture of a page from an element on, and refuse one that is too heavy for the docs."""
    page.set_viewport_size({"width": 1000, "height": height})
    if first is not None:
        page.locator(first).first.evaluate("(element) => window.scrollTo(0, element.offsetTop - 20)")
    page.wait_for_timeout(400)
    target = IMAGES / f"app-{name}.png"
    page.screenshot(path=target)
    if target.stat().st_size > LARGEST:
        raise SystemExit(f"{target} has {target.stat().st_size:,} bytes; at most {LARGEST:,} are allowed.")


def walk(page: Page, file: Path) -> None:
    """Go through the app once, and once more for the comparison."""
    page.get_by_label("CSV, Excel").set_input_files(file)
    photograph(page, "file", 760)
    page.get_by_role("button", name="Continue").first.click()
    page.get_by_role("heading", name="What do the columns mean?").wait_for()
    photograph(page, "columns", 980)
    page.get_by_label("5 points").first.check()
    photograph(page, "margin", 470, first="fieldset")
    for again in (False, True):
        for box in page.locator("input[name=audit]").all():
            box.set_checked(box.get_attribute("value") == "group")
        page.get_by_label("I have checked").check()
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Run the audit").wait_for()
        if not again:
            photograph(page, "check", 960)
        page.get_by_role("button", name="Run the audit").click()
        if not again:
            page.locator("#now").wait_for()
            photograph(page, "running", 420)
        page.get_by_role("link", name="Read the report").wait_for()
        if not again:
            photograph(page, "finished", 760)
            page.get_by_role("link", name="Read the report").click()
            page.wait_for_url("**/report")
            photograph(page, "report", 760)
            page.go_back()
            page.get_by_role("link", name="Change choices and run again").click()
    page.get_by_role("link", name="Past audits").first.click()
    page.get_by_role("heading", name="Past audits").wait_for()
    photograph(page, "history", 640)


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "loans.csv"
        file.write_text(loans(), encoding="utf-8")
        words = [sys.executable, "-m", "evenhand", "app", "--no-browser", "--folder", str(Path(folder) / "runs")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as play:
            try:
                address = server.stdout.readline().split()[-1] if server.stdout else ""
                browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
                page = browser.new_page(color_scheme="light")
                page.set_default_timeout(300_000)
                page.goto(address)
                walk(page, file)
                browser.close()
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
