"""Groups that are probably not what was meant: one label written in several ways, numbers left uncut."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from evenhand.intake.wording import listing

# More groups than this are rarely what was meant, and each comparison takes its share of the error budget.
MANY_GROUPS = 20


def group_notes(name: str, labels: Sequence[str], *, numeric: bool) -> list[str]:
    """Say what is odd about the labels of a group column.

    Parameters
    ----------
    name : str
        The column.
    labels : sequence of str
        The groups that are compared.
    numeric : bool
        Whether the column holds numbers that were not cut.

    Returns
    -------
    list of str
        Sentences; empty when nothing is odd.

    Examples
    --------
    >>> group_notes("sex", ["F", "F ", "M", "f"], numeric=False)[0]
    'Column `sex` has groups that differ only in case or blanks: `F`, `F `, `f`. They are compared as different groups.'
    """
    notes = []
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(_core(label), []).append(label)
    same = [label for written in alike.values() if len(written) > 1 for label in written]
    if same:
        notes.append(
            f"Column `{name}` has groups that differ only in case or blanks: {listing(same)}. "
            f"They are compared as different groups."
        )
    if len(labels) > MANY_GROUPS:
        advice = (
            "Cut it into a few groups with `cuts=`, or name it in `continuous=`."
            if numeric
            else "Join groups that belong together before the audit."
        )
        notes.append(
            f"Column `{name}` has {len(labels):,} groups, and every comparison takes its share of the error rate, "
            f"so that small differences are hard to show. {advice}"
        )
    return notes


def _core(label: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", label).casefold().split())
