"""From a file to a report: upload, columns, what the rows can show, run, downloads, history, comparison."""

from __future__ import annotations

import io
import json
import os
import tomllib
from pathlib import Path

import openpyxl
import pytest

import evenhand as eh


def test_the_report_is_that_of_the_command_line(client, finished, decisions, tmp_path):
    """The same choices in Python give the same findings."""
    page = client.get(finished)
    assert page.status == 200
    assert "Read the report" in page.text
    found = json.loads(client.get(f"{finished}/files/findings.json").text)
    file = tmp_path / "decisions.csv"
    file.write_bytes(decisions)
    plan = eh.Plan.from_dict(found["plan"])
    data = eh.read(file, **plan.data)
    run = eh.audit(data, plan=plan)
    assert json.loads(run.to_json())["findings"] == found["findings"]
    assert plan.data["positive"] == {"outcome": "yes", "decision": "granted"}
    assert plan.group["margin"] == 0.05
    shown = {f["measure"]: f["verdict"] for f in found["findings"] if f["groups"] == ["sex=Female", "sex=Male"]}
    assert shown["fnr"] == "disparity"


def test_every_download_is_what_it_says(client, finished):
    plan = client.get(f"{finished}/files/plan.toml")
    assert tomllib.loads(plan.text)["data"]["groups"] == ["sex", "age_band"]
    assert plan.headers["content-disposition"].startswith('attachment; filename="evenhand-')
    book = openpyxl.load_workbook(io.BytesIO(client.get(f"{finished}/files/findings.xlsx").body))
    assert "About" in book.sheetnames
    assert any("group" in name for name in book.sheetnames)
    book.close()
    report = client.get(f"{finished}/files/report.html")
    assert report.text.startswith("<!doctype html>")
    assert "attachment" in report.headers["content-disposition"]


def test_the_columns_are_proposed_with_reasons_and_must_be_confirmed(client, decisions):
    place = client.upload(decisions)
    fields = dict(client.fields(place))
    assert [fields[f"role-{j}"] for j in range(5)] == ["group", "group", "feature", "outcome", "decision"]
    answer = client.post(place, [(name, value) for name, value in client.fields(place)])
    assert answer.status == 422
    assert "Please confirm that the columns are right." in answer.text


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"role-0": "none", "role-1": "none"}, "No column is marked as a group to compare."),
        ({"role-3": "decision"}, "<code>repaid</code> and <code>approved</code> are both marked as the decision"),
        ({"role-3": "nonsense"}, "What the column <code>repaid</code> is is <code>nonsense</code>"),
        ({"favourable-4": ""}, "Say which value of <code>approved</code> is the favourable one."),
        ({"favourable-4": "7"}, "Say which value of <code>approved</code> is the favourable one."),
        ({"alpha": "500"}, "alpha"),
        ({"seed": "-1"}, "write a whole number"),
        ({"margin": "own", "own_margin": "200"}, "it must lie between 0 and 100"),
        ({"audit": "nonsense"}, "No audit is ticked."),
        ({"features": "incom"}, "Did you mean <code>income</code>?"),
        ({"model_path": "/no/such/model.onnx"}, "There is no file"),
    ],
)
def test_what_does_not_fit_together_is_said_in_one_sentence(client, decisions, changed, sentence):
    answer = client.confirm(client.upload(decisions), **changed)
    assert answer.status == 422
    assert sentence in answer.text
    assert "Traceback" not in answer.text


def test_what_the_library_says_of_the_rows_is_shown_above_the_columns(client):
    place = client.upload(b"sex,approved,repaid\n" + b"F,yes,1\nF,no,0\n" * 30)
    assert client.confirm(place, **{"role-0": "group"}).status == 303
    assert client.until_ended(place) == "failed"
    assert client.get(f"{place}/check").place == place
    page = client.get(place).text
    assert 'role="alert"' in page
    assert "Column <code>sex</code> has 1 group" in page


def test_a_message_calls_an_upload_as_the_person_does(client, decisions):
    """Of what is held under a name of our own, no message tells the name."""
    place = client.upload(decisions)
    fields = [*client.fields(place), ("confirmed", "yes")]
    assert client.post(place, fields, [("model", "credit.onnx", b"no model")]).status == 303
    assert client.until_ended(place) == "failed"
    problem = client.get(place).text.partition('role="alert"')[2].partition("</div>")[0]
    assert "credit.onnx" in problem
    assert ".server-" not in problem


def test_before_the_audit_it_is_said_what_the_rows_can_show(client, decisions):
    place = client.upload(decisions)
    assert client.confirm(place).status == 303
    assert client.until_ended(place) == "finished"
    page = client.get(f"{place}/check").text
    assert "1,200 of 1,200 rows can be used." in page
    assert "would probably be found" in page
    assert "<code>approved</code>: <code>granted</code> counts as 1" in page
    assert "the tail audit, which needs a model and none was given" in page


def test_a_named_path_is_read_where_it_is(client, decisions, tmp_path):
    file = tmp_path / "here.csv"
    file.write_bytes(decisions)
    place = client.post("paths", [("path", str(file))]).place
    assert "here.csv" in client.get(place).text
    client.post(f"{place}/remove")
    assert client.get(place).status == 410
    assert file.exists()
    wrong = client.post("paths", [("path", str(tmp_path / "gone.csv"))])
    assert wrong.status == 422
    assert "There is no file" in wrong.text


def test_a_group_that_others_are_compared_with_can_be_chosen(client, decisions):
    place = client.upload(decisions)
    page = client.get(place).text
    offered = page.partition('name="reference-0"')[2].partition("</select>")[0]
    label = offered.index(">Female<") > offered.index(">Male<")
    client.confirm(place, **{"reference-0": str(int(label)), "reference": "rest", "audit": "group"})
    assert client.until_ended(place) == "finished", client.get(place).text
    shown = client.get(f"{place}/check").text
    assert "sex=Male <span" in shown
    assert "and sex=Female</span>" in shown


@pytest.mark.parametrize("called", ["decisions.xlsx", "decisions.parquet"])
def test_other_forms_of_a_table_are_read(client, decisions, tmp_path, called):
    import pandas as pd

    frame = pd.read_csv(io.BytesIO(decisions))
    file = tmp_path / called
    frame.to_excel(file, index=False) if called.endswith("xlsx") else frame.to_parquet(file)
    place = client.upload(file.read_bytes(), called)
    assert dict(client.fields(place))["role-4"] == "decision"
    assert client.confirm(place, audit="group").status == 303
    assert client.until_ended(place) == "finished"


def test_a_model_file_makes_decisions(client, decisions):
    import pandas as pd
    import skops.io
    from sklearn.linear_model import LogisticRegression

    frame = pd.read_csv(io.BytesIO(decisions))
    model = skops.io.dumps(LogisticRegression().fit(frame[["income"]], frame["repaid"]))
    place = client.upload(decisions)
    fields = [(n, v) for n, v in client.fields(place) if n not in ("role-4", "features", "audit")]
    fields += [("role-4", "none"), ("features", "income"), ("audit", "group"), ("confirmed", "yes")]
    answer = client.post(place, fields, [("model", "credit.skops", model)])
    assert answer.status == 303, answer.text
    assert client.until_ended(place) == "finished", client.get(place).text
    assert "credit.skops" in client.get(place).text
    run = client.post(f"{place}/run").place
    assert client.until_ended(run) == "finished", client.get(run).text
    found = json.loads(client.get(f"{run}/files/findings.json").text)
    assert found["plan"]["data"]["model"] == "credit.skops"
    assert any("Scores and decisions are those of the model" in note for note in found["data"]["notes"])


def test_runs_are_listed_compared_and_deleted(client, finished, decisions):
    other = client.begin(decisions.replace(b"Female", b"female").replace(b"yes,refused", b"yes,granted", 60),
                         audit="group", title="The second one")  # fmt: skip
    assert client.until_ended(other) == "finished"
    page = client.get("runs").text
    assert "The second one" in page
    assert "Audit of decisions.csv" in page
    names = [place.removeprefix("runs/") for place in (finished, other)]
    compared = client.get(f"compare?old={names[0]}&new={names[1]}")
    assert compared.status == 200
    assert "Comparison of two runs" in compared.text
    assert "The second one" in compared.text
    alone = client.get(f"compare?old={names[0]}&new={names[0]}")
    assert (alone.status, "cannot be compared with itself" in alone.text) == (422, True)
    assert client.post(f"{other}/delete").place == "runs"
    assert client.get(other).status == 404
    assert "The second one" not in client.get("runs").text


def test_the_copy_of_a_file_goes_when_it_is_removed_and_is_never_open_to_others(client, decisions):
    place = client.upload(decisions)
    folder = next(client.folder.glob(".server-*")) / place.removeprefix("drafts/")
    copies = list(folder.glob("*.csv"))
    assert len(copies) == 1
    assert "decisions" not in copies[0].name
    assert os.stat(copies[0]).st_mode & 0o077 == 0
    for inside in (folder, folder.parent, Path(client.folder)):
        assert os.stat(inside).st_mode & 0o077 == 0
    client.post(f"{place}/remove")
    assert not folder.exists()
