"""Ctrl-C and a full disk: real signals and real limits on a real process leave no broken file."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from evenhand.cli import run

BASIC = ("--outcome", "y", "--decision", "d", "--group", "sex")


def command(file: Path, out: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "evenhand", "audit", str(file), "--out", str(out), *BASIC, *words]


def until(terminal: int, word: bytes) -> None:
    """Read a terminal up to a word, however long that takes; the end of the process ends the waiting with an error."""
    shown = b""
    while word not in shown:
        shown += os.read(terminal, 1024)


def until_busy(process: subprocess.Popen[bytes], ticks: int = 20) -> None:
    """Wait until a process has computed for so many more ticks of its own clock, which stands while others compute."""

    def used() -> int:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    begin = used()
    while used() - begin < ticks:
        assert process.poll() is None
        time.sleep(0.01)


def test_interrupt_leaves_nothing(tmp_path, decisions):
    out = tmp_path / "out"
    long = ("--group", "race", "--metrics", "balanced_accuracy", "--resamples", "50000000")
    ours, theirs = os.openpty()  # on a terminal the command says what it is doing
    process = subprocess.Popen(
        command(decisions(), out, *long),
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        # Tests that run in the background may ignore this signal, and their children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    until(ours, b"group: balanced_accuracy")
    until_busy(process)
    process.send_signal(signal.SIGINT)
    until(ours, b"evenhand: interrupted; nothing was written.")
    assert process.wait(timeout=600) == 1
    os.close(ours)
    assert not out.exists()


def test_a_disk_that_fills_up_keeps_the_old_results(tmp_path, decisions):
    file, out = decisions(), tmp_path / "out"
    assert run(["audit", str(file), "--out", str(out), *BASIC, "--quiet"]) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full() -> None:
        # The system refuses the bytes beyond this size, as it does on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    words = command(file, out, "--seed", "1", "--quiet")
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=full, check=False)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert "too large" in lines[0]
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_disk_that_is_full_from_the_start_leaves_no_file(tmp_path, decisions):
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    out = tmp_path / "out"
    done = subprocess.run(
        command(decisions(), out, "--quiet"), capture_output=True, text=True, preexec_fn=full, check=False
    )
    assert done.returncode == 2, done.stderr
    assert not out.exists() or os.listdir(out) == []
