"""Models from files and names, without running a stranger's code by accident."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from evenhand.errors import MissingDependencyError, UsageError, near_matches
from evenhand.models.onnx import OnnxClassifier, onnx_session

_PICKLES = (".pkl", ".pickle", ".joblib")
_SAFE = ("sklearn.", "numpy.", "scipy.")


def load_model(spec: str | Path, *, trust_pickle: bool = False) -> Any:
    """Load a model from a skops or ONNX file, or import it as ``package.module:object``.

    Parameters
    ----------
    spec : str or Path
        The file, or the name of an importable object.
    trust_pickle : bool
        Allow a pickle. Loading one runs whatever code its maker put in.

    Returns
    -------
    object
        Something every audit takes.

    Examples
    --------
    >>> load_model("evenhand.models.model:as_model").__name__
    'as_model'
    """
    text = str(spec)
    suffix = Path(text).suffix.lower()
    if suffix in _PICKLES:
        return _pickled(Path(text), trust_pickle)
    if suffix in (".onnx", ".skops"):
        path = Path(text)
        if not path.is_file():
            raise UsageError(f"Model file `{text}` does not exist.")
        return OnnxClassifier(onnx_session(path)) if suffix == ".onnx" else _skops(path)
    if ":" in text and not Path(text).exists():
        return _imported(text)
    raise UsageError(
        f"Model `{text}` is not understood. Allowed: a `.skops` or `.onnx` file, or `package.module:object`."
    )


def _imported(text: str) -> Any:
    module, _, name = text.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever importing runs into
        raise UsageError(f"Model `{text}`: module `{module}` cannot be imported ({error}).") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"Model `{text}`: `{module}` has no `{part}`.{near_matches(part, dir(found))}")
        found = getattr(found, part)
    return found


def _skops(path: Path) -> Any:
    try:
        import skops.io  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingDependencyError(
            "A skops model needs skops. Install it with `pip install 'evenhand[models]'`."
        ) from error
    try:
        unknown = skops.io.get_untrusted_types(file=path)
    except Exception as error:  # a zip, JSON or type error, as the file happens to be broken
        raise UsageError(f"Model file `{path}` is not a skops model: {error}.") from error
    foreign = [name for name in unknown if not name.startswith(_SAFE)]
    if foreign:
        raise UsageError(
            f"Model file `{path}` holds types of other packages, which could run code: {', '.join(foreign)}. Load it "
            "yourself and pass the object."
        )
    return skops.io.load(path, trusted=unknown)


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
    except Exception as error:  # whatever the maker's code raises
        raise UsageError(f"Model file `{path}` cannot be unpickled: {type(error).__name__}: {error}.") from error
