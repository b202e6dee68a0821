"""Models from files and names; strangers' pickles stay closed."""

from __future__ import annotations

import json
import pickle
import zipfile

import pytest

from evenhand.errors import UsageError
from evenhand.models.files import load_model


class Bomb:
    def __reduce__(self):
        return (print, ("boom",))


def test_importable_object_by_name():
    assert load_model("scipy.special:softmax")([0.0, 0.0])[0] == 0.5


@pytest.mark.parametrize(
    "name", ["subprocess:call", "os:system", "builtins:exec", "math:sqrt", "pathlib:Path", "sys:path"]
)
def test_what_does_not_look_like_a_model_is_not_taken(name):
    with pytest.raises(UsageError, match="does not look like a model"):
        load_model(name)


def test_a_name_from_a_file_is_not_imported():
    with pytest.raises(UsageError, match="--trust-plan"):
        load_model("scipy.special:softmax", trust_import=False)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("no_such_module_here:model", "cannot be imported"),
        ("math:sqrtt", "Did you mean `sqrt`"),
        ("model.txt", "not understood"),
        ("missing.onnx", "does not exist"),
        ("missing.skops", "does not exist"),
    ],
)
def test_names_that_lead_nowhere(name, match):
    with pytest.raises(UsageError, match=match):
        load_model(name)


def test_a_module_that_ends_the_process_cannot_be_imported(tmp_path, monkeypatch):
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"module `leaves_at_once` cannot be imported \(SystemExit: 0\)"):
        load_model("leaves_at_once:model")


@pytest.mark.parametrize("suffix", ["pkl", "pickle", "joblib"])
def test_a_pickle_is_refused_unopened(tmp_path, capsys, suffix):
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UsageError, match="runs whatever code"):
        load_model(path)
    assert capsys.readouterr().out == ""


def test_a_trusted_pickle_is_loaded(tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps({"a": 1}))
    assert load_model(path, trust_pickle=True) == {"a": 1}


@pytest.mark.parametrize(
    "stranger",
    ["estimator.fit_learner", "estimator.clone", "estimator.LogisticRegression", "nothing.Here", "_import_module"],
)
def test_only_estimators_of_this_package_are_trusted_by_their_home(tmp_path, stranger):
    """A file may name anything: functions of the room of mitigators, and what is imported there, stay untrusted."""
    import skops.io

    from evenhand.mitigation.project import Project

    skops.io.dump(Project(), tmp_path / "model.skops")
    assert type(load_model(tmp_path / "model.skops")).__name__ == "Project"
    home, _, name = f"evenhand.mitigation.{stranger}".rpartition(".")
    with zipfile.ZipFile(tmp_path / "model.skops") as archive:
        schema = json.loads(archive.read("schema.json"))
    schema["__module__"], schema["__class__"] = home, name
    with zipfile.ZipFile(tmp_path / "crafted.skops", "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    with pytest.raises(UsageError, match="not on the list of types"):
        load_model(tmp_path / "crafted.skops")
