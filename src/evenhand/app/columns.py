"""What the page about columns shows: each column with its values, what it seems to be, and what was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand.app.answers import MARGINS, MISSING, REFERENCES, ROLES, WEIGHTS, labels_of, margin_of
from evenhand.app.drafts import Draft
from evenhand.app.uploads import MODELS, Form
from evenhand.audits.registry import AUDITS
from evenhand.intake.roles import ProposedColumn
from evenhand.sizing import margin_in_people

_FEW = 5  # numbers that are groups as they are
_USED = ("decision", "outcome", "score", "group", "weight", "cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One column on the page."""

    place: int
    column: ProposedColumn
    labels: tuple[str, ...]
    role: str  # as chosen, or as proposed
    favourable: str  # the place of the favourable label, empty where nothing is chosen or proposed
    reference: str  # the place of the label that others are compared with, empty for what is chosen for all
    cuts: str | None  # where a number is cut into groups; None for what is no number with many values

    @property
    def used(self) -> bool:
        """Whether it is shown among the columns that matter."""
        return self.role in _USED or self.column.role in _USED


def columns_content(draft: Draft) -> dict[str, Any]:
    """Return what the template needs, with the answers that were given before in place of the proposals."""
    form, begun = draft.answers, bool(draft.answers.fields)
    columns = [_shown(form, begun, place, column) for place, column in enumerate(draft.proposal.columns)]
    weighted = any(column.role == "weight" for column in draft.proposal.columns)
    return {
        "used": [column for column in columns if column.used],
        "others": [column for column in columns if not column.used],
        "roles": ROLES,
        "margins": {word: _margin_words(word) for word in MARGINS},
        "margin": form.text("margin") or "none",
        "audits": AUDITS,
        "ticked": form.fields.get("audit", []) if begun else list(AUDITS),
        "references": REFERENCES,
        "missing": MISSING,
        "weights": WEIGHTS,
        "weight_kind": form.text("weight_kind") or ("sampling" if weighted else "auto"),
        "said": form.text,
        "models": ",".join(MODELS),
    }


def _margin_words(word: str) -> str:
    return "Another number of points." if word == "own" else margin_in_people(margin_of(word))


def _shown(form: Form, begun: bool, place: int, column: ProposedColumn) -> Shown:
    labels = labels_of(column)
    label, cuts = form.text(f"favourable-{place}"), form.text(f"cuts-{place}")
    if not begun:
        label = str(labels.index(column.favourable)) if column.favourable in labels else ""
        cuts = " ".join(f"{cut:g}" for cut in column.cuts)
    many = "number" in column.kind and column.distinct > _FEW
    return Shown(
        place=place,
        column=column,
        labels=labels,
        role=form.text(f"role-{place}") or column.role,
        favourable=label,
        reference=form.text(f"reference-{place}"),
        cuts=cuts if many or column.cuts else None,
    )
