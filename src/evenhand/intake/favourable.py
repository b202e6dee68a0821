"""Which of two labels people would rather have: proposed with the reason, never taken in silence."""

from __future__ import annotations

import numpy as np

from evenhand.intake.columns import Column
from evenhand.intake.labels import usual_positive
from evenhand.intake.role_words import good_label, is_bad

# Standard deviations between the mean scores of two labels from which the score is taken to speak for one of them.
_APART = 0.2


def favourable_of(name: str, held: Column, score: Column | None, score_name: str | None) -> tuple[str | None, str]:
    """Propose the label that counts as 1 in an outcome or a decision.

    Parameters
    ----------
    name : str
        The column's name.
    held : Column
        Its values.
    score, score_name : Column and str, optional
        The score of the same rows: what counts as 1 must be what a high score stands for.

    Returns
    -------
    label : str or None
        None where a person must say it.
    reason : str
        A sentence.

    Examples
    --------
    >>> from evenhand.intake.columns import from_values
    >>> favourable_of("default", from_values([0, 1, 1, 0], "default"), None, None)
    ('0', '`1` usually means yes, and the name `default` says that yes is bad for the person.')
    """
    codes, labels = held.texts()
    if len(labels) != 2:
        return (
            None,
            f"It has {len(labels)} labels; say which one is the favourable one. The others then count together.",
        )
    label, reason = _by_words(name, labels)
    higher = None if score is None else _higher(codes, score)
    if higher is None or label == labels[higher]:
        return label, reason
    said = f"People with `{labels[higher]}` have the higher `{score_name}`, so it has to count as 1 beside this score."
    if label is None:
        return labels[higher], said
    return labels[
        higher
    ], f"{said} It seems not to be what people wish for: read “favourable” as “what the score predicts”."


def _by_words(name: str, labels: tuple[str, ...]) -> tuple[str | None, str]:
    """Propose a label by what it and the column are called."""
    usual = usual_positive(labels)
    if usual is not None:
        yes, no = labels[usual], labels[1 - usual]
        if is_bad(name):
            return no, f"`{yes}` usually means yes, and the name `{name}` says that yes is bad for the person."
        return yes, f"Of `{yes}` and `{no}`, `{yes}` is usually the favourable one."
    good = good_label(labels)
    if good is not None:
        other = labels[1 - labels.index(good)]
        return good, f"Of `{good}` and `{other}`, the words say that `{good}` is the better one for a person."
    return None, f"The words `{labels[0]}` and `{labels[1]}` do not say which one people would rather have; say it."


def _higher(codes: np.ndarray, score: Column) -> int | None:
    """Return which of two labels has clearly higher scores, or None."""
    if score.kind != "number" or len(score) != len(codes):
        return None
    sides = [score.values[(codes == k) & np.isfinite(score.values)] for k in (0, 1)]
    if min(side.size for side in sides) < 2:
        return None
    spread = float(np.sqrt((sides[0].var() + sides[1].var()) / 2))
    apart = float(sides[1].mean() - sides[0].mean())
    if spread == 0 or abs(apart) < _APART * spread:
        return None
    return int(apart > 0)
