"""The colours of the report's page, by name, for what is drawn outside of that page."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

_VARIABLE = re.compile(r"(--[\w-]+):\s*([^;]+);")
_USED = re.compile(r"var\((--[\w-]+)\)")
_PLACES = {
    "light": re.compile(r":root\s*\{([^}]*)\}"),
    "dark": re.compile(r"prefers-color-scheme:\s*dark\)\s*\{\s*:root\s*\{([^}]*)\}"),
}
THEMES = tuple(_PLACES)


@cache
def palette(theme: str) -> dict[str, str]:
    """Return the variables that the page's style sheet sets for a theme.

    Parameters
    ----------
    theme : {"light", "dark"}
        The background.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> palette("light")["--paper"]
    '#ffffff'
    """
    css = files("evenhand.report").joinpath("page", "report.css").read_text(encoding="utf-8")
    place = _PLACES[theme].search(css)
    assert place is not None, "the style sheet of the report sets its colours in `:root`"
    return dict(_VARIABLE.findall(place[1]))


def painted(spec: Any, theme: str) -> Any:
    """Return a chart's specification with values in place of the page's variables."""
    if isinstance(spec, dict):
        return {key: painted(value, theme) for key, value in spec.items()}
    if isinstance(spec, list):
        return [painted(value, theme) for value in spec]
    if isinstance(spec, str):
        return _USED.sub(lambda match: palette(theme)[match[1]], spec)
    return spec
