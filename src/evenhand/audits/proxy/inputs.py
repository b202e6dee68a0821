"""What a proxy audit works on: the request checked against the data, and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.options import complete
from evenhand.audits.proxy.fits import Scorer
from evenhand.audits.proxy.options import ProxyOptions, ProxySetting
from evenhand.errors import DataError
from evenhand.intake import AuditData
from evenhand.kernels.influence.functionals import functional
from evenhand.kernels.shared.seeds import seed_of
from evenhand.models import audited_model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """What the model, or the data, say of each record."""

    scorer: Scorer | None  # the model as a function of columns
    # h, score (rows,): predictions, and the scores behind decisions.
    h: FloatArray
    score: FloatArray


def prepare(data: AuditData, asked: ProxyOptions) -> tuple[ProxySetting, Predictions]:
    """Check the request against the data and predict once; the only place that raises errors about them."""
    form = functional(asked.measure, asked.alignment_penalty)
    if not data.features:
        raise DataError("The proxy audit needs the model's features and none were given. Name them with `features=`.")
    if not data.attributes:
        raise DataError("No group column was given. Name at least one in `groups`.")
    if form.uses_eta and (data.outcome is None or data.outcome_kind != "binary"):
        raise DataError(f"Measure `{form}` needs an outcome with two values. Name it with `outcome=`, or use `sp`.")
    scorer, h, is_soft = _predictions(data, asked.model, asked.soft)
    behind = data.score is not None and data.score_kind == "probability" and scorer is None and not is_soft
    score = data.score if behind and data.score is not None else h
    setting = complete(
        ProxySetting,
        asked,
        form=form,
        alignment_penalty=form.penalty,
        soft=is_soft,
        blocks={k: tuple(v) for k, v in (asked.blocks or {}).items()},
        categorical=tuple(asked.categorical),
        margin=asked.margin or None,
        level=asked.coverage,
        seed=seed_of(asked.rng),
    )
    return setting, Predictions(scorer=scorer, h=h, score=score)


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
