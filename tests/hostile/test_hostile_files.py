"""Files made to do harm: none runs code, opens another file or leaves one behind."""

from __future__ import annotations

import builtins
import io
import json
import pickle
import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
import skops.io
from click.testing import CliRunner
from onnx import TensorProto, helper
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression, SGDClassifier, TweedieRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import evenhand as eh
from evenhand.cli import cli
from evenhand.errors import UsageError
from evenhand.models.files import load_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
MARK = "print('the stranger ran')"

ROWS = "y,d,sex,x\n" + "".join(f"{i % 2},{i // 2 % 2},{'FM'[i % 3 % 2]},{i}\n" for i in range(60))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, in which nothing new may appear but what a test expects."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)
    return tmp_path


def rewritten(model, change) -> bytes:
    """Save a model, let `change` rewrite the description inside, and return the file."""
    source = zipfile.ZipFile(io.BytesIO(skops.io.dumps(model)))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "schema.json":
                content = json.dumps(change(json.loads(content))).encode()
            archive.writestr(entry, content)
    return made.getvalue()


def node(kind: str, module: str, loader: str, **more):
    return {"__class__": kind, "__module__": module, "__loader__": loader, **more}


def text(value: str):
    return node("str", "builtins", "JsonNode", content=json.dumps(value), is_json=True)


def listed(*items, kind="tuple"):
    loader = {"tuple": "TupleNode", "list": "ListNode"}[kind]
    return node(kind, "builtins", loader, content=list(items))


def into_attribute(bad):
    """Hide a node in an attribute of a fitted model."""

    def change(schema):
        schema["content"]["content"]["C"] = bad
        return schema

    return change


def replacing(bad):
    return lambda schema: {**bad, "protocol": schema["protocol"], "_skops_version": schema["_skops_version"]}


RUNSTRING = node("runstring", "numpy.testing._private.utils", "FunctionNode")
HOSTILE_NODES = {
    "a function of numpy's testing package": RUNSTRING,
    "a public alias of it": node("runstring", "numpy.testing", "FunctionNode"),
    "exec": node("exec", "builtins", "FunctionNode"),
    "system": node("system", "os", "FunctionNode"),
    "a type that is a function": node("runstring", "numpy.testing._private.utils", "TypeNode"),
    "a constructor that is a function": node(
        "runstring", "numpy.testing._private.utils", "ConstructorFromReduceNode", content=listed(text(MARK), text(""))
    ),
    "a constructor that runs a program": node(
        "Popen", "subprocess", "ConstructorFromReduceNode", content=listed(listed(text("true"), kind="list"))
    ),
    "an object of another package": node("Popen", "subprocess", "ObjectNode"),
    "a list that is a function": node("exec", "builtins", "ListNode", content=[text(MARK)]),
    "a dict that is a function": node(
        "runstring", "numpy.testing", "DictNode", content={}, key_types=listed(kind="list")
    ),
    "a partial of a function": node(
        "partial",
        "functools",
        "PartialNode",
        content={"func": RUNSTRING, "args": listed(text(MARK)), "kwds": text(""), "namespace": text("")},
    ),
    "an operator": node("methodcaller", "operator", "OperatorFuncNode", attrs=listed(text("system"), text("true"))),
    "a method of an object": node(
        "method", "builtins", "MethodNode", content={"func": "system", "obj": node("os", "os", "ObjectNode")}
    ),
    "a loss of another package": node(
        "Popen", "subprocess", "LossNode", __reduce__={"args": listed(text("true"))}, content=listed()
    ),
    "a function of scikit-learn": node("fetch_openml", "sklearn.datasets._openml", "FunctionNode"),
    "a private type of scikit-learn that is not listed": node("_Scorer", "sklearn.metrics._scorer", "ObjectNode"),
    "an array that is a function": node("exec", "builtins", "NdArrayNode", type="json", content=[], shape=listed()),
}


@pytest.mark.parametrize("where", ["inside a model", "in place of the model", "nested"])
@pytest.mark.parametrize("name", HOSTILE_NODES)
def test_a_skops_file_with_something_to_run_is_refused(folder, capfd, name, where):
    bad = HOSTILE_NODES[name]
    model = LogisticRegression().fit(X, Y)
    if where == "nested":
        bad = listed(listed(bad), kind="list")
    change = replacing(bad) if where == "in place of the model" else into_attribute(bad)
    (folder / "model.skops").write_bytes(rewritten(model, change))
    with pytest.raises(UsageError, match=r"model\.skops"):
        load_model("model.skops")
    out, err = capfd.readouterr()
    assert "stranger ran" not in out + err
    assert sorted(p.name for p in folder.iterdir()) == ["model.skops", "rows.csv"]


def saved_models():
    mixed = make_column_transformer((StandardScaler(), make_column_selector(dtype_include=float)))
    yield "logistic", LogisticRegression()
    yield "words", LogisticRegression()
    yield "pipeline", make_pipeline(FunctionTransformer(np.abs), StandardScaler(), LogisticRegression())
    yield "binned", make_pipeline(KBinsDiscretizer(quantile_method="averaged_inverted_cdf"), LogisticRegression())
    yield "forest", RandomForestClassifier(5, random_state=0)
    yield "tree", DecisionTreeClassifier(random_state=0)
    yield "boosting", GradientBoostingClassifier(n_estimators=5)
    yield "histogram boosting", HistGradientBoostingClassifier(max_iter=5)
    yield "network", MLPClassifier((4,), max_iter=400, tol=0.1, random_state=0)
    yield "network by sgd", MLPClassifier((4,), max_iter=400, tol=0.1, solver="sgd", random_state=0)
    yield "svm", SVC()
    yield "sgd", SGDClassifier(loss="log_loss")
    yield "calibrated", CalibratedClassifierCV(SVC(), cv=2)
    yield "isotonic", CalibratedClassifierCV(SVC(), cv=2, method="isotonic")
    yield "searched", GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}, cv=2)
    yield "stacked", StackingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier())], cv=2)
    yield "neighbours", KNeighborsClassifier(3)
    yield "kernel", GaussianProcessClassifier(1.0 * RBF() + WhiteKernel(), optimizer=None)
    yield "kernels", GaussianProcessClassifier(Matern() + DotProduct(), optimizer=None)
    yield "regression", TweedieRegressor(link="identity")
    yield "selected", make_pipeline(mixed, LogisticRegression())


@pytest.mark.parametrize(("name", "model"), list(saved_models()), ids=lambda v: v if isinstance(v, str) else "")
def test_saved_models_of_scikit_learn_are_loaded(folder, name, model):
    import pandas as pd

    inputs = pd.DataFrame(X, columns=["a", "b", "c"]) if name == "selected" else X
    target = np.where(Y, "yes", "no") if name == "words" else Y
    model.fit(inputs, target)
    skops.io.dump(model, "model.skops")
    again = load_model("model.skops")
    assert np.array_equal(again.predict(inputs), model.predict(inputs))


def test_every_trusted_type_is_needed_by_a_saved_model(folder):
    """The list holds nothing that no model here needs."""
    import pandas as pd

    from evenhand.models.trusted import TRUSTED

    needed: set[str] = set()
    for name, model in saved_models():
        model.fit(pd.DataFrame(X, columns=["a", "b", "c"]) if name == "selected" else X, Y)
        needed |= set(skops.io.get_untrusted_types(data=skops.io.dumps(model)))
    assert set(TRUSTED) == needed


def crafted_tree(field: str, value: int):
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)
    state = model.tree_.__getstate__()
    state["nodes"][field][0] = value
    model.tree_.__setstate__(state)
    return model


@pytest.mark.parametrize(("field", "value"), [("left_child", 10**6), ("right_child", 0), ("feature", 10**7)])
def test_a_tree_that_leads_outside_itself_is_refused(folder, field, value):
    skops.io.dump(crafted_tree(field, value), "model.skops")
    with pytest.raises(UsageError, match="branches lead outside"):
        load_model("model.skops")


@pytest.mark.parametrize(("field", "value"), [("left", 10**6), ("right", 0)])
def test_a_boosted_tree_that_leads_outside_itself_is_refused(folder, field, value):
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, Y)
    nodes = model._predictors[0][0].nodes.copy()
    nodes[field][0] = value
    model._predictors[0][0].nodes = nodes
    skops.io.dump(model, "model.skops")
    with pytest.raises(UsageError, match="branches lead outside"):
        load_model("model.skops")


def test_a_vectorizer_that_opens_files_is_refused(folder):
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(["a bird", "a fish"] * 5, [0, 1] * 5)
    model[0].input = "filename"
    skops.io.dump(model, "model.skops")
    with pytest.raises(UsageError, match="would open files"):
        load_model("model.skops")


class Bomb:
    def __reduce__(self):
        return (builtins.exec, (MARK,))


@pytest.mark.parametrize("name", ["m.skops", "m.onnx", "m.pkl", "m.joblib", "m.pickle"])
def test_a_pickle_under_any_name_stays_closed(folder, capfd, name):
    (folder / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UsageError):
        load_model(name)
    assert "stranger" not in capfd.readouterr().out


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.csv", "rows.feather"])
def test_a_pickle_in_place_of_the_data_stays_closed(folder, capfd, name):
    (folder / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(eh.EvenhandError):
        eh.read(name, outcome="y", decision="d", groups=["sex"])
    assert "stranger" not in capfd.readouterr().out


def test_a_pickle_inside_an_array_of_a_skops_file_stays_closed(folder, capfd):
    made = io.BytesIO()
    np.save(made, np.array([Bomb()], dtype=object), allow_pickle=True)
    source = zipfile.ZipFile(io.BytesIO(skops.io.dumps(LogisticRegression().fit(X, Y))))
    with zipfile.ZipFile("model.skops", "w") as archive:
        for entry in source.infolist():
            archive.writestr(entry, made.getvalue() if entry.filename.endswith(".npy") else source.read(entry))
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_model("model.skops")
    assert "stranger" not in capfd.readouterr().out


def external(location: str) -> bytes:
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3, 1], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value=location)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])
    told = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [given], [told], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("where", ["../secret.bin", "absolute", "link.bin"])
def test_onnx_weights_stay_inside_the_models_folder(folder, where):
    assert onnx.__version__
    inside = folder / "model"
    inside.mkdir()
    np.zeros(3, dtype=np.float32).tofile(folder / "secret.bin")
    (inside / "link.bin").symlink_to(folder / "secret.bin")
    (inside / "m.onnx").write_bytes(external(str(folder / "secret.bin") if where == "absolute" else where))
    with pytest.raises(UsageError, match="not an ONNX model"):
        load_model(inside / "m.onnx")


@pytest.mark.parametrize("model", ["subprocess:call", "os:system", "hostile_module:model"])
def test_a_plan_imports_nothing(folder, capfd, monkeypatch, model):
    monkeypatch.syspath_prepend(str(folder))
    (folder / "hostile_module.py").write_text(f"{MARK}\ndef model(X): return X[:, 0]\n")
    (folder / "audit.toml").write_text(
        'audits = ["group"]\n[data]\noutcome = "y"\ndecision = "d"\ngroups = ["sex"]\nfeatures = ["x"]\n'
        f'model = "{model}"\n'
    )
    found = CliRunner().invoke(cli, ["audit", "rows.csv", "--plan", "audit.toml", "--out", "out"])
    assert found.exit_code != 0
    assert "--trust-plan" in found.output + str(found.exception)
    assert "stranger" not in capfd.readouterr().out + found.output
    assert not (folder / "out").exists()


NAMES = [
    "\"; COPY (SELECT 1) TO 'stolen.csv'; --",
    "read_csv('/etc/passwd')",
    "{{ 7 * 7 }}",
    "{% include 'x' %}",
    '=HYPERLINK("http://127.0.0.1")',
    "@SUM(1+1)",
    "<script>alert(1)</script>",
    "]]><x/>&amp;",
    "![a](http://127.0.0.1/x.png)",
    "a|b\\`c`",
    'x"\n[evil]\ny = "1',
]


@pytest.mark.parametrize("where", ["column", "cell"])
@pytest.mark.parametrize("name", NAMES)
def test_names_reach_no_interpreter(folder, name, where):
    """SQL, templates, HTML, XML, Markdown, TOML and spreadsheets get a name as text."""
    label = name if where == "cell" else "F"
    column = name if where == "column" else "sex"
    rows = {
        "y": [i % 2 for i in range(60)],
        "d": [i // 2 % 2 for i in range(60)],
        column: [label if i % 3 else "M" for i in range(60)],
    }
    table = pa.table(rows)
    pa.parquet.write_table(table, "rows.parquet")
    with pa.ipc.new_file("rows.arrow", table.schema) as sink:
        sink.write_table(table)
    for file in ("rows.parquet", "rows.arrow"):
        before = {p.name for p in folder.iterdir()}
        words = [
            "audit",
            file,
            "--outcome",
            "y",
            "--decision",
            "d",
            "--group",
            column,
            "--out",
            f"out-{file}",
            "--quiet",
        ]
        found = CliRunner().invoke(cli, words)
        assert found.exit_code == 0, found.output
        assert {p.name for p in folder.iterdir()} - before == {f"out-{file}"}
        check_outputs(folder / f"out-{file}", name)
    data = eh.read("rows.parquet", outcome="y", decision="d", groups=[column])
    plan = eh.Plan.default(data, base=eh.Plan(reference={column: "M"}))
    Path("again.toml").write_text(plan.to_toml())
    assert eh.Plan.from_toml("again.toml").reference == {column: "M"}


def check_outputs(out: Path, name: str) -> None:
    page = (out / "report.html").read_text()
    assert "49" not in re.findall(r"<td[^>]*>(\d+)</td>", page) or "{{" not in name
    if "<" in name:
        assert name not in page.split("<script")[0]
    ElementTree.parse(out / "junit.xml")
    assert json.loads((out / "findings.json").read_text())["schema"] == "evenhand/1"
    markdown = (out / "report.md").read_text()
    assert "<script>" not in markdown
    assert "![a](http" not in markdown


def test_columns_that_lie_about_their_content_end_in_a_sentence(folder):
    table = pa.table({"y": [0, 1] * 30, "d": [1, 0] * 30, "sex": ["F", "M"] * 30})
    pa.parquet.write_table(table, "rows.parquet")
    whole = Path("rows.parquet").read_bytes()
    for cut in (len(whole) // 3, len(whole) - 4):
        Path("rows.parquet").write_bytes(whole[:cut])
        with pytest.raises(eh.EvenhandError):
            eh.read("rows.parquet", outcome="y", decision="d", groups=["sex"])
