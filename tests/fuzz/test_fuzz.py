"""The short form of ``tests/fuzz/run.py``: a few dozen generated inputs, always the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_generated_inputs_end_in_an_answer_or_a_sentence(tmp_path: Path) -> None:
    summary = tmp_path / "summary.json"
    words = ["--inputs", "60", "--apart", "30", "--write", str(summary)]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run.py")), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    told = json.loads(summary.read_text(encoding="utf-8"))
    assert told["problems"] == {}
    assert told["estimates compared"] > 50
