"""Candidates: each method with each setting, fitted on the part to train on, seen on the part to choose on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from evenhand import mitigation
from evenhand.arrays import FloatArray
from evenhand.errors import DataError, MissingDependencyError, UsageError, near_matches
from evenhand.intake import Attribute, AuditData
from evenhand.mitigation.estimator import check_training, fit_learner, probability_of
from evenhand.models.input_space import as_frame
from evenhand.repair.certificate import Comparison, finite, pvalue_of

PLAIN = "plain learner"
_EQUALITIES = {"selection_rate": "demographic_parity", "fnr": "tpr_parity", "tpr": "tpr_parity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A model to be fitted: the method's word, its settings and the estimator, None for the plain learner."""

    method: str
    settings: Mapping[str, Any]
    estimator: Any

    @property
    def label(self) -> str:
        """The method with its settings, as tables and pictures name it."""
        said = ", ".join(f"{k}={v}" for k, v in self.settings.items())
        return f"{self.method} ({said})" if said else self.method


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A fitted model as seen on the part to choose on, or the reason why there is none."""

    method: str
    settings: Mapping[str, Any]
    label: str
    model: Any = None
    seconds: float = 0.0
    performance: float = float("nan")
    performance_low: float = float("nan")
    performance_high: float = float("nan")
    comparisons: tuple[Comparison, ...] = ()
    place: int | None = None  # in the order of tests; None when it is not tested
    reason: str = ""  # why it was left out

    @property
    def pvalue(self) -> float:
        """For lying outside the margin, on the part to choose on: for the order only, not a result."""
        return pvalue_of(self.comparisons)

    @property
    def worst(self) -> Comparison | None:
        """The comparison that is least surely inside its margin."""
        return max(self.comparisons, key=lambda c: (c.outside, abs(c.finding.estimate)), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the candidate as plain data."""
        return {
            "label": self.label,
            "method": self.method,
            "settings": {k: v if isinstance(v, int | float | str | None) else str(v) for k, v in self.settings.items()},
            "seconds": round(self.seconds, 3),
            "performance": finite(self.performance),
            "performance_low": finite(self.performance_low),
            "performance_high": finite(self.performance_high),
            "comparisons": [c.to_dict() for c in self.comparisons],
            "place": self.place,
            "reason": self.reason,
        }


def requests_of(
    methods: Sequence[Any] | None, learner: Any, table: Training, metrics: Sequence[str], seed: int
) -> tuple[Request, ...]:
    """Return everything to be fitted: the plain learner, then each method with each of its settings.

    Parameters
    ----------
    methods : sequence of str or estimator, or None
        Words of `evenhand.mitigation.METHODS`, or estimators of that shape with settings of one's own. None takes all.
    learner : estimator or None
        What methods repair.
    table : Training
        The people to train on.
    metrics : sequence of str
        What must be alike; a method that can be asked for one kind of equality is asked for this one.
    seed : int
        Given to each method.

    Returns
    -------
    tuple of Request
    """
    wanted = list(mitigation.METHODS) if methods is None else [methods] if isinstance(methods, str) else list(methods)
    if not wanted:
        raise UsageError(f"`methods` is empty. Known: {', '.join(mitigation.METHODS)}.")
    made = [Request(method=PLAIN, settings={}, estimator=None)]
    for method in wanted:
        if isinstance(method, str):
            if method not in mitigation.METHODS:
                raise UsageError(f"There is no method `{method}`.{near_matches(method, mitigation.METHODS)}")
            try:
                kind = getattr(mitigation, mitigation.METHODS[method])
            except ImportError as error:
                raise MissingDependencyError(
                    f"The method `{method}` needs packages that are not installed ({error.name}): "
                    "pip install evenhand[mitigation]."
                ) from error
            constraint = {"constraint": _constraint(metrics)} if "constraint" in kind().get_params(deep=False) else {}
            settings = [{**constraint, **s} for s in kind.about.grid]
            made += [Request(method=method, settings=s, estimator=kind(**s)) for s in settings]
        elif isinstance(method, BaseEstimator) and hasattr(method, "fit"):
            made.append(Request(method=type(method).__name__, settings=_own_settings(method), estimator=clone(method)))
        else:
            raise UsageError(f"`methods` takes words or estimators; got {type(method).__name__}.")
    return tuple(_given(request, learner, table, seed) for request in _told_apart(made))


def _told_apart(requests: Sequence[Request]) -> list[Request]:
    """Return the requests with a number where two would have the same label, so that a label names one model."""
    seen: dict[str, int] = {}
    made = []
    for request in requests:
        number = seen[request.label] = seen.get(request.label, 0) + 1
        made.append(request if number == 1 else replace(request, method=f"{request.method} #{number}"))
    return made


def _constraint(metrics: Sequence[str]) -> str:
    """Return the equality that methods know under a name of their own and that serves these metrics."""
    kinds = {_EQUALITIES.get(metric, "equalized_odds") for metric in metrics}
    return kinds.pop() if len(kinds) == 1 else "equalized_odds"


def _own_settings(estimator: Any) -> dict[str, Any]:
    """Return what was set to something else than the default."""
    defaults = type(estimator)().get_params(deep=False)
    given = estimator.get_params(deep=False)
    return {k: v for k, v in given.items() if k not in ("estimator", "random_state") and repr(v) != repr(defaults[k])}


def _given(request: Request, learner: Any, table: Training, seed: int) -> Request:
    """Hand the learner, the seed and the name of the group's column to a method that asks for them."""
    if request.estimator is None:
        return request
    known = request.estimator.get_params(deep=False)
    for name, value in (("estimator", learner), ("random_state", seed % 2**31)):
        if name in known and known[name] in (None, 0):
            request.estimator.set_params(**{name: value})
    if "group_column" in known and known["group_column"] is None and len(table.names) == 1:
        request.estimator.set_params(group_column=table.names[0])
    return request


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The people of a part in the form that estimators take."""

    X: Any  # frame of the features
    y: FloatArray
    groups: Mapping[str, Any]  # attribute to each person's label
    weight: FloatArray | None

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes."""
        return tuple(self.groups)


def training_of(part: AuditData, attributes: Sequence[Attribute]) -> Training:
    """Return the people of a part in the form that estimators take.

    The column of a group that is not among the features is added at the end, under the attribute's name: methods that
    decide with the group find it there, and all others are not given it.
    """
    groups = {a.name: np.array(a.labels, dtype=object)[part.attribute(a.name).codes] for a in attributes}
    assert part.outcome is not None
    return Training(as_frame(part.features, part.feature_types), part.outcome.astype(np.int64), groups, part.weight)


def with_groups(table: Training) -> Any:
    """Return the features with the columns of the groups that are not among them."""
    return table.X.assign(**{name: values for name, values in table.groups.items() if name not in table.X.columns})


def fit(request: Request, learner: Any, table: Training) -> Candidate:
    """Fit one request; what the method says against these people is kept as the reason.

    Parameters
    ----------
    request : Request
        What to fit.
    learner : estimator or None
        The plain learner.
    table : Training
        The people to train on.

    Returns
    -------
    Candidate
    """
    start = time.process_time()
    try:
        if request.estimator is None:
            model = fit_learner(learner, check_training(table.X, table.y, dict(table.groups), table.weight))
        else:
            X = with_groups(table) if decides_with_group(request.estimator) else table.X
            model = request.estimator.fit(X, table.y, sensitive_features=table.groups, sample_weight=table.weight)
    except (ValueError, MissingDependencyError) as error:  # ours, and what a learner says against its rows
        reason = _first(error)
        return Candidate(method=request.method, settings=request.settings, label=request.label, reason=reason)
    return Candidate(
        method=request.method,
        settings=request.settings,
        label=request.label,
        model=model,
        seconds=time.process_time() - start,
        reason=getattr(model, "reason_", ""),  # why the method changed nothing
    )


def decides_with_group(model: Any) -> bool:
    """Tell whether a model must know the group of a person to decide.

    Examples
    --------
    >>> decides_with_group(object())
    False
    """
    return bool(getattr(getattr(model, "about", None), "decides_with_group", False))


def decide(model: Any, table: Training) -> FloatArray:
    """Return a fitted model's decisions about the people of a part."""
    X = with_groups(table) if decides_with_group(model) else table.X
    try:
        return np.asarray(model.predict(X), dtype=np.float64)
    except ValueError as error:
        raise DataError(
            f"The fitted {type(model).__name__} cannot decide about some people: {_first(error)}"
        ) from error


def score(model: Any, table: Training) -> FloatArray:
    """Return a fitted model's scores of the people of a part."""
    return probability_of(model, with_groups(table) if decides_with_group(model) else table.X)


def _first(error: Exception) -> str:
    """Return the first line of what an exception says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
