"""Audits in processes of their own: progress, cancelling, a server that is killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from evenhand.cli import run as command

LIMIT = 300  # seconds: only ends what hangs


def _working(name):
    """Return the processes that work in a folder of this name."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(name.encode() in word for word in words):
            found.append(int(place.parent.name))
    return found


def _until(seen):
    end = time.monotonic() + LIMIT
    while not seen():
        assert time.monotonic() < end, "it is not seen"
        time.sleep(0.05)


def _begun(client, content):
    """Start an audit and wait until it works."""
    place = client.begin(content, audit=["group", "proxy"])
    _until(lambda: "proxy" in client.get(f"{place}/state").text)
    return place


def test_progress_is_shown_also_without_scripts_and_cancel_ends_the_process(client, slow_decisions):
    place = _begun(client, slow_decisions)
    page = client.get(place).text
    assert '<noscript><meta http-equiv="refresh" content="2"></noscript>' in page
    assert 'role="status"' in page
    assert "proxy" in page
    name = place.removeprefix("runs/")
    assert _working(name)
    assert client.post(f"{place}/cancel").place == place
    assert not _working(name)
    assert client.until_ended(place) == "cancelled"
    page = client.get(place).text
    assert "You cancelled this audit." in page
    assert "Change choices and run again" in page
    assert client.get(f"{place}/report").status == 404


def test_a_process_that_somebody_ends_is_told(client, slow_decisions):
    place = _begun(client, slow_decisions)
    for process in _working(place.removeprefix("runs/")):
        os.kill(process, 9)
    assert client.until_ended(place) == "failed"
    assert "ended without an answer" in client.get(place).text


def test_a_server_that_is_killed_and_started_again_knows_its_runs(server, tmp_path, decisions, slow_decisions):
    folder = tmp_path / "runs"
    with server(folder) as first:
        whole = first.begin(decisions, audit="group")
        assert first.until_ended(whole) == "finished"
        broken = _begun(first, slow_decisions)
        held = first.folder.glob(".server-*/*/*.csv")
        assert len(list(held)) == 2
        first.kill()
        _until(lambda: not _working(broken.removeprefix("runs/")))
    with server(folder) as second:
        assert second.until_ended(whole) == "finished"
        assert "Read the report" in second.get(whole).text
        assert second.get(f"{whole}/files/findings.json").status == 200
        assert second.until_ended(broken) == "interrupted"
        assert "The app ended before this audit did" in second.get(broken).text
        assert "interrupted" in second.get("runs").text
        assert not list(folder.glob(".server-*/*/*.csv"))
        assert second.post(f"{broken}/delete").place == "runs"
    assert [path.name for path in folder.iterdir()] == [whole.removeprefix("runs/")]


def test_two_servers_on_one_folder_leave_each_other_alone(server, tmp_path, slow_decisions):
    with server(tmp_path) as first:
        place = _begun(first, slow_decisions)
        with server(tmp_path) as second:
            assert '"running"' in second.get(f"{place}/state").text
        assert list(tmp_path.glob(".server-*/*/*.csv"))
        assert _working(place.removeprefix("runs/"))


def test_a_file_over_the_limit_is_refused_in_one_sentence(server, tmp_path, decisions):
    with server(tmp_path, "--limit", "0.01") as client:
        big = decisions * (2**20 * 12 // len(decisions))
        answer = client.post("files", files=[("file", "big.csv", big)])
        assert answer.status == 422
        assert "The file is larger than 10.2 MB, the most that is taken as an upload." in answer.text
        assert not list(tmp_path.glob(".server-*/*/*"))
        assert client.post("files", files=[("file", "small.csv", decisions)]).status == 303


def test_ending_the_server_removes_what_was_uploaded(server, tmp_path, decisions):
    with server(tmp_path) as client:
        client.upload(decisions)
        assert list(tmp_path.glob(".server-*/*/*.csv"))
    assert not list(tmp_path.iterdir())


def test_it_listens_on_the_loopback_address_only(client):
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {line[1] for line in lines if line[3] == "0A" and line[1].endswith(f":{client.port:04X}")}
    assert listening == {f"0100007F:{client.port:04X}"}


def test_the_browser_is_started_with_a_private_file_and_not_with_the_token(tmp_path):
    """Other users of the machine see with which words a program was started."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {tmp_path / "seen"}\n')
    browser.chmod(0o700)
    command_line = [sys.executable, "-m", "evenhand", "app", "--folder", str(tmp_path / "runs")]
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True, env=environment) as process:
        address = process.stdout.readline().split()[-1]
        _until(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text())
        opened = (tmp_path / "seen").read_text()
        file = Path(opened.removeprefix("file://"))
        assert opened.startswith("file:///")
        assert urlsplit(address).path.strip("/") not in opened
        assert f"url={address}" in file.read_text()
        assert file.stat().st_mode & 0o077 == 0
        process.terminate()
    assert not file.exists()


def test_a_port_that_is_taken_is_said(tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert command(["app", "--no-browser", "--port", str(port), "--folder", str(tmp_path)]) == 2
    assert f"Port {port} cannot be used" in capsys.readouterr().err


def test_a_folder_that_cannot_hold_runs_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("no folder")
    assert command(["app", "--no-browser", "--folder", str(tmp_path / "file" / "runs")]) == 2
    assert "cannot hold runs" in capsys.readouterr().err


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "python_multipart"])
def test_a_missing_package_is_named(package, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    assert command(["app", "--no-browser", "--folder", str(tmp_path)]) == 2
    assert "pip install 'evenhand[app]'" in capsys.readouterr().err
