"""The house rules, read from the source: who may import whom, what files are called, how long they are.

The house is drawn once, as the table of rooms in CONTRIBUTING.md, and read from there.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import evenhand

ROOT = Path(evenhand.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
DRAWN = Path(__file__).parents[2] / "CONTRIBUTING.md"
_ROW = re.compile(r"^\| (\d+) \| `([\w/]+?)(?:\.py|/)` \| .+ \| ([\d,]+) \|$", re.MULTILINE)
# Room, its level, and how many lines it has without rooms inside it.
ROWS = [(room, int(level), int(n.replace(",", ""))) for level, room, n in _ROW.findall(DRAWN.read_text("utf-8"))]
LEVELS = {room: level for room, level, _ in ROWS}
# Imports for the type checker alone are no part of a cycle: nothing is loaded. They are few, and these.
FOR_TYPES = {"__init__.py", "audits/registry.py"}


def _name(path):
    return path.relative_to(ROOT).as_posix()


def _module(path):
    return ".".join(("evenhand", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


MODULES = {_module(path) for path in FILES}


def _room(module):
    """Return the innermost room that a module lies in, None outside all of them."""
    parts = module.split(".")[1:] or ["__init__"]
    inside = ["/".join(parts[:k]) for k in range(len(parts), 0, -1)]
    return next((room for room in inside if room in LEVELS), None)


def _named(text):
    """Return the modules of this package that a string names, alone or in code that it holds."""
    whole = re.match(r"evenhand\.\w[\w.]*$", text)
    inside = re.findall(r"^\s*(?:from|import)\s+(evenhand\.\w[\w.]*)", text, re.MULTILINE)
    return ([whole.group().rstrip(".")] if whole else []) + inside


def _imports(tree, module="", *, for_types=True):
    """Every module of this package that a file imports: at the top, inside a function, or by name in a string.

    A string that names the room in which the file lies is no import of it: it asks for a file beside it.
    """
    for node in ast.iter_child_nodes(tree):
        if not for_types and isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "evenhand")
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "."
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "evenhand":
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES or node.module == "evenhand" else node.module for name in full)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and _roomless(node):
            yield "."
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (name for name in _named(node.value) if not f"{module}.".startswith(f"{name}."))
        yield from _imports(node, module, for_types=for_types)


def _roomless(call):
    """Say whether a call imports a module of this package without naming its room."""
    return ast.unparse(call.args[0]).lstrip("f\"'").startswith((".", "evenhand.{"))


def _wrong_imports(module, source):
    wrong = []
    room = _room(module)
    for target in _imports(ast.parse(source), module):
        other = _room(target)
        if target == ".":
            wrong.append("an import that does not name its room")
        elif target == "evenhand" or other is None:
            wrong.append(f"{target}: import names from the room that defines them")
        elif f"{other}/".startswith(f"{room}/") or f"{room}/".startswith(f"{other}/"):
            continue  # one room, or a room inside the other
        elif LEVELS[other] >= LEVELS[room]:
            wrong.append(target)
    return wrong


def _cycles(imported):
    """Return the sets of modules that reach each other by imports."""
    names = sorted(imported)
    place = {name: i for i, name in enumerate(names)}
    edges = np.zeros((len(names), len(names)), dtype=bool)
    for name, targets in imported.items():
        edges[place[name], [place[t] for t in targets if t in place and t != name]] = True
    _, part = connected_components(edges, connection="strong")
    return [[n for n, p in zip(names, part, strict=True) if p == k] for k in np.flatnonzero(np.bincount(part) > 1)]


def test_every_room_is_drawn_and_every_drawn_room_is_there():
    assert len(LEVELS) == len(ROWS) > 20
    undrawn = [_name(path) for path in FILES if _room(_module(path)) is None]
    assert undrawn == [], "draw the room in CONTRIBUTING.md"
    assert set(LEVELS) == {_room(module) for module in MODULES}


def test_the_drawn_sizes_are_about_right():
    lines = dict.fromkeys(LEVELS, 0)
    for path in FILES:
        lines[_room(_module(path))] += path.read_text(encoding="utf-8").count("\n")
    wrong = {
        f"{room}: {drawn:,} lines": f"{lines[room]:,}"
        for room, _, drawn in ROWS
        if abs(lines[room] - drawn) > max(0.2 * lines[room], 100)
    }
    assert wrong == {}, "correct the table in CONTRIBUTING.md"


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_imports_go_one_way(path):
    assert _wrong_imports(_module(path), path.read_text(encoding="utf-8")) == []


def test_the_places_of_the_walk_are_there():
    """Each `file:function` of CONTRIBUTING.md is a function, class or method in that file."""
    places = re.findall(r"`([\w/]+\.py):([\w.]+)`", DRAWN.read_text(encoding="utf-8"))
    assert len(places) > 10
    gone = []
    for file, name in places:
        path, inside = ROOT / file, []
        for part in name.split("."):
            body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() and not inside else inside
            inside = next((n.body for n in body if getattr(n, "name", None) == part), [])
        if not inside:
            gone.append(f"{file}:{name}")
    assert gone == [], "the walk in CONTRIBUTING.md names places that are gone"


def test_no_modules_import_each_other_in_a_circle():
    trees = {_module(path): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    assert _cycles({name: set(_imports(tree, name, for_types=False)) for name, tree in trees.items()}) == []


def test_imports_for_the_type_checker_are_listed():
    assert {
        _name(p) for p in FILES if "if TYPE_CHECKING:" in p.read_text(encoding="utf-8").replace("_typing.", "")
    } == (FOR_TYPES)


@pytest.mark.parametrize(
    ("room", "source", "wrong"),
    [
        ("kernels.counts", "from evenhand.errors import DataError", False),
        ("kernels.counts", "from evenhand.kernels.shared.seeds import stream", False),
        ("audits.group", "from evenhand.metrics import Metric", False),
        ("audits.group", "from evenhand.audits import options", False),
        ("audits.options", "import_module(f'evenhand.audits.{name}')", False),
        ("report.junit", "name = f'evenhand.{audit}'", False),
        ("cli", "from evenhand import datasets", False),
        ("kernels.counts", "from evenhand.intake import AuditData", True),
        ("kernels.counts", "from evenhand.kernels.flow.ratios import mean_ratio", True),
        ("kernels.shared", "from evenhand.kernels.counts.deals import in_blocks", True),
        ("kernels.flow", "def f():\n    import evenhand.audits.group", True),
        ("audits.tail", "from evenhand.audits.proxy import audit_proxy", True),
        ("report.html", "files('evenhand.report')", False),
        ("results.run", "import_module('evenhand.report')", True),
        ("results.run", "import_module(f'evenhand.{room}.html')", True),
        ("results.run", "import_module(f'evenhand.report.{name}')", True),
        ("results.run", "import_module('.report', 'evenhand')", True),
        ("results.run", "LATER = {'html': 'evenhand.report.html'}", True),
        ("results.run", "CODE = 'import sys\\nfrom evenhand.cli import main'", True),
        ("metrics", "from evenhand.inference.pvalues import TIE", True),
        ("inference", "from evenhand.metrics import Metric", True),
        ("intake.data", "from . import columns", True),
        ("intake.data", "import evenhand", True),
        ("cli", "from evenhand import AuditData", True),
    ],
)
def test_the_import_rule_itself(room, source, wrong):
    assert bool(_wrong_imports(f"evenhand.{room}", source)) is wrong


def test_the_cycle_rule_itself():
    assert _cycles({"a": {"b"}, "b": {"c", "os"}, "c": {"c"}}) == []
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set()}) == [["a", "b", "c"]]
    hidden = ast.parse("if TYPE_CHECKING:\n    import evenhand.run\ndef f():\n    import evenhand.plan")
    assert list(_imports(hidden, for_types=False)) == ["evenhand.plan"]
    assert list(_imports(hidden)) == ["evenhand.run", "evenhand.plan"]


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
            return {name.value for name in node.value.elts if isinstance(name, ast.Constant)}
    return set()


def _public_functions():
    offered = {path.parent: _exported(path) for path in FILES if path.name == "__init__.py"}
    for path in FILES:
        names = offered.get(path.parent, set()) | set(evenhand.__all__)
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
