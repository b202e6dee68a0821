"""A real server in a process of its own, and a browser without pictures that asks it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

LIMIT = 300  # seconds: only ends what hangs


class Answer:
    """What the server said."""

    def __init__(self, answer, body):
        self.status, self.body = answer.status, body
        self.headers = {name.lower(): value for name, value in answer.getheaders()}

    @property
    def text(self):
        return self.body.decode()

    @property
    def place(self):
        """Where a redirect leads, below the token."""
        return self.headers["location"].split("/", 2)[2]


class Fields(HTMLParser):
    """What a browser would send of the forms of a page that nobody has touched, by their addresses."""

    def __init__(self, text):
        super().__init__()
        self.forms, self._form, self._select, self._area = {}, None, None, None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "form":
            self._form = self.forms.setdefault(attrs["action"], [])
        elif tag == "input" and attrs.get("type") in ("radio", "checkbox"):
            if "checked" in attrs:
                self._form.append((attrs["name"], attrs.get("value", "on")))
        elif tag == "input" and attrs.get("type") != "file":
            self._form.append((attrs["name"], attrs.get("value") or ""))
        elif tag == "select":
            self._select = attrs["name"], []
        elif tag == "option":
            self._select[1].append((attrs["value"], "selected" in attrs))
        elif tag == "textarea":
            self._area = attrs["name"]
            self._form.append((self._area, ""))

    def handle_endtag(self, tag):
        if tag == "select":
            name, offered = self._select
            chosen = [value for value, selected in offered if selected] or [offered[0][0]]
            self._form.append((name, chosen[0]))
        elif tag == "form":
            self._form = None


class Client:
    """Asks one server."""

    def __init__(self, address, process=None, folder=None):
        parts = urlsplit(address)
        self.address, self.host, self.port, self.token = address, parts.hostname, parts.port, parts.path.strip("/")
        self.process, self.folder = process, folder

    def ask(self, method, path, body=None, headers=None, whole=False):
        """Ask for a path below the token, or for a whole one."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT)
        try:
            connection.request(method, path if whole else f"/{self.token}/{path}", body, headers or {})
            answer = connection.getresponse()
            return Answer(answer, answer.read())
        finally:
            connection.close()

    def get(self, path="", **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, fields=(), files=(), **headers):
        """Send a form as a browser does."""
        border = "border-of-a-test"
        body = b""
        for name, value in fields:
            body += f'--{border}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, called, content in files:
            head = f'Content-Disposition: form-data; name="{name}"; filename="{called}"'
            body += f"--{border}\r\n{head}\r\n\r\n".encode() + content + b"\r\n"
        body += f"--{border}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={border}", **headers}
        return self.ask("POST", path, body, headers)

    def upload(self, content, called="decisions.csv"):
        """Give a file and return where its columns are shown."""
        answer = self.post("files", files=[("file", called, content)])
        assert answer.status == 303, answer.text
        return answer.place

    def fields(self, place):
        """Return what a page's form at its own address would send."""
        return Fields(self.get(place).text).forms[f"/{self.token}/{place}"]

    def confirm(self, place, **changed):
        """Send the columns as they are proposed, but for what is changed, and confirm them."""
        fields = [(name, value) for name, value in self.fields(place) if name not in changed]
        extra = [(name, value) for name, values in changed.items() for value in np.atleast_1d(values)]
        return self.post(place, [*fields, *extra, ("confirmed", "yes")])

    def until_ended(self, place):
        """Wait until work has ended, and return how."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            state = json.loads(self.get(f"{place}/state").text)
            if state["word"] != "running":
                return state["word"]
            time.sleep(0.1)
        raise AssertionError("it does not end")

    def begin(self, content, **changed):
        """Go the whole way up to an audit that runs, and return where."""
        place = self.upload(content)
        answer = self.confirm(place, **changed)
        assert answer.status == 303, answer.text
        assert self.until_ended(place) == "finished", self.get(place).text
        return self.post(f"{place}/run").place

    def kill(self):
        """End the server as a crash would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def _server(folder, *words):
    command = [sys.executable, "-m", "evenhand", "app", "--no-browser", "--folder", str(folder), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            line = process.stdout.readline()
            assert "http://" in line, line + process.stdout.read()
            reader = threading.Thread(target=process.stdout.read)
            reader.start()
            yield Client(line.split()[-1], process, Path(folder))
        finally:
            process.terminate()
            process.wait(LIMIT)
            reader.join()


@pytest.fixture
def server():
    """Start servers."""
    return _server


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    """One server for all tests that do not end it."""
    with _server(tmp_path_factory.mktemp("app") / "runs") as client:
        yield client


@pytest.fixture(scope="session")
def decisions():
    """A table in which women who repaid are refused more often."""
    rng = np.random.default_rng(0)
    rows = ["sex,age_band,income,repaid,approved"]
    for _ in range(1200):
        sex, repaid = rng.choice(["Female", "Male"]), rng.random() < 0.5
        chance = (0.45 if sex == "Female" else 0.85) if repaid else 0.2
        approved = "granted" if rng.random() < chance else "refused"
        band = rng.choice(["young", "old"])
        rows.append(f"{sex},{band},{rng.integers(20, 90)},{'yes' if repaid else 'no'},{approved}")
    return "\n".join(rows).encode()


@pytest.fixture(scope="session")
def slow_decisions():
    """A table whose audit takes far longer than it takes to cancel it."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(40)]
    rows = [",".join(["sex", "repaid", "approved", *names])]
    for numbers in rng.normal(size=(40_000, len(names))):
        sex, repaid = rng.choice(["Female", "Male"]), rng.random() < 0.5
        approved = rng.random() < 0.4 + 0.2 * (sex == "Male")
        rows.append(",".join([sex, str(int(repaid)), str(int(approved)), *(f"{x:.4f}" for x in numbers)]))
    return "\n".join(rows).encode()


@pytest.fixture(scope="session")
def finished(client, decisions):
    """A finished run of the group audit."""
    place = client.begin(decisions, audit="group", margin="0.05")
    assert client.until_ended(place) == "finished", client.get(place).text
    return place
