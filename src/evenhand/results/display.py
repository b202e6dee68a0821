"""What a notebook shows of an object: drawn by the report, which is loaded when the first one is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Displayed:
    """An object that a notebook shows as a small page."""

    __slots__ = ()
    notebook: ClassVar[Callable[[Any], str]]  # handed over by `evenhand/__init__.py`: from an object to HTML

    def _repr_html_(self) -> str:
        return Displayed.notebook(self)
