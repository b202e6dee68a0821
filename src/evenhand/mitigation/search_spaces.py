"""Which hyperparameters of a learner are searched, and how a setting is drawn and changed.

A space maps a parameter's name to a list of values or to something with `rvs` (scipy's distributions), as in
scikit-learn's random search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import Pipeline

from evenhand.errors import UsageError, near_matches

_BALANCE = [None, "balanced"]

#: Spaces by the name of the learner's class.
SPACES: dict[str, dict[str, Any]] = {
    "LogisticRegression": {
        "C": loguniform(1e-4, 1e2),
        "fit_intercept": [True, False],
        "class_weight": _BALANCE,
        "tol": loguniform(1e-6, 1e-1),
    },
    "RandomForestClassifier": {
        "n_estimators": randint(20, 201),
        "criterion": ["gini", "entropy"],
        "max_depth": [None, 2, 3, 5, 8, 12, 20],
        "min_samples_leaf": randint(1, 51),
        "min_samples_split": randint(2, 51),
        "max_features": ["sqrt", "log2", 0.5, None],
        "class_weight": _BALANCE,
    },
    "SVC": {
        "C": loguniform(1e-2, 1e2),
        "kernel": ["rbf", "linear", "poly", "sigmoid"],
        "gamma": ["scale", "auto", 0.001, 0.01, 0.1],
        "class_weight": _BALANCE,
    },
    "LinearSVC": {
        "C": loguniform(1e-3, 1e2),
        "loss": ["hinge", "squared_hinge"],
        "fit_intercept": [True, False],
        "class_weight": _BALANCE,
    },
    "MLPClassifier": {
        "hidden_layer_sizes": [[16], [64], [100], [32, 16], [64, 32, 16]],
        "activation": ["relu", "tanh", "logistic"],
        "alpha": loguniform(1e-6, 1e1),
        "learning_rate_init": loguniform(1e-4, 1e-1),
        "batch_size": ["auto", 32, 64, 128, 512],
    },
    "HistGradientBoostingClassifier": {
        "learning_rate": loguniform(1e-2, 0.5),
        "max_iter": randint(20, 201),
        "max_leaf_nodes": [4, 8, 16, 31, 63],
        "max_depth": [None, 2, 3, 5, 8],
        "min_samples_leaf": randint(5, 101),
        "l2_regularization": loguniform(1e-3, 1e2),
    },
}


def space_of(learner: Any, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the space of a learner, by the names that its `set_params` takes.

    Parameters
    ----------
    learner : estimator
        In a pipeline the last step is searched, in a calibrated classifier the one inside.
    given : mapping, optional
        A space in place of the known one; names of the last step need no prefix.

    Returns
    -------
    dict

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> sorted(space_of(LogisticRegression(), None))
    ['C', 'class_weight', 'fit_intercept', 'tol']
    """
    prefix, inner = "", learner
    while isinstance(inner, Pipeline | CalibratedClassifierCV):
        name, inner = inner.steps[-1] if isinstance(inner, Pipeline) else ("estimator", inner.estimator)
        prefix += f"{name}__"
    kind = type(inner).__name__
    if given is None and kind not in SPACES:
        raise UsageError(
            f"No search space is known for the learner {kind}. Pass one as `space`, a mapping of its parameters to "
            f"lists of values or scipy distributions. Known: {', '.join(SPACES)}."
        )
    known = learner.get_params()
    space = {}
    for name, values in (SPACES[kind] if given is None else given).items():
        full = name if name in known else prefix + name
        if full not in known:
            raise UsageError(f"`space` names `{name}`, which {kind} does not have.{near_matches(name, known)}")
        if not hasattr(values, "rvs") and (
            isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values)
        ):
            raise UsageError(
                f"`space` gives `{name}` {values!r}; a list of values, or a distribution with `rvs`, is needed."
            )
        space[full] = values
    return space


def drawn(values: Any, rng: np.random.Generator, other_than: Any = None) -> Any:
    """Draw one value of a parameter, another than the present one where there is a list with several.

    Parameters
    ----------
    values : list or distribution
        What is allowed.
    rng : Generator
        Draws.
    other_than : object
        The present value.

    Returns
    -------
    object
        Plain Python, as JSON keeps it.

    Examples
    --------
    >>> from evenhand.kernels.shared.seeds import stream
    >>> drawn([1, 2], stream(0, "example"), other_than=1)
    2
    """
    if hasattr(values, "rvs"):
        return plain(values.rvs(random_state=rng))
    allowed = [plain(v) for v in values]
    others = [v for v in allowed if v != other_than] or allowed
    return others[int(rng.integers(len(others)))]


def plain(value: Any) -> Any:
    """Return a value as JSON would give it back: numbers without numpy, tuples as lists.

    Examples
    --------
    >>> plain((np.int64(3), 4))
    [3, 4]
    """
    if isinstance(value, np.generic):
        return value.item()
    return [plain(v) for v in value] if isinstance(value, list | tuple | np.ndarray) else value
