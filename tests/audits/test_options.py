"""Options are checked against the signatures and docstrings of the audits themselves."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from evenhand.audits.options import AUDITS, SHARED, audit_function, check_audit, check_call, takes
from evenhand.errors import UsageError


@pytest.mark.parametrize("name", AUDITS)
def test_every_default_passes_and_every_option_is_described(name):
    function = audit_function(name)
    defaults = {k: p.default for k, p in inspect.signature(function).parameters.items() if k not in SHARED}
    check_audit(name, defaults)
    described = set(re.findall(r"\w+", " ".join(re.findall(r"^([\w, ]+?)(?: :.*)?$", function.__doc__, re.M))))
    assert set(defaults) <= described | set(re.findall(r"\w+", function.__doc__))


@pytest.mark.parametrize("name", AUDITS)
def test_every_word_of_the_documentation_passes_and_others_do_not(name):
    text = inspect.getdoc(audit_function(name))
    listed = re.findall(r"^(\w+) : \{([^}]+)\}", text, flags=re.M)
    assert listed
    for option, words in listed:
        if option in SHARED:
            continue
        for word in re.findall(r'"([^"]+)"', words):
            check_audit(name, {option: word})
        with pytest.raises(UsageError, match=f"`{name}.{option}` is `nonsense`; allowed"):
            check_audit(name, {option: "nonsense"})


def test_kinds_of_values():
    def f(a: int, b: float | None, c: list[str], d: dict[str, float], e: tuple[float, float] | str, g: bool) -> None:
        """Do nothing.

        Parameters
        ----------
        a : int
        b : float, optional
        """

    good = {"a": 1, "b": 2, "c": ["x"], "d": {"x": 1}, "e": [0, 1], "g": True}
    check_call(f, good, "It", "")
    check_call(f, {"b": None, "e": "auto", "c": []}, "It", "")
    for key, wrong in (
        ("a", 1.5), ("a", True), ("a", "1"), ("b", "1"), ("b", False), ("c", "x"), ("c", [1]), ("d", ["x"]),
        ("d", {"x": "y"}), ("e", 1), ("e", ["x", "y"]), ("g", 1), ("a", None),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"`at.{key}` is "):
            check_call(f, {key: wrong}, "It", "at.")
    with pytest.raises(UsageError, match="It has no option `bb`"):
        check_call(f, {"bb": 1}, "It", "at.")


def test_objects_pass_where_they_are_allowed():
    check_audit("individual", {"similarity": np.eye(3)})
    check_audit("tail", {"flip": lambda columns, label: columns})
    assert takes("proxy", "reference")
    assert not takes("individual", "reference")


def test_audits_with_a_margin_by_default_take_none() -> None:
    for name in ("proxy", "tail"):
        check_audit(name, {"margin": 0})
    with pytest.raises(UsageError, match="is not understood"):
        check_audit("group", {"margin": 0})
