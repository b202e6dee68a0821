"""What a proxy audit works on: the request checked against the data, predictions, and the reference group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audits.proxy.fits import Scorer
from evenhand.audits.proxy.options import ProxyOptions
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.influence.functionals import Functional
from evenhand.models import audited_model

FloatArray = NDArray[np.float64]


def prepare(
    data: AuditData, form: Functional, model: Any, soft: bool | None, options: ProxyOptions
) -> tuple[ProxyOptions, Scorer | None, FloatArray, FloatArray]:
    """Check the request against the data and predict once; the only place that raises errors about them.

    Parameters
    ----------
    data : AuditData
        The rows.
    form : Functional
        What is measured.
    model : object or None
        The audited model.
    soft : bool or None
        Scores, decisions, or scores where they are probabilities.
    options : ProxyOptions
        The other options.

    Returns
    -------
    options : ProxyOptions
        With `soft` as it is.
    scorer : callable or None
        The model as a function of columns.
    h, score : ndarray, shape (rows,)
        Predictions, and the scores behind decisions.
    """
    if not data.features:
        raise DataError("The proxy audit needs the model's features and none were given. Name them with `features=`.")
    if not data.attributes:
        raise DataError("No group column was given. Name at least one in `groups`.")
    if form.uses_eta and (data.outcome is None or data.outcome_kind != "binary"):
        raise DataError(f"Measure `{form}` needs an outcome with two values. Name it with `outcome=`, or use `sp`.")
    scorer, h, is_soft = _predictions(data, model, soft)
    behind = data.score is not None and data.score_kind == "probability" and scorer is None and not is_soft
    score = data.score if behind and data.score is not None else h
    return replace(options, soft=is_soft), scorer, h, score


def _predictions(data: AuditData, model: Any, soft: bool | None) -> tuple[Scorer | None, FloatArray, bool]:
    """Return the model as a function of columns, its predictions, and whether they are scores."""
    if model is not None:
        asked = audited_model(model, data)
        if soft is True and not asked.probability:
            raise DataError(f"`soft=True` needs probabilities, and the model `{asked.name}` gives none.")
        scorer = asked.score if soft is not False and asked.probability else asked.decide
        h = scorer(data.features)
        return scorer, h, bool(np.any((h != 0) & (h != 1)))
    if soft is not False and data.score is not None and data.score_kind == "probability":
        return None, data.score, True
    if soft is True:
        raise DataError("`soft=True` needs scores between 0 and 1 or a `model`. Name the column with `score=`.")
    if data.decision is None:
        raise DataError("The proxy audit needs decisions, scores between 0 and 1, or a `model`; none were given.")
    return None, data.decision, False


def reference_of(data: AuditData, attribute: Attribute, wanted: Mapping[str, str] | str | None, n: int) -> int:
    """Return the code of the reference group: the user's choice, or the group with the most rows.

    Parameters
    ----------
    data : AuditData
        The rows.
    attribute : Attribute
        The attribute audited.
    wanted : mapping, str or None
        The user's choice.
    n : int
        Attributes audited; a single label is clear for one only.

    Returns
    -------
    int
    """
    if isinstance(wanted, str) and n > 1:
        raise UsageError(f"`reference` is the single label `{wanted}` but {n} attributes are audited. Give a mapping.")
    label = wanted if isinstance(wanted, str) else (wanted or {}).get(attribute.name)
    if label is None:
        rows = np.bincount(attribute.codes, weights=data.count, minlength=len(attribute.labels))
        return int(rows.argmax())
    if label not in attribute.labels:
        raise UsageError(
            f"Reference `{attribute.name}={label}` is not a group in the data.{near_matches(label, attribute.labels)}"
        )
    return attribute.labels.index(label)
