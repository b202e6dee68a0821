"""Names for the arrays that every room passes on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that nobody can change."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
