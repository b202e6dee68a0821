"""An ONNX classifier with the face of a scikit-learn one, so that its inputs keep their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.errors import DataError, UsageError, first_line, optional_module

_KINDS = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32, "bool": np.bool_}


def onnx_session(path: Path) -> Any:
    """Open an ONNX file."""
    missing = "An ONNX model needs onnxruntime. Install it with `pip install 'evenhand[models]'`."
    onnxruntime = optional_module("onnxruntime", missing)
    try:
        return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own tree of exceptions has no public base
        raise UsageError(f"Model file `{path}` is not an ONNX model: {first_line(error)}.") from error


class OnnxClassifier:
    """A session that is asked as an estimator is.

    A session with one input of several columns takes a matrix. One with an input per column takes columns by the
    names of its inputs, text included.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        Its last output is the probability of class 1, of both classes, or a mapping of class to probability.

    Attributes
    ----------
    classes_ : ndarray
        The classes in the order of their probabilities: 0 and 1 until `learn_classes` has seen the session's own.
    n_features_in_ : int
        Columns it takes, where it says so.
    feature_names_in_ : ndarray of str
        Their names, where there is one input per column.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs = list(session.get_inputs())
        self.classes_ = np.array([0, 1])
        widths = [_width(one) for one in self._inputs]
        if len(self._inputs) > 1 or widths[0] == 1:
            self.feature_names_in_ = np.array([one.name for one in self._inputs], dtype=object)
            self.n_features_in_ = len(self._inputs)
        elif widths[0] is not None:
            self.n_features_in_ = widths[0]

    def learn_classes(self, X: Any) -> None:
        """Find the names of the classes in the session's answers about some rows.

        Parameters
        ----------
        X : frame or ndarray
            Rows; both decisions should occur among them.
        """
        answers = self._session.run(None, self._feed(X))
        last = answers[-1]
        if isinstance(last, list):  # one mapping of class to probability per row
            if last and len(last[0]) == 2:
                self.classes_ = np.array(sorted(last[0]))
            return
        values, said = np.asarray(last), np.asarray(answers[0]).reshape(-1)
        if len(answers) < 2 or values.shape != (len(said), 2):
            return
        clear = values[:, 0] != values[:, 1]
        sides = [np.unique(said[clear & (values.argmax(axis=1) == side)].astype(said.dtype)) for side in (0, 1)]
        if all(len(f) == 1 for f in sides) and sides[0][0] != sides[1][0]:
            self.classes_ = np.array([sides[0][0], sides[1][0]])
        elif sorted(map(len, sides)) == [0, 1]:
            known = max(sides, key=len)[0]
            if isinstance(known, str) or known not in (0, 1):  # only one of its classes was seen
                self.classes_ = np.array([f[0] if len(f) else f"other than {known}" for f in sides], dtype=object)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the two classes, shape (rows, 2)."""
        last = self._session.run(None, self._feed(X))[-1]  # classifiers give labels first, probabilities last
        if isinstance(last, list):  # one mapping of class to probability per row
            last = [[row[key] for key in sorted(row)] for row in last]
        values = np.asarray(last, dtype=np.float64)
        one = values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values.reshape(-1)
        if one.shape != (len(X),) or not np.all((one >= -1e-6) & (one <= 1 + 1e-6)):
            raise DataError(
                f"The ONNX model's last output, of shape {values.shape} for {len(X)} rows, is no probability of two "
                "classes. Export the model with its probabilities, or wrap it in a function."
            )
        one = np.clip(one, 0.0, 1.0)
        return np.column_stack([1 - one, one])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return each row's class."""
        return np.asarray(self.classes_[(self.predict_proba(X)[:, 1] >= 0.5).astype(np.int64)])

    def _feed(self, X: Any) -> Mapping[str, Any]:
        if not hasattr(self, "feature_names_in_"):
            return {self._inputs[0].name: np.asarray(X).astype(_kind(self._inputs[0]))}
        named = hasattr(X, "columns")
        columns = [X[one.name].to_numpy() if named else np.asarray(X)[:, j] for j, one in enumerate(self._inputs)]
        return {
            one.name: np.asarray(column).astype(_kind(one)).reshape((-1, 1) if len(one.shape) == 2 else -1)
            for one, column in zip(self._inputs, columns, strict=True)
        }


def _width(entry: Any) -> int | None:
    shape = list(getattr(entry, "shape", None) or [])
    if len(shape) == 1:
        return 1
    return shape[1] if len(shape) == 2 and isinstance(shape[1], int) else None


def _kind(entry: Any) -> Any:
    name = str(entry.type).removeprefix("tensor(").removesuffix(")")
    return _KINDS.get(name, np.str_ if name == "string" else np.float32)
