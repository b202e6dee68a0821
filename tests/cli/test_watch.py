"""``evenhand watch``: batches once, exit codes, files, and a real process killed at random moments."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import evenhand as eh
from evenhand.cli import run

COLUMNS = ("--outcome", "y", "--decision", "d", "--group", "sex")
KILLS = int(os.environ.get("EVENHAND_KILLS", "5"))  # 50 in the full form


def write(folder, name, *, gap=0.0, seed=0, rows=600):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], rows)
    y = rng.random(rows) < 0.5
    d = rng.random(rows) < np.where(y, 0.7 - gap * (sex == "F"), 0.2)
    folder.mkdir(exist_ok=True)
    lines = ["sex,y,d", *(f"{s},{int(a)},{int(b)}" for s, a, b in zip(sex, y, d, strict=True))]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def words(tmp_path, *more):
    return ["watch", "--state", str(tmp_path / "state.json"), "--out", str(tmp_path / "out"), *map(str, more)]


def test_batches_come_one_by_one_and_an_alarm_is_exit_code_3(tmp_path, capsys):
    inbox = tmp_path / "inbox"
    first = write(inbox, "2026-01.csv", seed=1)
    assert run(words(tmp_path, first, *COLUMNS, "--metrics", "fnr", "--reference", "sex=M")) == 0
    for j in range(2, 7):
        code = run(words(tmp_path, write(inbox, f"2026-{j:02d}.csv", gap=0.25, seed=j)))  # the plan stands in the file
    assert code == 3
    assert "alarm: fnr (sex=F vs sex=M)" in capsys.readouterr().err
    rows = list(csv.DictReader((tmp_path / "out" / "history.csv").read_text().splitlines()))
    assert [row["batch"] for row in rows] == [f"2026-{j:02d}" for j in range(1, 7)]
    answers = json.loads((tmp_path / "out" / "watch.json").read_text())
    (finding,) = answers["findings"]
    assert finding["verdict"] == "disparity"
    assert finding["alarm"] in [row["batch"] for row in rows]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Evidence over time" in page
    assert "could not be drawn" not in page
    # A folder of the same files adds nothing.
    before = (tmp_path / "state.json").read_bytes()
    assert run(words(tmp_path, "--folder", inbox)) == 3
    assert (tmp_path / "state.json").read_bytes() == before


def test_a_time_column_divides_a_file(tmp_path):
    parts = [write(tmp_path / "parts", f"{j}.csv", seed=j, gap=0.1) for j in (1, 2, 3)]
    lines = [line for path in parts for line in path.read_text().splitlines()[1:]]
    months = [f"2026-0{j}" for j in (1, 2, 3) for _ in range(600)]
    whole = tmp_path / "year.csv"
    table = [f"{m},{line}" for m, line in zip(months, lines, strict=True)]
    whole.write_text("\n".join(["month,sex,y,d", *table]) + "\n")
    assert run(words(tmp_path, whole, *COLUMNS, "--metrics", "fnr", "--time", "month", "--quiet")) in (0, 3)
    by_time = eh.Watch.load(tmp_path / "state.json")
    assert [b.name for b in by_time.batches] == ["2026-01", "2026-02", "2026-03"]
    one = eh.Watch(["fnr"], data={"outcome": "y", "decision": "d", "groups": ["sex"]})
    for month, path in zip(("2026-01", "2026-02", "2026-03"), parts, strict=True):
        one.update(path, batch=month)
    assert one.history() == by_time.history()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "There is no batch yet"),
        (("--folder", "nowhere"), "is not a folder"),
        (("missing.csv",), "does not exist"),
    ],
)
def test_usage_errors(tmp_path, capsys, more, said):
    assert run(words(tmp_path, *more, *COLUMNS)) == 2
    assert said in capsys.readouterr().err


def test_a_changed_plan_and_a_changed_batch_are_refused(tmp_path, capsys):
    file = write(tmp_path / "in", "a.csv")
    assert run(words(tmp_path, file, *COLUMNS, "--metrics", "fnr", "--quiet")) == 0
    assert run(words(tmp_path, file, *COLUMNS, "--metrics", "fpr", "--quiet")) == 2
    assert "began with another plan: `metrics`" in capsys.readouterr().err
    write(tmp_path / "in", "a.csv", seed=5)
    assert run(words(tmp_path, file, "--quiet")) == 2
    assert "counted before with other rows" in capsys.readouterr().err


def test_names_of_strangers_do_nothing(tmp_path):
    file = write(tmp_path / "in", "<script>alert(1)<script>.csv")
    text = file.read_text().replace("F,", "<img src=x onerror=alert(2)>,")
    file.write_text(text)
    assert run(words(tmp_path, file, *COLUMNS, "--quiet")) in (0, 3)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<img src=x" not in page
    assert "<script>alert" not in page


PROGRAM = """
import sys
from pathlib import Path
import evenhand as eh
watch = eh.Watch(["fnr"], data={"outcome": "y", "decision": "d", "groups": ["sex"]}, state=sys.argv[1])
for path in sorted(Path(sys.argv[2]).iterdir()):
    if watch.update(path, batch=path.stem):
        print(path.stem, flush=True)
print("done", flush=True)
"""


def test_a_process_killed_at_any_moment_loses_no_batch_and_counts_none_twice(tmp_path):
    """Kill it again and again, at moments between its first batch and its last; each time it goes on."""
    inbox, state = tmp_path / "inbox", tmp_path / "state.json"
    batches = max(40, 6 * KILLS)
    for j in range(batches):
        write(inbox, f"{j:04d}.csv", seed=j, rows=40)
    whole = eh.Watch(["fnr"], data={"outcome": "y", "decision": "d", "groups": ["sex"]})
    for path in sorted(inbox.iterdir()):
        whole.update(path, batch=path.stem)
    moments, kills = random.Random(0), 0
    told: list[str] = []
    while kills < KILLS:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(state), str(inbox)], stdout=subprocess.PIPE, text=True
        )
        line = process.stdout.readline().strip()  # it has begun to count
        time.sleep(moments.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        told += [line, *process.communicate()[0].split()]
        if "done" in told:  # nothing was left to be killed at: once more from the beginning
            state.unlink()
            told.clear()
            continue
        kills += 1
        counted = [batch.name for batch in eh.Watch.load(state).batches]
        assert len(counted) == len(set(counted))
        assert set(told) <= set(counted), "a batch that was reported as counted is lost"
    subprocess.run([sys.executable, "-c", PROGRAM, str(state), str(inbox)], check=True, stdout=subprocess.DEVNULL)
    assert eh.Watch.load(state).history() == whole.history()
