"""From what the user says about similarity to a recipe for the metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.similarity.expert import Discounted, ExpertMatrix
from evenhand.similarity.metric import Similarity
from evenhand.similarity.subspace import SensitiveSubspace


def as_similarity(similarity: Any) -> Similarity:
    """Read what was given as `similarity`.

    Parameters
    ----------
    similarity : Similarity, array, sequence of str, str or None
        A recipe; a matrix; columns that should not matter; None for the directions that predict the groups.

    Returns
    -------
    Similarity

    Examples
    --------
    >>> type(as_similarity(None)).__name__, type(as_similarity("gender")).__name__
    ('SensitiveSubspace', 'Discounted')
    >>> type(as_similarity([[0.0, 0.0], [0.0, 1.0]])).__name__
    'ExpertMatrix'
    """
    if similarity is None:
        return SensitiveSubspace()
    if isinstance(similarity, Similarity):
        return similarity
    if isinstance(similarity, str):
        return Discounted(columns=[similarity])
    values = np.asarray(similarity)
    if values.dtype.kind in "UO":
        return Discounted(columns=[str(v) for v in values.ravel()])
    return ExpertMatrix(values)
