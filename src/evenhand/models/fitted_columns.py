"""The columns a model was fitted on, against those the data have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from evenhand.errors import DataError, UsageError, near_matches


def expected_columns(source: Any) -> tuple[tuple[str, ...] | None, int | None]:
    """Ask a model which columns it was fitted on.

    Parameters
    ----------
    source : object
        Anything `adapt` takes.

    Returns
    -------
    names : tuple of str or None
        None when the model does not know names.
    number : int or None
        None when it does not say.

    Examples
    --------
    >>> expected_columns(lambda X: X[:, 0])
    (None, None)
    """
    names = getattr(source, "feature_names_in_", None)
    if names is not None:
        return tuple(str(n) for n in names), len(names)
    number = getattr(source, "n_features_in_", None)
    return None, None if number is None else int(number)


def check_columns(source: Any, features: Mapping[str, Any]) -> list[str]:
    """Check the columns a model was fitted on against those the data have, before it is asked anything.

    Parameters
    ----------
    source : object
        Anything `adapt` takes.
    features : mapping of str to array
        The data's features, in their order.

    Returns
    -------
    list of str
        What a reader should know: columns the model does not use, or that they are taken by position.

    Raises
    ------
    DataError
        When a column is missing, or there are too many or too few.

    Examples
    --------
    >>> check_columns(lambda X: X[:, 0], {"x": None})
    []
    """
    if isinstance(source, type):
        raise UsageError(f"The model `{source.__name__}` is a class. Give a fitted object of it.")
    if isinstance(source, int | float | str | Mapping | Sequence | ModuleType):
        raise UsageError(f"A {type(source).__name__} is not a model. Give a fitted estimator, or a callable to scores.")
    given = list(features)
    name = type(source).__name__
    names, number = expected_columns(source)
    if names is None:
        if number is None and hasattr(source, "fit") and hasattr(source, "predict") and not _looks_fitted(source):
            raise UsageError(f"The model `{name}` is not fitted. Fit it first, and save it after that.")
        if number is not None and number != len(given):
            raise DataError(
                f"The model `{name}` takes {number} columns by position and the data have {len(given)}: "
                f"{_listed(given)}. Name its columns in `features=`, in the order it was fitted on."
            )
        if number is None:
            return []
        return [f"The model `{name}` knows its columns by position; they were taken in the order {_listed(given)}."]
    missing = [n for n in names if n not in given]
    if missing:
        raise DataError(
            f"The model `{name}` was fitted on {len(names)} columns and the data lack {len(missing)} of them: "
            f"{_listed(missing)}.{near_matches(missing[0], given)} Name the model's columns in `features=`."
        )
    extra = [n for n in given if n not in names]
    return [f"Not an input of the model `{name}`: {_listed(extra)}."] if extra else []


def _looks_fitted(source: Any) -> bool:
    # scikit-learn's rule: what fitting learns ends with an underscore.
    return any(key.endswith("_") and not key.startswith("__") for key in vars(source)) or hasattr(source, "steps")


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(f"`{n}`" for n in names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
