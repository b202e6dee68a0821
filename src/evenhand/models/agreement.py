"""Whether a model and the data it is audited on mean the same by decision 1."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.errors import DataError
from evenhand.intake.data import AuditData
from evenhand.models.audited import AuditedModel

# A correlation so many standard errors below 0 is not chance: the model is turned around.
REVERSED = -4.0


def threshold_of_data(data: AuditData, score: FloatArray) -> float | None:
    """Return the threshold said with the data when it is meant for this model's scores.

    Parameters
    ----------
    data : AuditData
        Its `threshold`, and its scores if there are any.
    score : ndarray
        The model's scores of the same rows.

    Returns
    -------
    float or None
        None when none was said, or it was said for other scores.

    Examples
    --------
    >>> data = AuditData.from_arrays(outcome=[0, 1], groups={"g": ["a", "b"]}, features={"x": [1, 2]}, threshold=0.3)
    >>> threshold_of_data(data, np.array([0.2, 0.4]))
    0.3
    """
    if data.threshold is None:
        return None
    ours = data.score is None or np.allclose(data.score, score, rtol=1e-3, atol=1e-3)
    return data.threshold if ours else None


class SeparatingCut:
    """The score between all decisions 0 and all decisions 1 of the rows, if there is one.

    Parameters
    ----------
    model : AuditedModel
        Which scores the rows.

    Examples
    --------
    >>> from evenhand.models.adapter import adapt
    >>> data = AuditData.from_arrays(decision=[0, 0, 1], groups={"g": ["a", "b", "a"]}, features={"x": [1, 2, 4]})
    >>> cut = SeparatingCut(adapt(lambda X: X[:, 0], data.features))
    >>> cut.add(data)
    >>> cut.value
    3.0
    """

    def __init__(self, model: AuditedModel) -> None:
        self._model = model
        self._lowest_yes, self._highest_no = np.inf, -np.inf

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch."""
        if batch.decision is None:
            return
        score = self._model.score(batch.features)
        self._lowest_yes = min(self._lowest_yes, float(score[batch.decision == 1].min(initial=np.inf)))
        self._highest_no = max(self._highest_no, float(score[batch.decision == 0].max(initial=-np.inf)))

    def merge(self, other: SeparatingCut) -> None:
        """Take the rows of another part."""
        self._lowest_yes = min(self._lowest_yes, other._lowest_yes)
        self._highest_no = max(self._highest_no, other._highest_no)

    @property
    def value(self) -> float | None:
        """Half-way between the lowest score of a decision 1 and the highest of a decision 0, where they part."""
        seen = np.isfinite([self._lowest_yes, self._highest_no]).all()
        return 0.5 * (self._lowest_yes + self._highest_no) if seen and self._lowest_yes > self._highest_no else None


def check_agreement(
    model: AuditedModel, data: AuditData, score: FloatArray, decision: FloatArray | None
) -> tuple[str, ...]:
    """Compare a model with the decisions, scores and outcomes of the rows it is audited on.

    Raises
    ------
    DataError
        When the two contradict each other: the agreement is below chance.
    """
    rows = data.count.astype(np.float64)
    if data.decision is not None and decision is not None:
        differ = int(data.count[decision != data.decision].sum())
        if not differ:
            return ()
        share = f"{differ:,} of {data.rows.rows_used:,} rows ({differ / data.rows.rows_used:.1%})"
        if _reversed(decision, data.decision, rows) or (differ == data.rows.rows_used and differ >= 10):
            raise DataError(
                f"The model `{model.name}` contradicts the column of decisions: they differ on {share}, more than by "
                f"chance. One of them has 0 and 1 the other way round. {_remedy(model)}"
            )
        return (
            f"The model `{model.name}` and the column of decisions differ on {share}. The group audit asks about the "
            "column; audits that ask the model get the model's decisions. Check that it is the model that decided, its "
            "`threshold=`, and the order of `features=`.",
        )
    if data.score is not None:
        if _reversed(score, data.score, rows):
            raise DataError(
                f"The model `{model.name}` contradicts the column of scores: where one is high the other is low. "
                f"{_remedy(model)}"
            )
        return ()
    if data.outcome is not None and _reversed(score, data.outcome, rows):
        return (
            f"Scores of the model `{model.name}` are higher where the outcome is lower, more than by chance: it ranks "
            f"people the wrong way round, or its decision 1 is not what the data mean by 1. {_remedy(model)}",
        )
    return ()


def _reversed(a: FloatArray, b: FloatArray, rows: FloatArray) -> bool:
    a, b = (v - np.average(v, weights=rows) for v in (a, b))
    spread = float(np.sqrt(np.average(a * a, weights=rows) * np.average(b * b, weights=rows)))
    if spread <= 0:
        return False
    correlation = float(np.average(a * b, weights=rows)) / spread
    return correlation * np.sqrt(rows.sum()) < REVERSED or (correlation < -0.9 and rows.sum() >= 5)


def _remedy(model: AuditedModel) -> str:
    if model.classes is None:
        return "Let the model return scores that grow towards decision 1, or name the label that is 1 with `positive=`."
    return (
        "Name the model's class that is decision 1, `positive={'model': …}`, or the data's label, "
        "`positive={'decision': …}`. (Encoders that number labels by the alphabet make `approved` 0 and `denied` 1.)"
    )
