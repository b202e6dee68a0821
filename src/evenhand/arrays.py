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
    return sealed(np.array(array))


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same array, which nobody can change from now on; for one that was just made and nobody else has."""
    array.flags.writeable = False
    return array
