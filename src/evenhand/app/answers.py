"""From the form about columns to a plan: what each column is, what counts as favourable, which audits run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.app.uploads import Form
from evenhand.audits.registry import AUDITS
from evenhand.errors import UsageError, near_matches
from evenhand.intake.roles import Proposal, ProposedColumn
from evenhand.plan import Plan

# What a column may be, with the words for it; those of `_SINGLE` are of one column each.
ROLES = {
    "decision": "the decision (what was decided)",
    "outcome": "the outcome (what really happened)",
    "score": "a score or probability of the model",
    "weight": "a weight (how many people a row stands for)",
    "group": "a group to compare (such as sex or age band)",
    "cluster": "the person or household, where one has several rows",
    "feature": "an input of the model",
    "identifier": "an identifier (not used)",
    "none": "not used",
}
_SINGLE = ("decision", "outcome", "score", "weight", "cluster")
# Margins that are offered.
MARGINS = ("none", "0.02", "0.05", "0.1", "four-fifths", "own")
REFERENCES = {
    "": "the largest group",
    "highest": "the group with the highest rate",
    "rest": "everybody else",
    "overall": "everybody",
}
MISSING = {
    "drop": "leave the row out and count it",
    "group": "treat the empty label as a group of its own",
    "unknown": "keep the row as a person whose group is not known",
    "error": "stop, because no label may be missing",
}
WEIGHTS = {
    "auto": "decide by the numbers",
    "frequency": "each row stands for that many identical people",
    "sampling": "weights of a survey",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What is to be run."""

    plan: Plan
    audits: tuple[str, ...]
    title: str


def chosen(form: Form, proposal: Proposal, *, file: str, model: str | None) -> Chosen:
    """Read a form that was filled in.

    Parameters
    ----------
    form : Form
        What was sent.
    proposal : Proposal
        The columns that the form was about.
    file : str
        What the file with the rows is called.
    model : str or None
        What the model's file is called, if there is one.

    Returns
    -------
    Chosen

    Raises
    ------
    UsageError
        One sentence on what does not fit together.
    """
    roles = _roles(form, proposal)
    data: dict[str, Any] = {role: roles[role][0] for role in _SINGLE if roles[role]}
    data["groups"] = roles["group"]
    features = _features(form, proposal) or roles["feature"]
    if features:
        data["features"] = features
    cuts = _cuts(form, proposal, roles["group"])
    if cuts:
        data["cuts"] = cuts
    positive = _favourable(form, proposal, data)
    if positive:
        data["positive"] = positive
    if model is not None:
        if not features:
            raise UsageError("A model file is given, but no column is marked as an input of the model.")
        data["model"] = model
    _check_roles(data, model)
    if form.text("threshold"):
        data["threshold"] = _number(form.text("threshold"), "The score from which on the decision is positive")
    missing = _one_of(form.text("missing") or "drop", MISSING, "What happens to rows without a group")
    kind = _one_of(form.text("weight_kind") or "auto", WEIGHTS, "What the weights mean")
    data |= {"missing": missing} if missing != "drop" else {}
    data |= {"weight_kind": kind} if kind != "auto" else {}
    data |= {"intersections": True} if form.text("intersections") and len(roles["group"]) > 1 else {}
    audits = tuple(name for name in AUDITS if name in form.fields.get("audit", ()))
    if not audits:
        raise UsageError("No audit is ticked. Tick at least one.")
    if not form.text("confirmed"):
        raise UsageError(
            "Please confirm that the columns are right. What the page proposes is a guess from names and values."
        )
    margin = _margin(form)
    plan = Plan(
        audits=audits,
        alpha=_number(form.text("alpha") or "5", "The error rate in percent") / 100,
        seed=_whole(form.text("seed") or "0", "The seed"),
        reference=_reference(form, proposal, roles["group"]),
        data=data,
        group={} if margin is None else {"margin": margin},
    )
    return Chosen(plan=plan, audits=audits, title=form.text("title")[:200] or f"Audit of {file}")


def _roles(form: Form, proposal: Proposal) -> dict[str, list[str]]:
    """Return the columns by role; each role of one column has at most one."""
    roles: dict[str, list[str]] = {role: [] for role in ROLES}
    for place, column in enumerate(proposal.columns):
        role = _one_of(form.text(f"role-{place}") or "none", ROLES, f"What the column `{column.name}` is")
        roles[role].append(column.name)
    for role in _SINGLE:
        if len(roles[role]) > 1:
            named = " and ".join(f"`{name}`" for name in roles[role])
            raise UsageError(f"{named} are both marked as {ROLES[role]}. Only one column can be that.")
    return roles


def _check_roles(data: dict[str, Any], model: str | None) -> None:
    """Say what every audit needs and is not there."""
    if not data["groups"]:
        raise UsageError("No column is marked as a group to compare. Mark at least one, such as sex or age band.")
    if model is None and not any(role in data for role in ("decision", "outcome", "score")):
        raise UsageError("No column is marked as the decision, the outcome or a score. Mark at least one of them.")


def _favourable(form: Form, proposal: Proposal, data: dict[str, Any]) -> dict[str, str]:
    """Return the favourable label of the outcome and of the decision, where their columns have two."""
    labels = {}
    for place, column in enumerate(proposal.columns):
        for role in ("outcome", "decision"):
            if data.get(role) != column.name or not labels_of(column):
                continue
            answer = form.text(f"favourable-{place}")
            if not answer.isdecimal() or int(answer) >= len(labels_of(column)):
                raise UsageError(f"Say which value of `{column.name}` is the favourable one.")
            labels[role] = labels_of(column)[int(answer)]
    return labels


def labels_of(column: ProposedColumn) -> tuple[str, ...]:
    """Return the labels of a column among which one can be chosen, nothing where they are too many."""
    few = column.distinct == len(column.values) and column.distinct > 1
    return column.labels or (tuple(value for value, _ in column.values) if few else ())


def _reference(form: Form, proposal: Proposal, groups: Sequence[str]) -> dict[str, str] | str | None:
    """Return with whom groups are compared: a label of its own for a column, or what is chosen for all."""
    word = _one_of(form.text("reference"), REFERENCES, "What groups are compared with")
    chosen = {}
    for place, column in enumerate(proposal.columns):
        answer, labels = form.text(f"reference-{place}"), labels_of(column)
        if column.name in groups and answer.isdecimal() and int(answer) < len(labels):
            chosen[column.name] = labels[int(answer)]
    if not chosen:
        return word or None
    return {**(dict.fromkeys(groups, word) if word else {}), **chosen}


def _cuts(form: Form, proposal: Proposal, groups: Sequence[str]) -> dict[str, list[float]]:
    """Return where groups that are numbers are cut."""
    cuts = {}
    for place, column in enumerate(proposal.columns):
        points = form.text(f"cuts-{place}").replace(";", " ").split()
        if column.name in groups and points:
            cuts[column.name] = sorted(_number(point, f"A cut of `{column.name}`") for point in points)
    return cuts


def _features(form: Form, proposal: Proposal) -> list[str]:
    """Return the model's columns in its order, one per line, where they were written down."""
    names = [column.name for column in proposal.columns]
    asked = [line.strip() for line in form.text("features").splitlines() if line.strip()]
    for name in asked:
        if name not in names:
            raise UsageError(f"Input of the model `{name}` is no column of the file.{near_matches(name, names)}")
    return asked


def margin_of(word: str) -> float | str | None:
    """Return a margin that is offered as a plan takes it."""
    return None if word == "none" else word if word == "four-fifths" else float(word)


def _margin(form: Form) -> float | str | None:
    word = _one_of(form.text("margin") or "none", MARGINS, "The margin")
    if word == "own":
        points = _number(form.text("own_margin"), "Your own margin in points")
        if not 0 < points < 100:
            raise UsageError(f"Your own margin is {points:g} points; it must lie between 0 and 100.")
        return points / 100
    return margin_of(word)


def _one_of(value: str, allowed: Sequence[str] | dict[str, str], what: str) -> str:
    if value not in allowed:
        raise UsageError(f"{what} is `{value}`; allowed are {', '.join(f'`{word}`' for word in allowed)}.")
    return value


def _number(text: str, what: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise UsageError(f"{what} is `{text}`; write a number such as 5.") from None


def _whole(text: str, what: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{what} is `{text}`; write a whole number such as 0.")
    return int(text)
