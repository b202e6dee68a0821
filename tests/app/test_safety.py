"""Who may ask, and what strangers' names, files and cells can do: nothing."""

from __future__ import annotations

import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

HOSTILE = "<script>alert(1)</script>"


def test_without_the_token_nothing_is_answered(client):
    for path in ("/", "/runs", "/wrong/", f"/{client.token[:-1]}/", f"/x/{client.token}/", "//"):
        answer = client.ask("GET", path, whole=True)
        assert answer.status == 403, path
        assert "<form" not in answer.text
        assert client.token not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example", ""])
def test_another_host_is_refused(client, host):
    """A name that is made to lead here (DNS rebinding) is no name of this server."""
    assert client.get("", Host=host).status in (400, 403)


def test_both_names_of_the_loopback_address_are_answered(client):
    assert client.get("", Host=f"127.0.0.1:{client.port}").status == 200
    assert client.get("", Host=f"localhost:{client.port}").status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_another_origin_is_refused(client, decisions, origin):
    assert client.get("", Origin=origin).status == 403
    answer = client.post("files", files=[("file", "a.csv", decisions)], Origin=origin)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_its_own_origin_is_taken(client, decisions):
    own = f"http://127.0.0.1:{client.port}"
    assert client.post("files", files=[("file", "a.csv", decisions)], Origin=own).status == 303


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_do_nothing(client, finished, method):
    assert client.ask(method, finished).status in (400, 404, 405)
    assert client.get(finished).status == 200


def test_every_page_forbids_what_it_does_not_need(client, finished):
    for place in ("", "runs", finished, "no/such/page"):
        headers = client.get(place).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "same-origin"
        assert "set-cookie" not in headers
        assert "server" not in headers


def test_a_report_is_shut_off_from_the_pages(client, finished):
    answer = client.get(f"{finished}/report")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "default-src 'none'" in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert client.token not in answer.text


def test_pages_carry_no_script_and_no_style_of_their_own(client, decisions):
    """The policy would block them: everything is in files of the server."""
    place = client.upload(decisions)
    for path in ("", place, "runs"):
        text = client.get(path).text
        assert " style=" not in text
        assert " on" not in "".join(part.partition(">")[0] for part in text.split("<")[1:]).replace(" only", "")
        assert text.count("<script") == text.count('<script src="/') == 1


@pytest.mark.parametrize(
    "path",
    [
        "runs/../../etc/passwd",
        "runs/%2e%2e/%2e%2e/etc/passwd",
        "runs/..%2f..%2fetc%2fpasswd/report",
        "runs/.server-0/files/findings.json",
        "runs/20200101-000000-0000000000000000/files/findings.json",
        "runs/{run}/files/..%2f..%2f..%2fetc%2fpasswd",
        "runs/{run}/files/request.json",
        "runs/{run}/files/%00",
        "runs/{run}/files/worker.log",
        "drafts/../runs",
        "drafts/%2e%2e",
        "style.css/../../pyproject.toml",
    ],
)
def test_no_path_leads_out(client, finished, path):
    answer = client.get(path.replace("{run}", finished.removeprefix("runs/")))
    assert answer.status in (303, 307, 404, 405, 410)
    assert "root:" not in answer.text
    assert "Traceback" not in answer.text


def test_names_in_queries_and_forms_lead_nowhere(client, finished):
    for name in ("../../etc", "..", "/etc/passwd", "\0", "a" * 5000, HOSTILE):
        quoted = "".join(f"%{byte:02x}" for byte in name.encode())
        answer = client.get(f"compare?old={quoted}&new={quoted}")
        assert answer.status == 422
        assert HOSTILE not in answer.text
    for path in ("relative.csv", "../x.csv", "/etc/passwd", "/dev/zero", "\0", "/proc/self/environ", "~/x", HOSTILE):
        answer = client.post("paths", [("path", path)])
        assert answer.status == 422
        assert 'role="alert"' in answer.text
        assert HOSTILE not in answer.text


def test_hostile_names_and_cells_are_shown_and_do_nothing(client):
    head = f'{HOSTILE},"=cmd|calc","""><img src=x>",approved\n'
    rows = "".join(f"{HOSTILE},{j % 2},</select><b>,{'yes' if j % 3 else 'no'}\n" for j in range(60))
    called = "../../<script>alert(1)<,script>.csv"
    answer = client.post("files", files=[("file", called, (head + rows).encode())])
    assert answer.status == 303
    page = client.get(answer.place).text
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    roles = {"role-0": "none", "role-1": "group", "role-2": "none", "role-3": "decision", "favourable-3": "0"}
    assert client.confirm(answer.place, audit="group", **roles).status == 303
    assert client.until_ended(answer.place) == "finished"
    run = client.post(f"{answer.place}/run").place
    assert client.until_ended(run) == "finished"
    for place in (run, f"{run}/report", "runs"):
        assert "<script>alert" not in client.get(place).text


@pytest.mark.parametrize("called", ["model.pkl", "model.pickle", "model.joblib", "MODEL.PKL"])
def test_pickles_are_refused_with_the_reason(client, decisions, called):
    place = client.upload(decisions)
    fields = [*client.fields(place), ("confirmed", "yes")]
    answer = client.post(place, fields, [("model", called, b"cos\nsystem\n(S'touch /tmp/owned'\ntR.")])
    assert answer.status == 422
    assert "is a pickle: loading it runs whatever code its maker put in." in answer.text
    folder = next(client.folder.glob(".server-*")) / place.removeprefix("drafts/")
    assert not [p for p in folder.iterdir() if p.suffix.lower() in (".pkl", ".pickle", ".joblib")]


def test_a_model_that_is_a_pickle_in_disguise_is_not_loaded(client, decisions, tmp_path):
    marker = tmp_path / "owned"
    place = client.upload(decisions)
    fields = [(n, v) for n, v in client.fields(place) if n != "features"]
    fields += [("features", "income"), ("confirmed", "yes")]
    content = f"cos\nsystem\n(S'touch {marker}'\ntR.".encode()
    for called in ("model.skops", "model.onnx"):
        assert client.post(place, fields, [("model", called, content)]).status == 303
        assert client.until_ended(place) == "failed"
        assert 'role="alert"' in client.get(place).text
        assert not marker.exists()


@pytest.mark.parametrize(
    ("called", "content", "sentence"),
    [
        ("notes.docx", b"x", "has the extension <code>.docx</code>; allowed are"),
        ("empty.csv", b"", "empty"),
        ("broken.parquet", b"PAR1 no", "broken.parquet"),
        ("broken.xlsx", b"PK\x03\x04", "broken.xlsx"),
    ],
)
def test_files_that_are_no_tables_are_refused_in_one_sentence(client, called, content, sentence):
    answer = client.post("files", files=[("file", called, content)])
    assert answer.status == 422
    assert sentence in answer.text
    assert "Traceback" not in answer.text
    assert str(client.folder) not in answer.text.replace("Runs are kept", "")


def test_a_workbook_that_unpacks_to_too_much_is_refused(client):
    sheet = io.BytesIO()
    with zipfile.ZipFile(sheet, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as part:
            for _ in range(1300):
                part.write(b"<row>" * 2**18)
    assert len(sheet.getvalue()) < 2**22
    answer = client.post("files", files=[("file", "bomb.xlsx", sheet.getvalue())])
    assert answer.status == 422
    assert "bomb.xlsx" in answer.text
    assert client.get("").status == 200


def test_forms_that_are_not_whole_are_refused(client):
    border = {"Content-Type": "multipart/form-data; boundary=b"}
    for body, headers in (
        (b"path=/etc/passwd", {"Content-Type": "application/x-www-form-urlencoded"}),
        (b"--b\r\nContent-Disposition: form-data; name=", border),
        (b"no form at all", border),
        (b"", border),
    ):
        answer = client.ask("POST", "files", body, headers)
        assert answer.status == 422
        assert "The form was not whole" in answer.text or "a form of an unknown kind" in answer.text


def test_twenty_at_once_do_not_mix(client):
    """Each tab has a file of its own and sees nothing of the others."""

    def tab(number):
        rows = "".join(f"{'FM'[j % 2]},{j % 3},{'yes' if j % 5 else 'no'}\n" for j in range(200))
        place = client.upload(f"sex,only_{number}_here,approved\n{rows}".encode(), f"file-{number}.csv")
        page = client.get(place).text
        assert client.get("runs").status == 200
        return place, page

    with ThreadPoolExecutor(20) as pool:
        seen = list(pool.map(tab, range(20)))
    assert len({place for place, _ in seen}) == 20
    for number, (_, page) in enumerate(seen):
        named = {other for other in range(20) if f"only_{other}_here" in page or f"file-{other}.csv" in page}
        assert named == {number}


def test_two_servers_do_not_know_each_other(client, server, tmp_path, finished):
    with server(tmp_path / "other") as other:
        assert other.token != client.token
        assert other.get(finished).status == 404
        crossed = other.ask("GET", f"/{client.token}/", whole=True)
        assert crossed.status == 403


def test_the_state_of_a_run_is_plain_data(client, finished):
    answer = client.get(f"{finished}/state")
    assert json.loads(answer.text)["word"] == "finished"
    assert answer.headers["content-type"] == "application/json"
