"""How wide a text is, about: no font is at hand where a picture is drawn."""

from __future__ import annotations

# Pixels of a letter of 12 pixels, in the wider ones of the fonts that the page asks for; a letter that is not here is
# as wide as high.
_WIDTHS = {
    **dict.fromkeys("abdeghnopqu0123456789_", 7.4),
    **dict.fromkeys("ckvxyzs", 6.8),
    **dict.fromkeys("fijlt.,:;/|!' ()[]I", 4.2),
    **dict.fromkeys("r-", 4.8),
    **dict.fromkeys("=+<>\u2212", 8.0),
    **dict.fromkeys("ABEKPSVXYFTLZJ", 8.4),
    **dict.fromkeys("CDHNRUGOQ", 9.3),
    **dict.fromkeys("wm", 10.8),
    **dict.fromkeys("MW", 11.9),
}
_SIZE = 12.0


def width_of(text: str) -> float:
    """Return about how many pixels a text is wide.

    Examples
    --------
    >>> width_of("ill") < width_of("www")
    True
    """
    return sum(_WIDTHS.get(letter, _SIZE) for letter in text)


def cut_to(text: str, most: float) -> str:
    """Cut a text, with dots at its end, where it is wider than there is room.

    Examples
    --------
    >>> cut_to("sex=Female", 170.0), cut_to("W" * 40, 60.0)
    ('sex=Female', 'WWWW…')
    """
    if width_of(text) <= most:
        return text
    room = most - _SIZE
    kept = 0
    while kept < len(text) and width_of(text[: kept + 1]) <= room:
        kept += 1
    return text[:kept] + "…"
