"""A year of monthly batches of census data with a change planted in August: the example of ``docs/watch.md``.

    python evidence/watch_year.py FOLDER    # writes FOLDER/inbox/*.csv, watches them, draws docs/images/watch.svg

Each month 4,000 people are drawn from the rows of Adult that a logistic model decided about. From August on four in ten
of the women who would have been decided 1 are decided 0.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from drawings import drawn

import evenhand as eh
from evenhand.cli import run
from evenhand.report.watch import compose_watch

ROOT = Path(__file__).resolve().parent.parent
MONTHS = [f"2026-{month:02d}" for month in range(1, 13)]
ROWS, CHANGED = 4000, 0.4


def write_months(inbox: Path) -> None:
    """Write one CSV file for each month."""
    data, rng = eh.datasets.adult(), np.random.default_rng(2026)
    sex = np.array(data.attribute("sex").labels)[data.attribute("sex").codes]
    inbox.mkdir(parents=True, exist_ok=True)
    for month in MONTHS:
        people = rng.integers(len(sex), size=ROWS)
        decision = data.decision[people].astype(int)
        if month >= "2026-08":
            decision[(sex[people] == "Female") & (rng.random(ROWS) < CHANGED)] = 0
        rows = zip(sex[people], data.outcome[people].astype(int), decision, strict=True)
        text = "\n".join(["sex,income,decision", *(f"{s},{y},{d}" for s, y, d in rows)])
        (inbox / f"{month}.csv").write_text(text + "\n")


def draw(watch: eh.Watch, path: Path) -> None:
    """Draw evidence and estimate of the false negative rate, one above the other."""
    page = compose_watch(watch)
    figures = [b for c in page.chapters for b in c.blocks if getattr(b, "title", "") in ("Evidence about fnr_change",)]
    figures += [b for c in page.chapters for b in c.blocks if getattr(b, "title", "").startswith("fnr: ")]
    views = [{**f.spec, "title": f.title, "width": 640} for f in figures]
    for view in views:
        view.pop("autosize")
    path.write_text(drawn({"vconcat": views}))


def main() -> None:
    """Write the months, watch them, draw the picture."""
    folder = Path(sys.argv[1])
    write_months(folder / "inbox")
    words = ["watch", "--folder", str(folder / "inbox"), "--state", str(folder / "state.json"),
             "--outcome", "income", "--decision", "decision", "--group", "sex", "--metrics", "fnr,fpr",
             "--baseline", "6", "--out", str(folder / "out")]  # fmt: skip
    code = run(words)
    draw(eh.Watch.load(folder / "state.json"), ROOT / "docs" / "images" / "watch.svg")
    sys.exit(code)


if __name__ == "__main__":
    main()
