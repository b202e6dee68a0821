"""Which of a model's two classes is decision 1: its classes matched to the labels of the data, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import UsageError
from evenhand.intake.columns import text_of
from evenhand.intake.labels import label_token, usual_positive
from evenhand.intake.parts import Labels


@dataclass(frozen=True, slots=True, eq=False)
class Oriented:
    """A classifier's methods, turned towards the class that is decision 1."""

    estimator: Any
    classes: Sequence[Any]
    one: int  # the place of decision 1 among the two classes

    def chosen(self, given: Any) -> Any:
        """Say where its own decision is 1."""
        return np.asarray(self.estimator.predict(given)) == self.classes[self.one]

    def probability(self, given: Any) -> Any:
        """Return the probability of decision 1."""
        out = np.asarray(self.estimator.predict_proba(given), dtype=float)
        if out.ndim == 2 and out.shape[1] == 2:
            return out[:, self.one]
        return out if self.one == 1 else 1 - out

    def margin(self, given: Any) -> Any:
        """Return the decision function, above 0 on the side of decision 1."""
        return (1.0 if self.one == 1 else -1.0) * np.asarray(self.estimator.decision_function(given), dtype=float)


def class_of_one(
    classes: Sequence[Any], labels: Mapping[str, Labels] | None = None, *, name: str, positive: Any = None
) -> tuple[int, str]:
    """Find the class that is decision 1.

    A class that was named is taken. Otherwise classes are compared with what counts as 1 and as 0 in the data's
    decisions and outcomes, as intake compares labels. Classes that are numbers mean what they say: 1 is decision 1.
    Beside data without words, words are read as intake reads them. Everything else is refused.

    Parameters
    ----------
    classes : sequence
        The model's two classes.
    labels : mapping of str to Labels, optional
        From `AuditData`.
    name : str
        The model's name, for messages.
    positive : object, optional
        The class that is decision 1, as the user named it.

    Returns
    -------
    place : int
        0 or 1.
    note : str
        What was taken; empty where classes and labels are plain numbers.

    Raises
    ------
    UsageError
        When it cannot be known, with how to name it.

    Examples
    --------
    >>> labels = {"decision": Labels(one=("approved",), zero=("denied",))}
    >>> class_of_one(["approved", "denied"], labels, name="M")
    (0, 'Class `approved` of the model `M` is decision 1, as in the decision column.')
    >>> class_of_one([0, 1], name="M")
    (1, '')
    """
    labels = labels or {}
    tokens, shown = [label_token(c) for c in classes], [text_of(c) for c in classes]
    wanted = positive if positive is not None else labels["model"].one[0] if "model" in labels else None
    if wanted is not None:
        return _named(tokens, shown, wanted, name)
    matched = {role: _matched(tokens, labels[role]) for role in ("decision", "outcome") if role in labels}
    places = {role: place for role, place in matched.items() if place is not None}
    if len(set(places.values())) == 2:
        one = shown[places["decision"]]
        raise UsageError(
            f"Class `{one}` of the model `{name}` is decision 1 and outcome 0: outcome and decision count different "
            "labels as 1. Name the labels that count as 1 with `positive=`, so that both mean the same."
        )
    plain = set(tokens) in ({0.0, 1.0}, {-1.0, 1.0})
    for role, place in places.items():
        return (
            place,
            "" if plain else f"Class `{shown[place]}` of the model `{name}` is decision 1, as in the {role} column.",
        )
    words = {
        role: one for role, one in labels.items() if any(isinstance(label_token(v), str) for v in one.one + one.zero)
    }
    if plain:
        said = next((f"`{one.one[0]}`" for one in words.values() if one.one), "")
        note = f"Class 1 of the model `{name}` is taken to be {said}, which counts as 1 in the data." if said else ""
        return tokens.index(1.0), note
    usual = None if words else usual_positive(shown)
    if usual is not None:
        return usual, f"Class `{shown[usual]}` of the model `{name}` is taken to be decision 1."
    raise UsageError(_refusal(shown, labels, name, classes))


def _named(tokens: list[str | float], shown: list[str], wanted: Any, name: str) -> tuple[int, str]:
    token = label_token(wanted)
    if tokens.count(token) != 1:
        raise UsageError(
            f"`positive=` names the class `{wanted}` of the model `{name}`, whose classes are "
            f"{' and '.join(f'`{s}`' for s in shown)}. Name one of them."
        )
    place = tokens.index(token)
    return place, f"Class `{shown[place]}` of the model `{name}` is decision 1, as named with `positive=`."


def _matched(tokens: list[str | float], labels: Labels) -> int | None:
    one, zero = ({label_token(v) for v in side} for side in (labels.one, labels.zero))
    sides = [1 if t in one else 0 if t in zero else None for t in tokens]
    if set(sides) == {0, 1}:
        return sides.index(1)
    # In a constant column one of the labels does not occur.
    if set(sides) == {1, None} and not zero:
        return sides.index(1)
    if set(sides) == {0, None} and not one:
        return 1 - sides.index(0)
    return None


def _refusal(shown: list[str], labels: Mapping[str, Labels], name: str, classes: Sequence[Any]) -> str:
    held = [
        f"{role}: " + ", ".join([*(f"`{v}` is 1" for v in one.one[:3]), *(f"`{v}` is 0" for v in one.zero[:3])])
        for role, one in labels.items()
    ]
    data = f" and these do not match the data ({'; '.join(held)})," if held else ""
    asked = " or ".join(f"`positive={{'model': {_literal(c)}}}`" for c in classes)
    return (
        f"The model `{name}` has the classes {' and '.join(f'`{s}`' for s in shown)},{data} so which of them is "
        f"decision 1 is not known. Name it when the data are read: {asked}."
    )


def _literal(value: Any) -> str:
    return repr(value.item() if hasattr(value, "item") else value)
