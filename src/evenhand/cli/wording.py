"""Advice in the words of the command line: messages name options as Python does, and a terminal has others.

A message writes an option as `name=`, which no column can be taken for; `name` alone is a name of the user's.
"""

from __future__ import annotations

import re

from evenhand.audits.options import options_of
from evenhand.audits.registry import AUDITS

# Options of Python that the command line has too, under its own name.
_FLAGS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "outcome", "decision", "score", "model", "trust_pickle", "features", "weight", "weight_kind", "positive",
        "threshold", "continuous", "intersections", "missing", "reference", "metrics", "audits", "compare", "ratio",
        "margin", "alpha", "correction", "seed", "strata", "cluster", "survey_strata", "group_probability",
        "table", "query", "sheet", "memory", "suppress",
    )
} | {
    "groups": "--group", "cuts": "--cut", "period": "--by", "n_resamples": "--resamples", "rows": "--read-rows",
}  # fmt: skip
# `name=`, `name='word'`, `name=True`, `name=0.01` and `name={'key': 'word'}`: a group such as `sex=Female` is none.
_ASSIGNED = re.compile(r"`(\w+)=('[^'`]*'|\"[^\"`]*\"|True|False|[\d.]+|\{[^`]*\})?`(?: \(`--[\w-]+`\))?")


def spoken(text: str) -> str:
    """Name options as the command line does, or where in a plan they stand.

    Parameters
    ----------
    text : str
        A message.

    Returns
    -------
    str

    Examples
    --------
    >>> spoken("Name it with `outcome=`, or say `weight_kind='frequency'`; try `clip=0.01` for `sex=Female`.")
    'Name it with `--outcome`, or say `--weight-kind frequency`; try `clip = 0.01` in a plan for `sex=Female`.'
    """
    return _ASSIGNED.sub(_reworded, text)


def _reworded(match: re.Match[str]) -> str:
    name, value = match[1], match[2] or ""
    word = value.strip("'\"")
    number = re.fullmatch(r"[\d.]+", value) is not None
    if value.startswith("{"):
        inside = re.sub(r"'(\w+)': ", r"\1 = ", value).replace("'", '"')
        return f"`{name} = {inside}` under `[data]` in a plan"
    if name == "positive" and number:
        return f"`--positive {value}`"
    of_audit = name == "rows" and value in ("", "True", "False")  # an option of the projection audit
    if name in _FLAGS and not number and not of_audit:
        return f"`{_FLAGS[name]}`" if value in ("", "True") else f"`{_FLAGS[name]} {word}`"
    if value and any(name in options_of(audit.options) for audit in AUDITS.values()):
        written = value if number else value.lower() if value in ("True", "False") else f'"{word}"'
        return f"`{name} = {written}` in a plan"
    return match[0]
