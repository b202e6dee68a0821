"""The house rules, read from the source: who may import whom, what files are called, how long they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import evenhand

ROOT = Path(evenhand.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# A room may import from rooms of a lower level. Rooms of one level do not import each other.
LEVELS = {
    "arrays": 0,
    "errors": 0,
    "files": 1,
    "results": 2,
    "kernels": 3,
    "intake": 4,
    "models": 5,
    "generators": 6,
    "datasets": 7,
    "summaries": 8,
    "metrics": 9,
    "inference": 9,
    "similarity": 10,
    "audits": 11,
    "mitigation": 12,
    "sizing": 12,
    "plan": 13,
    "run": 14,
    "report": 15,
    "cli": 16,
    "__init__": 17,
    "__main__": 17,
}


def _name(path):
    return path.relative_to(ROOT).as_posix()


def _room(path):
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def _imports(tree):
    """Every name of this package that a file imports, at the top or inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "evenhand")
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "." * node.level
            elif node.module == "evenhand":
                yield from (f"evenhand.{alias.name}" for alias in node.names)
            elif (node.module or "").startswith("evenhand."):
                yield node.module


def _wrong_imports(room, source):
    wrong = []
    for target in _imports(ast.parse(source)):
        if target.startswith("."):
            wrong.append("relative import")
            continue
        other = [*target.split("."), "__init__"][1]
        if other not in LEVELS:
            wrong.append(f"{target}: import names from the room that defines them")
        elif other != room and LEVELS[other] >= LEVELS[room]:
            wrong.append(target)
    return wrong


def test_every_file_lives_in_a_known_room():
    assert {_room(path) for path in FILES} <= set(LEVELS)


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_imports_go_one_way(path):
    assert _wrong_imports(_room(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "source", "wrong"),
    [
        ("kernels", "from evenhand.errors import DataError", False),
        ("kernels", "from evenhand.kernels.shared.seeds import stream", False),
        ("audits", "from evenhand.metrics import Metric", False),
        ("cli", "from evenhand import datasets", False),
        ("kernels", "from evenhand.intake import AuditData", True),
        ("kernels", "def f():\n    import evenhand.audits.group", True),
        ("metrics", "from evenhand.inference.pvalues import TIE", True),
        ("inference", "from evenhand.metrics import Metric", True),
        ("intake", "from . import data", True),
        ("intake", "import evenhand", True),
        ("cli", "from evenhand import AuditData", True),
    ],
)
def test_the_import_rule_itself(room, source, wrong):
    assert bool(_wrong_imports(room, source)) is wrong


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_names_length_and_purpose(path):
    assert not {"utils", "util", "helpers", "helper", "common", "misc"} & set(
        path.relative_to(ROOT).with_suffix("").parts
    )
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < 450
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "say in one sentence what this file is for"


@pytest.mark.parametrize("path", [p for p in FILES if _name(p) != "kernels/shared/seeds.py"], ids=_name)
def test_random_numbers_come_from_seeds_only(path):
    makers = {"default_rng", "RandomState", "SFC64", "PCG64", "Philox", "MT19937", "seed"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert not called.startswith(("np.random.", "numpy.random.")), called
            assert called not in makers
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = {getattr(node, "module", None), *(a.name for a in node.names)}
            assert not {"random", "numpy.random"} & names


def _exported(path):
    """The names a room offers to the others: its `__all__`."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def _public_functions():
    offered = {path.parent: _exported(path) for path in FILES if path.name == "__init__.py"}
    for path in FILES:
        names = offered.get(path.parent, set()) | offered[ROOT]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name in names and path.name != "__init__.py":
                yield pytest.param(node, id=f"{_name(path)}:{node.name}")


@pytest.mark.parametrize("node", list(_public_functions()))
def test_public_functions_say_what_they_take_and_give(node):
    text = ast.get_docstring(node) or ""
    arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    if arguments:
        assert "Parameters\n----------" in text
        for argument in arguments:
            assert argument.arg in text, f"`{argument.arg}` is not explained"
    returns = "None" if node.returns is None else ast.unparse(node.returns)
    if returns not in ("None", "NoReturn"):
        assert "Returns\n-------" in text or "Yields\n------" in text
