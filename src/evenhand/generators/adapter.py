"""One face for generators: ours by name, and any object with `fit` and `sample`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError, near_matches
from evenhand.generators.columns import Columns
from evenhand.generators.ctgan import CTGAN
from evenhand.generators.light import IndependentSampler, LightSampler
from evenhand.generators.tvae import TVAE


class Generator(Protocol):
    """What makes rows: learn from a table, then draw."""

    def fit(self, columns: Columns) -> Any:
        """Learn from a table."""
        ...

    def sample(self, n: int) -> dict[str, NDArray[Any]]:
        """Draw n rows."""
        ...


MAKERS: dict[str, Callable[..., Generator]] = {
    "light": LightSampler,
    "ctgan": CTGAN,
    "tvae": TVAE,
    "independent": IndependentSampler,
}


def make_generator(source: Any, *, seed: int = 0) -> Generator:
    """Return a generator by name, or wrap an object with `fit` and `sample`.

    Parameters
    ----------
    source : {"light", "ctgan", "tvae", "independent"} or object
        A name, or the user's own; it gets a data frame where pandas is installed, else a mapping of columns, and may
        return either.
    seed : int
        For ours.

    Returns
    -------
    Generator

    Examples
    --------
    >>> make_generator("light", seed=3).fit({"x": np.arange(30.0)}).sample(2)["x"].shape
    (2,)
    """
    if isinstance(source, str) and source in MAKERS:
        return MAKERS[source](seed=seed)
    if isinstance(source, str):
        raise UsageError(f"There is no generator `{source}`.{near_matches(source, MAKERS)}")
    if type(source).__module__.startswith("evenhand.generators"):
        return source  # type: ignore[no-any-return]
    if hasattr(source, "fit") and hasattr(source, "sample"):
        return _Adapter(source)
    raise UsageError(f"A {type(source).__name__} is not a generator: it needs the methods `fit` and `sample`.")


class _Adapter:
    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self._names: tuple[str, ...] = ()
        self._kinds: dict[str, np.dtype[Any]] = {}

    def fit(self, columns: Columns) -> _Adapter:
        self._names = tuple(columns)
        self._kinds = {n: np.asarray(c).dtype for n, c in columns.items()}
        self.inner.fit(_frame(columns))
        return self

    def sample(self, n: int) -> dict[str, NDArray[Any]]:
        made = self.inner.sample(n)
        if isinstance(made, np.ndarray) and made.ndim == 2 and made.shape[1] == len(self._names):
            return {name: made[:, j].astype(self._kinds[name]) for j, name in enumerate(self._names)}
        try:
            return {name: np.asarray(made[name]).astype(self._kinds[name]) for name in self._names}
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                f"The generator {type(self.inner).__name__} gave no table with the columns it was fitted on."
            ) from error


def _frame(columns: Columns) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return dict(columns)
    return pd.DataFrame(dict(columns))
