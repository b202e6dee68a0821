"""The JSON schemas of ``findings.json``, made from the classes of the evidence, and of ``comparison.json``.

``python -m evenhand.report.schema`` writes them into the package.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from evenhand.audits.registry import AUDITS
from evenhand.change.result import COMPARISON_SCHEMA, ChangeVerdict
from evenhand.files import write_atomic
from evenhand.inference.multiplicity import CORRECTIONS
from evenhand.results import SCHEMA, Interval, Verdict
from evenhand.results.evidence import OpenPart, Part, keys_of

_NUMBER = {"$ref": "#/$defs/number"}
_SHARE = {"$ref": "#/$defs/share"}
_AUDIT = {"$ref": "#/$defs/audit"}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_PLAIN: dict[Any, dict[str, Any]] = {
    Any: {},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: _NUMBER,
    str: {"type": "string"},
    Interval: {"$ref": "#/$defs/interval"},
    types.NoneType: {"type": "null"},
}


def findings_schema() -> dict[str, Any]:
    """Return the schema of ``findings.json``.

    Examples
    --------
    >>> findings_schema()["$defs"]["Ends"]["required"]
    ['low', 'high', 'level']
    """
    parts: dict[str, dict[str, Any]] = {}
    blocks = [_block(audit, parts) for audit in AUDITS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"findings.json, {SCHEMA}",
        **_object(
            schema={"const": SCHEMA},
            label={"type": ["string", "null"]},
            model={"anyOf": [_hashed(), {"type": "null"}]},
            input={"type": "array", "items": _hashed()},
            plan=_plan(),
            seed={"type": "integer", "minimum": 0},
            versions={"type": "object", "required": ["evenhand"], "additionalProperties": {"type": "string"}},
            data=_data(),
            findings={"type": "array", "items": {"$ref": "#/$defs/finding"}},
            audits={"type": "array", "items": {"oneOf": blocks}},
        ),
        "$defs": {
            "audit": {"enum": list(AUDITS)},
            "number": {"type": ["number", "null"]},
            "share": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
            "interval": _closed(
                low=_NUMBER,
                high=_NUMBER,
                level={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                kind={"type": "string", "minLength": 1},
            ),
            "finding": _finding(),
            **dict(sorted(parts.items())),
        },
    }


def _hashed() -> dict[str, Any]:
    """Return the schema of a file with its hash, or with the reason why it has none."""
    text = {"type": ["string", "null"]}
    return _closed(
        name={"type": "string"}, sha256={"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"}, reason=text
    )


def _plan() -> dict[str, Any]:
    return _object(
        hash={"type": "string", "pattern": "^[0-9a-f]{64}$"},
        audits={"type": "array", "minItems": 1, "items": _AUDIT},
        alpha={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        correction={"enum": list(CORRECTIONS)},
    )


def _data() -> dict[str, Any]:
    counts = {"type": "object", "additionalProperties": {"type": "integer"}}
    always = _object(
        rows_in={"type": "integer", "minimum": 0},
        rows_used={"type": "integer", "minimum": 0},
        rows_dropped=counts,
        columns={"type": "object", "additionalProperties": {"type": "string"}},
        labels={"type": "object", "additionalProperties": _closed(one=_TEXTS, zero=_TEXTS)},
        groups={"type": "object", "additionalProperties": counts},
        fingerprint={"type": "string"},
        people={"type": "string"},
        notes=_TEXTS,
    )
    suppression = _closed(
        threshold={"type": "integer", "minimum": 2},
        groups={"type": "object", "additionalProperties": _TEXTS},
        cells={"type": "integer", "minimum": 0},
    )
    return {**always, "properties": {**always["properties"], "suppression": suppression}}


def _finding() -> dict[str, Any]:
    return _closed(
        audit=_AUDIT,
        measure={"type": "string", "minLength": 1},
        groups=_TEXTS,
        estimate=_NUMBER,
        interval={"anyOf": [{"$ref": "#/$defs/interval"}, {"type": "null"}]},
        pvalue=_SHARE,
        pvalue_adjusted=_SHARE,
        margin=_NUMBER,
        counts={"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _NUMBER}},
        verdict={"enum": [str(verdict) for verdict in Verdict]},
        reason={"type": "string", "minLength": 1},
    )


def _block(audit: str, parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    kinds = [_schema_of(cls, parts) for cls in AUDITS[audit].kinds_of_evidence]
    return _object(
        audit={"const": audit},
        findings={"type": "integer", "minimum": 0},
        evidence={"type": "array", "items": kinds[0] if len(kinds) == 1 else {"anyOf": kinds}},
        options={"type": "object"},
        notes=_TEXTS,
    )


def _object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _closed(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {**_object(**properties), "additionalProperties": False}


def _schema_of(hint: Any, parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of a type; the parts it is made of are added to `parts`."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, Part):
        if hint.__name__ not in parts:
            parts[hint.__name__] = {}  # a part may hold others of its kind
            parts[hint.__name__] = _part(hint, parts)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, of = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema_of(one, parts) for one in of]}
    if origin is tuple:
        return {"type": "array", "items": _schema_of(of[0], parts)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _schema_of(of[1], parts)}
    raise TypeError(f"no schema is known for {hint}")


def _part(cls: type[Part], parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    required, properties = [], {}
    for key, (_, hint, left_out) in keys_of(cls).items():
        kinds = [h for h in get_args(hint) if h is not types.NoneType] if left_out else [hint]
        schemas = [_schema_of(kind, parts) for kind in kinds]
        properties[key] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        required += [] if left_out else [key]
    more: Any = issubclass(cls, OpenPart)
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": more}


def comparison_schema() -> dict[str, Any]:
    """Return the schema of ``comparison.json``: of two models, or of two finished runs.

    Examples
    --------
    >>> [kind["required"][-3] for kind in comparison_schema()["oneOf"]]
    ['headlines', 'lines']
    """
    text, verdict = {"type": "string"}, {"enum": [str(v) for v in ChangeVerdict]}
    groups = {**_TEXTS, "minItems": 1}
    values = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _NUMBER}}
    numbers = dict.fromkeys(("before", "after"), _NUMBER)
    shares = dict.fromkeys(("pvalue", "pvalue_adjusted"), _SHARE)
    more = dict.fromkeys(("change_pvalue", "alike_pvalue", "not_worse_pvalue"), _SHARE)
    interval = {"anyOf": [{"$ref": "#/$defs/interval"}, {"type": "null"}]}
    change = _closed(
        metric=text, groups=groups, **numbers, estimate=_NUMBER, interval=interval, **shares, **more, margin=_NUMBER,
        values=values, test=text, verdict=verdict, reason={**text, "minLength": 1},
    )  # fmt: skip
    said = dict.fromkeys(("audit", "measure", "state", "verdict_before", "verdict_after"), text)
    line = _closed(**said, groups=_TEXTS, **numbers, **shares, verdict=verdict)
    shared: dict[str, Any] = {
        "schema": {"const": COMPARISON_SCHEMA},
        "names": {**_TEXTS, "minItems": 2, "maxItems": 2},
        "alpha": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    }
    last: dict[str, Any] = {"notes": _TEXTS, "versions": {"type": "object", "additionalProperties": text}}
    models: dict[str, Any] = {
        "settings": {"type": "object"},
        "data": {"type": "object", "required": ["rows", "groups", "fingerprint"]},
        "changes": {"type": "array", "items": change},
        "headlines": {"type": "array", "items": {"type": "object"}},
    }
    runs: dict[str, Any] = {
        "same_people": {"type": "boolean"},
        "plan_changes": _TEXTS,
        "lines": {"type": "array", "items": line},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"comparison.json, {COMPARISON_SCHEMA}",
        "oneOf": [_closed(**shared, **models, **last), _closed(**shared, **runs, **last)],
        "$defs": {key: findings_schema()["$defs"][key] for key in ("number", "share", "interval")},
    }


def schema_texts() -> dict[str, str]:
    """Return the schemas as they are written into the package, by the name of their file."""
    made = {"findings.schema.json": findings_schema(), "comparison.schema.json": comparison_schema()}
    return {name: json.dumps(schema, indent=2) + "\n" for name, schema in made.items()}


if __name__ == "__main__":
    for name, text in schema_texts().items():
        write_atomic(Path(str(files("evenhand").joinpath(name))), text)
