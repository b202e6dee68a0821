"""Models in skops files: which types may be made from a stranger's file, and what they may hold.

A skops file names types, and loading makes objects of them. skops itself trusts an explicit list: scikit-learn's
estimators, arrays, plain containers, losses and ufuncs. Fitted models need a few more, listed here one by one. No type
is trusted for the name of its package, and no function is: a package holds functions that run strings. This package's
own mitigators are trusted where the name leads to an estimator that is defined there, and to nothing else.

Trees and neighbour indices hold raw positions that compiled code follows without looking; a crafted one reads beyond
its memory. They are checked, or made anew from the data they index, before the model is asked anything.
"""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import MissingDependencyError, UsageError

TRUSTED = (
    "numpy.dtype",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.DotProduct",
    "sklearn.gaussian_process.kernels.Matern",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.gaussian_process.kernels.Sum",
    "sklearn.gaussian_process.kernels.WhiteKernel",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)
# Where this package's own estimators are defined.
_OWN = ("evenhand", "mitigation")
# Unpacked; a model of a million trees of a thousand nodes is smaller.
_MOST_BYTES = 4 * 2**30


def load_skops(path: Path) -> Any:
    """Load a scikit-learn model from a skops file of which nothing is trusted but types that are known one by one.

    Raises
    ------
    UsageError
        When the file is no skops file, holds another type or any function, or when a tree in it leads outside itself.
    """
    try:
        import skops.io  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependencyError(
            "A skops model needs skops. Install it with `pip install 'evenhand[models]'`."
        ) from error
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size <= _MOST_BYTES:
            unknown = skops.io.get_untrusted_types(file=path)
    except Exception as error:  # a zip, JSON or type error, as the file happens to be broken
        raise UsageError(f"Model file `{path}` is not a skops model: {_said(error)}.") from error
    if size > _MOST_BYTES:
        raise UsageError(
            f"Model file `{path}` unpacks to {size:,} bytes; at most {_MOST_BYTES:,} are read. Load it yourself and "
            "pass the object."
        )
    foreign = [name for name in unknown if name not in TRUSTED and not _is_own_estimator(name)]
    if foreign:
        raise UsageError(
            f"Model file `{path}` holds what is not on the list of types that are known to be harmless, and could run "
            f"code: {', '.join(f'`{name}`' for name in foreign)}. Load it yourself and pass the object, if you know "
            "its maker."
        )
    try:
        model = skops.io.load(path, trusted=unknown)
    except Exception as error:  # whatever a trusted type makes of what the file gives it
        raise UsageError(f"Model file `{path}` cannot be loaded: {_said(error)}.") from error
    for part in _parts(model):
        _check_part(part, path)
    return model


def _is_own_estimator(name: str) -> bool:
    """Say whether a name is that of an estimator defined in this package's room of mitigators."""
    home, _, last = name.rpartition(".")
    if tuple(home.split(".")[:2]) != _OWN:
        return False
    from sklearn.base import BaseEstimator

    try:
        named = vars(importlib.import_module(home)).get(last)
    except ImportError:
        return False
    return isinstance(named, type) and issubclass(named, BaseEstimator) and named.__module__ == home


def _parts(model: Any) -> Iterator[Any]:
    """Yield every object inside a model, each once; plain values and arrays of numbers are passed over."""
    seen: dict[int, Any] = {}
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes | bool | int | float | None | type):
            continue
        seen[id(part)] = part
        if isinstance(part, np.ndarray):
            if part.dtype == object:
                waiting.extend(part.ravel().tolist())
            continue
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set):
            waiting.extend(part)
        else:
            yield part
        waiting.extend(getattr(part, "__dict__", {}).values())


def _check_part(part: Any, path: Path) -> None:
    kind = type(part).__name__
    if kind == "Tree":
        nodes = part.__getstate__()["nodes"]
        leaf = nodes["left_child"] == -1
        sound = _leads_down(nodes["left_child"], nodes["right_child"], leaf, nodes["feature"], part.n_features)
        if not sound or len(part.value) != len(nodes):
            raise _crafted(path)
    elif kind == "TreePredictor":
        nodes = part.nodes
        leaf = nodes["is_leaf"].astype(bool)
        sound = _leads_down(nodes["left"], nodes["right"], leaf, nodes["feature_idx"], None)
        sets = [part.binned_left_cat_bitsets, part.raw_left_cat_bitsets]
        by_set = nodes["is_categorical"].astype(bool) & ~leaf
        if not sound or any(np.any(nodes["bitset_idx"][by_set] >= len(one)) for one in sets):
            raise _crafted(path)
    elif getattr(part, "_tree", None) is not None and hasattr(part, "_fit_X"):
        metric = part.effective_metric_
        rebuilt = type(part._tree)(
            np.asarray(part._fit_X), part.leaf_size, metric=metric, **part.effective_metric_params_
        )
        part._tree = rebuilt
    elif getattr(part, "input", "content") != "content" and hasattr(part, "decode_error"):
        raise UsageError(
            f"Model file `{path}`: its `{kind}` would open files that the data name (`input={part.input!r}`). "
            "Use `input='content'`."
        )


def _leads_down(
    left: np.ndarray, right: np.ndarray, leaf: np.ndarray, feature: np.ndarray, features: int | None
) -> bool:
    """Say whether every node's children come after it and exist, so that each walk ends, and features exist."""
    place = np.arange(len(leaf))[~leaf]
    if not len(leaf):
        return False
    children = np.concatenate([left[~leaf], right[~leaf]]).astype(np.int64)
    named = feature[~leaf].astype(np.int64)
    inside = bool(np.all(children > np.tile(place, 2)) and np.all(children < len(leaf)) and np.all(named >= 0))
    return inside and (features is None or bool(np.all(named < features)))


def _crafted(path: Path) -> UsageError:
    return UsageError(
        f"Model file `{path}` holds a tree whose branches lead outside it: the file is damaged or was made to do harm."
    )


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
