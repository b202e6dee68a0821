"""Audit predictions that are at hand as arrays, in the names that users of scikit-learn and fairlearn know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.audits.group.options import GroupOptions
from evenhand.audits.options import SHARED, options_of
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import AuditData
from evenhand.intake.frames import frame_names
from evenhand.plan import Plan
from evenhand.results import AuditRun
from evenhand.run import audit

_OF_PLAN = ("alpha", "correction", "n_resamples", "reference")
_OF_RUN = ("rng", "progress")
_OF_DATA = ("weight_kind", "threshold", "cuts", "intersections", "missing")


def audit_arrays(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    control_features: Any = None,
    y_score: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    **options: Any,
) -> AuditRun:
    """Audit predictions against what really happened, between the groups of sensitive features.

    Parameters
    ----------
    y_true : array-like or None
        What really happened; None where it is not known.
    y_pred : array-like, optional
        What the model decided. It may be left out with `y_score` and the option ``threshold``.
    sensitive_features : array-like, Series, DataFrame or mapping of str to array-like
        Whose groups are compared: one column, or several by name. Each column is compared by itself; with the option
        ``intersections=True`` also all of them crossed.
    control_features : array-like, Series, DataFrame or mapping of str to array-like, optional
        What people are compared within: those who are alike in it, such as applicants for the same job.
    y_score : array-like, optional
        The model's score or probability of the positive class, one number per row.
    sample_weight : array-like, optional
        Weights of the rows. They are taken as sampling weights, which do not count as more evidence; say
        ``weight_kind="frequency"`` where a weight of 3 means three people.
    pos_label : object, optional
        The label that counts as 1, in `y_true` and `y_pred`; needed where labels are not 0 and 1 or the like.
    **options
        What is asked of the group audit: ``metrics``, ``margin``, ``ratio``, ``compare`` and the others of
        `audit_group`. Of the plan: ``alpha``, ``correction``, ``reference``, ``n_resamples``. Of the run: ``rng`` (0 by
        default, so that the same arrays give the same answer), ``progress``. Of the data:
        ``weight_kind``, ``threshold``, ``cuts``, ``intersections``, ``missing``.

    Returns
    -------
    AuditRun
        As from `evenhand.audit`. An estimate is the group's value less that of the reference, which is the largest
        group unless `reference` names another one.

    Examples
    --------
    >>> import numpy as np, evenhand as eh
    >>> rng = np.random.default_rng(0)
    >>> y_true, sex = rng.integers(0, 2, 2000), rng.choice(["F", "M"], 2000)
    >>> y_pred = np.where(rng.random(2000) < np.where(sex == "F", 0.3, 0.1), 0, y_true)
    >>> run = eh.audit_arrays(y_true, y_pred, sensitive_features={"sex": sex}, metrics=["fnr"], reference={"sex": "M"})
    >>> finding = run["fnr"][0]
    >>> finding.groups, str(finding.verdict)
    (('sex=F', 'sex=M'), 'disparity')
    """
    of_group = [name for name in options_of(GroupOptions) if name not in SHARED]
    known = [*of_group, *_OF_PLAN, *_OF_RUN, *_OF_DATA]
    for name in options:
        if name not in known:
            raise UsageError(f"`audit_arrays` has no option `{name}`.{near_matches(name, known)}")
    of = {kind: {key: options[key] for key in names if key in options} for kind, names in (
        ("plan", _OF_PLAN), ("run", _OF_RUN), ("data", _OF_DATA), ("group", [n for n in of_group if n not in _OF_PLAN])
    )}  # fmt: skip
    if sample_weight is not None:
        of["data"].setdefault("weight_kind", "sampling")
    data = AuditData.from_arrays(
        outcome=y_true,
        decision=y_pred,
        score=y_score,
        groups=_named(sensitive_features, "sensitive_feature"),
        strata=None if control_features is None else _named(control_features, "control_feature"),
        weight=sample_weight,
        positive=pos_label,
        **of["data"],
    )
    plan = Plan.default(data, base=Plan(**of["plan"], group=of["group"]))
    return audit(data, plan=plan, **{"rng": 0, **of["run"]})


def _named(values: Any, name: str) -> Any:
    """Give columns names where they have none: a mapping or a frame has its own, a series perhaps."""
    if isinstance(values, Mapping):
        return values
    if not isinstance(values, np.ndarray) and frame_names(values) is not None:
        return values
    own = getattr(values, "name", None)
    if isinstance(own, str) and own:
        return {own: values}
    if hasattr(values, "dtype") and not isinstance(values, np.ndarray):
        return {name: values}
    array = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
    if array.ndim == 2:
        return {f"{name}_{j}": array[:, j] for j in range(array.shape[1])}
    if array.ndim != 1:
        raise DataError(
            f"`{name}s` has {array.ndim} dimensions; give one column, several columns of a 2-D array or a frame, or a "
            "mapping of names to arrays."
        )
    return {name: values}
