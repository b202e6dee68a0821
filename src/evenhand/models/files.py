"""Models from files and names, without running a stranger's code by accident."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError, first_line, near_matches
from evenhand.files import hashed
from evenhand.models.onnx import OnnxClassifier, onnx_session
from evenhand.models.trusted import load_skops

_PICKLES = (".pkl", ".pickle", ".joblib")


def load_model(spec: str | Path, *, trust_pickle: bool = False, trust_import: bool = True) -> Any:
    """Load a model from a skops or ONNX file, or import it as ``package.module:object``.

    Parameters
    ----------
    spec : str or Path
        The file, or the name of an importable object.
    trust_pickle : bool
        Allow a pickle. Loading one runs whatever code its maker put in.
    trust_import : bool
        Allow ``package.module:object``, which runs that module. A name that stands in a file is not trusted.

    Returns
    -------
    object
        Something every audit takes.

    Examples
    --------
    >>> type(load_model("scipy.special:softmax")).__name__
    'function'
    """
    text = str(spec)
    suffix = Path(text).suffix.lower()
    if suffix in _PICKLES:
        return _pickled(Path(text), trust_pickle)
    if suffix in (".onnx", ".skops"):
        path = Path(text)
        if not path.is_file():
            raise UsageError(f"Model file `{text}` does not exist.")
        return OnnxClassifier(onnx_session(path)) if suffix == ".onnx" else load_skops(path)
    if ":" in text and not Path(text).exists():
        if not trust_import:
            raise UsageError(
                f"The plan names the model `{text}`, and importing it would run that module's code. Name it on the "
                "command line with `--model`, or allow what this plan imports with `--trust-plan`."
            )
        return _imported(text)
    raise UsageError(
        f"Model `{text}` is not understood. Allowed: a `.skops` or `.onnx` file, or `package.module:object`."
    )


def model_mark(model: Any) -> dict[str, str | None] | None:
    """Return by what a model can be recognised: the hash of its file, or why there is none.

    Parameters
    ----------
    model : object, str, Path or None
        A fitted model, or where it is loaded from.

    Returns
    -------
    dict or None
        As from `evenhand.files.hashed`; None without a model.

    Examples
    --------
    >>> model_mark("scipy.special:softmax")["reason"]
    'It was imported from a module.'
    """
    if model is None:
        return None
    if isinstance(model, str | Path):
        if Path(model).exists():
            return hashed(model)
        return {"name": str(model), "sha256": None, "reason": "It was imported from a module."}
    reason = "It is an object in memory, which has no bytes to hash. Audit its file to have a hash."
    return {"name": type(model).__name__, "sha256": None, "reason": reason}


def _imported(text: str) -> Any:
    module, _, name = text.partition(":")
    try:
        named: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever importing runs into
        said = f"{type(error).__name__}: {first_line(error)}"
        raise UsageError(f"Model `{text}`: module `{module}` cannot be imported ({said}).") from error
    for part in name.split("."):
        if not hasattr(named, part):
            raise UsageError(f"Model `{text}`: `{module}` has no `{part}`.{near_matches(part, dir(named))}")
        named = getattr(named, part)
    if not _looks_like_a_model(named):
        raise UsageError(
            f"Model `{text}` is a {type(named).__name__} that does not look like a model. Name a fitted estimator (it "
            "has `predict`), a torch module, or a function of your own from a feature array to scores."
        )
    return named


def _looks_like_a_model(model: Any) -> bool:
    """Say whether an object may be asked for scores: functions of Python's own library may do anything else."""
    if hasattr(model, "predict") or (hasattr(model, "forward") and hasattr(model, "parameters")):
        return not isinstance(model, type)
    home = str(getattr(model, "__module__", None) or "builtins").partition(".")[0]
    return callable(model) and not isinstance(model, type) and home not in {*sys.stdlib_module_names, "builtins"}


def _pickled(path: Path, trusted: bool) -> Any:
    if not trusted:
        raise UsageError(
            f"`{path}` is a pickle: loading it runs whatever code its maker put in. Save the model with skops or ONNX, "
            "or allow it with `trust_pickle=True` (`--trust-pickle`)."
        )
    if not path.is_file():
        raise UsageError(f"Model file `{path}` does not exist.")
    try:
        if path.suffix.lower() == ".joblib":
            import joblib  # type: ignore[import-untyped,unused-ignore]

            return joblib.load(path)
        import pickle

        return pickle.loads(path.read_bytes())
    except (Exception, SystemExit) as error:  # whatever the maker's code raises
        said = f"{type(error).__name__}: {first_line(error)}"
        raise UsageError(f"Model file `{path}` cannot be unpickled: {said}.") from error
