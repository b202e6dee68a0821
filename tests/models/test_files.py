"""Models from files and names; strangers' pickles stay closed."""

from __future__ import annotations

import pickle

import pytest

from evenhand.errors import UsageError
from evenhand.models.files import load_model


class Bomb:
    def __reduce__(self):
        return (print, ("boom",))


def test_importable_object_by_name():
    assert load_model("math:sqrt")(9.0) == 3.0


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
