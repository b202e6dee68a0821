"""What each audit's findings test, and in which order audits are tested on one error budget.

The entry audits ask questions of their own and begin with a share of the error. The explaining audits ask where a
difference between groups comes from, which is a question only once a difference is shown: they begin with none and
open as findings of the group audit are rejected, so that their many tests do not tax the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

# Shares of the error that entry audits begin with, before they are divided by those of the run.
ENTRY = {"group": 2.0, "individual": 1.0, "tail": 1.0}
EXPLAINING = ("projection", "proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """The null hypothesis of one kind of finding.

    Parameters
    ----------
    audit, measure : str
        Which audit, and which of its measures.
    null : str
        What is assumed until the data speak against it, without a margin.
    margin : str
        The same with a margin; empty where there is none.
    default : str
        The margin by default.
    role : {"entry", "explains"}
        Whether it begins with a share of the error.
    """

    audit: str
    measure: str
    null: str
    margin: str
    default: str
    role: str


HYPOTHESES = (
    Hypothesis(
        audit="group",
        measure="difference or ratio of two groups",
        null="Both groups have the same value of the metric, whatever else differs between them.",
        margin="The difference (or the ratio) lies inside the margin.",
        default="none",
        role="entry",
    ),
    Hypothesis(
        audit="group",
        measure="global",
        null="All groups of the attribute have the same value of the metric.",
        margin="No two groups differ by more than the margin.",
        default="none",
        role="entry",
    ),
    Hypothesis(
        audit="group",
        measure="correlation",
        null="The metric's value per row is not correlated with the attribute.",
        margin="",
        default="none",
        role="entry",
    ),
    Hypothesis(
        audit="projection",
        measure="every criterion",
        null="The rates that the criterion names are equal in all groups: no one needs to change.",
        margin="",
        default="none",
        role="explains",
    ),
    Hypothesis(
        audit="individual",
        measure="loss_ratio, error_ratio",
        null="For a comparable person the model's loss (or error rate) is no larger than for the person.",
        margin="It is no larger than the tolerated multiple.",
        default="1.25 times",
        role="entry",
    ),
    Hypothesis(
        audit="proxy",
        measure="the gap",
        null="Group and reference have the same value of the measure.",
        margin="",
        default="none",
        role="explains",
    ),
    Hypothesis(
        audit="proxy",
        measure="a feature",
        null="There is no gap, or no part of it goes through the feature.",
        margin="There is no gap, or at most the margin of it goes through the feature.",
        default="0.01 of the gap's scale",
        role="explains",
    ),
    Hypothesis(
        audit="tail",
        measure="ecd",
        null="The worst change of score at the horizon is the same in both groups.",
        margin="The two worst changes differ by no more than the margin.",
        default="0.01 of score",
        role="entry",
    ),
    Hypothesis(
        audit="tail",
        measure="return_level",
        null="The worst change of score at the horizon is not above 0.",
        margin="It is not above the margin.",
        default="0.01 of score",
        role="entry",
    ),
)


def hierarchy(audits: Collection[str]) -> tuple[dict[str, float], dict[str, Sequence[str]]]:
    """Return which audits begin with which share of the error, and which of them opens which others.

    Parameters
    ----------
    audits : collection of str
        Those with something to test. Without a group audit the first that explains takes its place: it, too, tests
        a difference between groups. An audit of another name begins with a share.

    Returns
    -------
    shares : dict of str to float
        They sum to 1.
    opens : dict of str to sequence of str

    Examples
    --------
    >>> hierarchy(["group", "individual", "tail", "proxy"])
    ({'group': 0.5, 'individual': 0.25, 'tail': 0.25}, {'group': ('proxy',)})
    >>> hierarchy(["proxy"])
    ({'proxy': 1.0}, {})
    """
    explaining = [name for name in EXPLAINING if name in audits]
    first = "group" if "group" in audits else explaining.pop(0) if explaining else ""
    begins = {name: ENTRY.get(name, 1.0) for name in dict.fromkeys(audits) if name not in explaining}
    if first:
        begins[first] = ENTRY["group"]
    total = sum(begins.values())
    return {name: share / total for name, share in begins.items()}, {first: tuple(explaining)} if explaining else {}


def even_shares(audits: Collection[str]) -> dict[str, float]:
    """Return shares for tests that wait for no other, such as those of equivalence: the group audit's counts twice.

    Parameters
    ----------
    audits : collection of str
        Those with something to test.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> even_shares(["group", "proxy"])
    {'group': 2.0, 'proxy': 1.0}
    """
    return {name: ENTRY.get(name, 1.0) for name in audits}
