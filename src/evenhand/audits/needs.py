"""What an audit needs of the data and the model, as far as can be seen without running it.

Each need is a function that says what is missing, as the end of a sentence that begins with the audit, or nothing.
The registry lists the needs of each audit in the order in which they are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.errors import DataError
from evenhand.intake import AuditData


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Given:
    """What an audit would get: the data, the model or None, and its options in a plan."""

    data: AuditData
    model: Any
    options: Mapping[str, Any]

    @property
    def features(self) -> Collection[str]:
        """The model's columns, in memory or where the rows are."""
        return self.data.features if self.data.batches is None else self.data.batches.features

    @property
    def predicted(self) -> bool:
        """Whether the data have decisions or scores."""
        return self.data.decision is not None or self.data.score is not None


Need = Callable[[Given], str]


def model(given: Given) -> str:
    """Ask for a model."""
    return "needs a model and none was given" if given.model is None else ""


def distances(given: Given) -> str:
    """Ask for a model or for distances to its boundary."""
    if given.model is None and given.options.get("distance") is None:
        return "needs distances to the decision boundary, from a model or as `distance`"
    return ""


def rows(given: Given) -> str:
    """Ask for rows, in memory or batch by batch."""
    if given.data.moments is not None and given.data.batches is None:
        return "needs rows, and these stayed on their engine as counts; read with `rows='keep'` or `rows='batches'`"
    return ""


def groups(given: Given) -> str:
    """Ask for a column of groups."""
    return "" if given.data.attributes else "needs a group column and none was given"


def several_attributes(given: Given) -> str:
    """Ask for at least two attributes to combine."""
    named = given.options.get("attributes")
    own = [a.name for a in given.data.attributes if " × " not in a.name] if named is None else named
    return "" if len(own) > 1 and not isinstance(own, str) else "needs at least two group columns to combine"


def groups_or_numbers(given: Given) -> str:
    """Ask for a column of groups, a continuous attribute or probabilities of groups."""
    return "" if given.data.continuous or given.data.probabilities else groups(given)


def independent_people(given: Given) -> str:
    """Refuse rows that belong together, strata and people of unknown group, which only the group audit takes."""
    data = given.data
    if data.cluster is not None or data.survey_strata is not None:
        return "takes each row for one person sampled alike, and `cluster=` or `survey_strata=` says otherwise"
    if data.strata is not None:
        return "does not compare within strata"
    unknown = [attribute.name for attribute in data.attributes if attribute.unknown is not None]
    return f"needs the group of every person, and `{unknown[0]}` is unknown for some" if unknown else ""


def check_independent(data: AuditData, asking: str) -> None:
    """Refuse data that only the group audit takes, in the name of who asks."""
    why = independent_people(Given(data=data, model=None, options={}))
    if why:
        raise DataError(f"{asking} {why}. Read the data without that.")


def decisions_or_scores(given: Given) -> str:
    """Ask for decisions or scores, or for a model and what it needs to make them."""
    if given.model is not None and not given.predicted and given.data.moments is not None and not given.features:
        return "needs decisions, and a model cannot make them of rows that were added up; read with `rows='keep'`"
    if given.model is not None and not given.predicted and not given.features:
        return "needs decisions, and the model cannot make them without its columns; name them in `features=`"
    return "" if given.predicted or given.model is not None else "needs a decision or a score column"


def features(given: Given) -> str:
    """Ask for the model's columns."""
    return "" if given.features else "needs the model's features and none were given"


def decisions_or_features(given: Given) -> str:
    """Ask for decisions, or for the columns from which a model makes them."""
    if given.model is None:
        return "" if given.data.decision is not None else "needs decisions"
    return features(given)


def outcome(given: Given) -> str:
    """Ask for what really happened."""
    return "" if given.data.outcome is not None else "needs an outcome column"


def decisions_or_probabilities(given: Given) -> str:
    """Ask for decisions, scores from 0 to 1, or a model."""
    data = given.data
    soft = data.score is not None and data.score_kind == "probability"
    known = given.model is not None or soft or data.decision is not None
    return "" if known else "needs decisions or scores from 0 to 1"


def no_sampling_weights(given: Given) -> str:
    """Refuse sampling weights."""
    return "" if given.data.weight is None else "does not take sampling weights"


def recorded_group(given: Given) -> str:
    """Ask for features that record a group, or for those that change with it."""
    data = given.data
    seen = any(all(part in given.features for part in a.name.split(" × ")) for a in data.attributes)
    if seen or given.options.get("flip") is not None:
        return ""
    return (
        "needs a feature that records the group; name such columns in `features=`, or as `flip` of the tail audit in a "
        "plan"
    )
