"""What the package shows to the outside, and what importing it costs."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import evenhand
from evenhand import datasets

NAMES = [
    "METRICS",
    "AuditData",
    "AuditResult",
    "AuditRun",
    "BiasAudit",
    "Change",
    "ChangeVerdict",
    "Comparison",
    "Criterion",
    "DataError",
    "Distances",
    "EvenhandError",
    "EvenhandWarning",
    "Finding",
    "Findings",
    "Interval",
    "Metric",
    "MissingDependencyError",
    "MitigationResult",
    "Plan",
    "PowerResult",
    "UsageError",
    "Verdict",
    "Watch",
    "audit",
    "audit_arrays",
    "audit_group",
    "audit_individual",
    "audit_projection",
    "audit_proxy",
    "audit_scan",
    "audit_tail",
    "bias_audit",
    "cell_metric",
    "compare",
    "datasets",
    "mitigate",
    "mitigation",
    "power",
    "read",
    "row_metric",
    "similarity",
]
DATASETS = [
    "DatasetRow",
    "add",
    "adult",
    "adult_table",
    "compas",
    "export",
    "known",
    "load",
    "planted",
    "planted_values",
    "table",
]
OPTIONAL = [
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "sklearn",
    "torch",
    "onnxruntime",
    "skops",
    "matplotlib",
    "openpyxl",
]
SLOW = ["duckdb", "narwhals", "scipy.stats", "scipy.optimize", "click", "evenhand.report"]


def test_public_names():
    assert sorted(evenhand.__all__) == sorted(NAMES)
    assert sorted(datasets.__all__) == sorted(DATASETS)


def test_every_public_name_exists_and_nothing_else_is_public():
    for module in (evenhand, datasets):
        assert all(hasattr(module, name) for name in module.__all__)
        loose = {
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and name not in module.__all__ and not inspect.ismodule(value)
        }
        assert loose <= {"annotations"}


def test_import_loads_nothing_optional_and_nothing_slow():
    code = "import sys, evenhand; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded
    assert sorted(set(OPTIONAL + SLOW) & set(loaded)) == []


def _functions():
    for module in (evenhand, datasets):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield pytest.param(value, id=name)


@pytest.mark.parametrize("function", list(_functions()))
def test_public_functions_have_an_example(function):
    text = inspect.getdoc(function)
    assert "Examples\n--------\n>>> " in text
    assert "Returns\n-------" in text


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isclass(getattr(evenhand, n))])
def test_public_classes_and_their_methods_are_explained(name):
    cls = getattr(evenhand, name)
    assert inspect.getdoc(cls)
    for key, value in vars(cls).items():
        if not key.startswith("_") and (inspect.isfunction(value) or isinstance(value, classmethod | property)):
            assert inspect.getdoc(value), f"{name}.{key}"
