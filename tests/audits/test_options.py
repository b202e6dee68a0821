"""An option is declared once: signature, documentation and checks follow from the declaration."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Literal

import numpy as np
import pytest

import evenhand as eh
from evenhand.audits.options import SHARED, AuditOptions, ask, check_names, options_of, record
from evenhand.audits.registry import AUDITS
from evenhand.errors import UsageError

every_audit = pytest.mark.parametrize("name", AUDITS)


def own(name):
    return {k: v for k, v in options_of(AUDITS[name].options).items() if k not in SHARED}


@every_audit
def test_the_signature_is_the_declaration(name):
    function = getattr(eh, f"audit_{name}")
    parameters = inspect.signature(function).parameters
    assert list(parameters) == ["data", *options_of(AUDITS[name].options)]
    for one in fields(AUDITS[name].options):
        assert parameters[one.name].default is one.default
        assert parameters[one.name].annotation == one.type
    assert function.__name__ == f"audit_{name}"


@every_audit
def test_every_default_passes_and_every_option_is_described(name):
    text = inspect.getdoc(getattr(eh, f"audit_{name}"))
    for key, one in own(name).items():
        one.check(one.default)
        assert f"\n{key} : {one.said}\n    {one.rules.help.split()[0]}" in text
        assert one.rules.help.endswith(".")


@every_audit
def test_every_word_passes_and_others_do_not(name):
    for key, one in own(name).items():
        for word in one.rules.words:
            ask(AUDITS[name].options, {key: word})
        if one.rules.words:
            with pytest.raises(UsageError, match=f"`{name}.{key}` is `nonsense`; allowed"):
                ask(AUDITS[name].options, {key: "nonsense"}, f"{name}.")


@every_audit
def test_a_seed_has_one_default(name):
    assert options_of(AUDITS[name].options)["rng"].default == 0


def test_kinds_of_values():
    def f(
        a: int, b: float | None, c: list[str], d: dict[str, float], e: tuple[float, float] | str, g: bool,
        h: Literal["x", "y"],
    ) -> None:  # fmt: skip
        pass

    known = options_of(f)
    good = {"a": 1, "b": 2, "c": ["x"], "d": {"x": 1}, "e": [0, 1], "g": True, "h": "y"}
    for values in (good, {"b": None, "e": "auto", "c": []}):
        for key, value in values.items():
            known[key].check(value)
    for key, wrong in (
        ("a", 1.5), ("a", True), ("a", "1"), ("b", "1"), ("b", False), ("c", "x"), ("c", [1]), ("d", ["x"]),
        ("d", {"x": "y"}), ("e", 1), ("e", ["x", "y"]), ("g", 1), ("a", None), ("h", "z"), ("h", 1),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"`at.{key}` is "):
            known[key].check(wrong, "at.")
    with pytest.raises(UsageError, match="It has no option `bb`"):
        check_names(known, {"bb": 1}, "It")


def test_an_unknown_option_is_refused_with_near_matches():
    with pytest.raises(UsageError, match=r"audit `group` has no option `metric`\. Did you mean `metrics`"):
        eh.audit_group(eh.datasets.planted(rows=40, rng=0), metric="fnr")
    with pytest.raises(TypeError, match="model"):
        eh.audit_tail(eh.datasets.planted(rows=40, rng=0))


def test_objects_pass_where_they_are_allowed():
    ask(AUDITS["individual"].options, {"similarity": np.eye(3)})
    ask(AUDITS["tail"].options, {"flip": lambda columns, label: columns})
    assert ask(AUDITS["group"].options, {"n_resamples": np.int64(199)}).n_resamples == 199


def test_audits_with_a_margin_by_default_take_none() -> None:
    for name in ("proxy", "tail"):
        ask(AUDITS[name].options, {"margin": 0})
    with pytest.raises(UsageError, match="is not understood"):
        ask(AUDITS["group"].options, {"margin": 0})


def test_what_is_recorded_is_plain_and_leaves_the_machinery_out():
    assert record(AuditOptions(rng=3, progress=print), seed=3) == {"alpha": 0.05, "correction": "holm", "seed": 3}
