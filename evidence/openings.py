"""Write how each audit's page begins: an example in words and a picture, from ``evidence/audit_examples.json``.

``python evidence/openings.py`` writes ``evidence/opening-*.md`` and ``docs/images/audit-*.svg``. A test checks that
both are up to date.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MODEL = "a logistic model that predicts from census data who earns more than 50,000 dollars"
WOMEN, MEN = "sex=Female", "sex=Male"
INK, SOFT, EMPTY, FIRST, SECOND = "#1b2430", "#4d5967", "#d5dbe3", "#b3261e", "#2a5fa5"
WIDTH = 640


def stored() -> dict[str, Any]:
    """Return the numbers of the examples."""
    numbers: dict[str, Any] = json.loads((ROOT / "evidence" / "audit_examples.json").read_text(encoding="utf-8"))
    return numbers


def text(x: float, y: float, words: str, *, size: int = 14, fill: str = INK, anchor: str = "start") -> str:
    """Return a line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}">{escape(words)}</text>'


def card(title: str, height: int, marks: Sequence[str]) -> str:
    """Return a picture on a white card, which can be read on a light page and on a dark one."""
    frame = f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="#fff" stroke="{EMPTY}"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
    style = 'font-family="system-ui, -apple-system, Segoe UI, Roboto, Liberation Sans, sans-serif" role="img">'
    body = [f"<title>{escape(title)}</title>", frame, text(24, 34, title, size=16), *marks]
    return f"{head}{style}\n" + "\n".join(body) + "\n</svg>\n"


def people(title: str, sides: Sequence[tuple[str, float, str]]) -> str:
    """Draw a hundred people for each side, those concerned in colour."""
    marks = []
    for left, (who, share, colour) in zip((24, 344), sides, strict=True):
        number = round(100 * share)
        marks.append(text(left, 64, f"{who}: {number} of 100", size=14, fill=SOFT))
        for j in range(100):
            x, y = left + 8 + 26 * (j % 10), 86 + 17 * (j // 10)
            marks.append(f'<circle cx="{x}" cy="{y}" r="6" fill="{colour if j < number else EMPTY}"/>')
    return card(title, 264, marks)


def bars(title: str, rows: Sequence[tuple[str, float, str, str]], *, limit: tuple[float, str] | None = None) -> str:
    """Draw one bar for each row: its name, its length, what stands beside it, its colour."""
    most = max([length for _, length, _, _ in rows] + ([limit[0]] if limit else []))
    left, room, marks = 210, 290, []
    for j, (name, length, beside, colour) in enumerate(rows):
        y, wide = 54 + 30 * j, max(room * length / most, 2)
        marks += [
            text(left - 12, y + 15, name, fill=SOFT, anchor="end"),
            f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="20" rx="3" fill="{colour}"/>',
            text(left + wide - 8, y + 15, beside, anchor="end", fill="#fff" if colour != EMPTY else INK)
            if limit
            else text(left + wide + 8, y + 15, beside),
        ]
    bottom = 54 + 30 * len(rows)
    if limit:
        x = left + room * limit[0] / most
        marks.append(f'<path d="M{x:.1f} 46V{bottom}" stroke="{INK}" stroke-width="1.5" stroke-dasharray="5 4"/>')
        marks.append(text(x, bottom + 18, limit[1], size=13, fill=SOFT, anchor="middle"))
    return card(title, bottom + (34 if limit else 16), marks)


def of_100(share: float) -> str:
    """Write a share in people."""
    return f"{round(100 * share)} of 100"


def points(value: float) -> str:
    """Write a difference of shares in points."""
    return f"{100 * abs(value):.1f} points"


def group(numbers: dict[str, Any]) -> tuple[str, str]:
    """Tell how many women and men with a high income are turned down."""
    women, men = numbers["values"][WOMEN], numbers["values"][MEN]
    low, high = numbers["interval"]["low"], numbers["interval"]["high"]
    said = (
        f"An example: {MODEL}. Of the women who do earn that much it turns down {of_100(women)}, of the men "
        f"{of_100(men)}. The difference is {points(women - men)}. The data are compatible with differences between "
        f"{points(low)} and {points(high)}, and not with no difference. The verdict is `{numbers['verdict']}`."
    )
    sides = [("Women", women, FIRST), ("Men", men, SECOND)]
    return said, people("People with a high income who are turned down", sides)


def projection(numbers: dict[str, Any]) -> tuple[str, str]:
    """Tell whose decision would have to change."""
    moved = [c for c in numbers["changes"] if c["people"]]
    who = {WOMEN: "women", MEN: "men"}
    words = {(0, 1): "now turned down, then chosen", (1, 0): "now chosen, then turned down"}
    listed = " and ".join(f"{c['people']} {who[c['group']]} ({words[c['from'], c['to']]})" for c in moved)
    said = (
        f"An example: {MODEL}, and finds more of the men who do than of the women. The nearest data on which it finds "
        f"equal shares differ in {sum(c['people'] for c in moved)} of {numbers['rows']:,} people: {listed}. All others "
        "may stay as they are. The audit says whether so small a distance could be noise, and lists these people."
    )
    rows = [
        (f"{who[c['group']]}, {'to be chosen' if c['to'] else 'to be refused'}", c["people"], f"{c['people']} people",
         FIRST if c["group"] == WOMEN else SECOND)
        for c in moved
    ]  # fmt: skip
    return said, bars(f"Who would have to change, of {numbers['rows']:,} people", rows)


def individual(numbers: dict[str, Any]) -> tuple[str, str]:
    """Tell how much worse people fare when they are moved."""
    loss, error, most = (100 * numbers[key] for key in ("loss", "error", "tolerance"))
    said = (
        f"An example: {MODEL}. Each person is moved to where the model does worst among people who count as similar. "
        f"For every 100 wrong decisions before there are {error:.0f} after. The loss, which also counts how sure the "
        f"model was, grows from 100 to {loss:.0f}. Up to {most:.0f} is tolerated here. The verdicts are "
        f"`{numbers['error_verdict']}` for the wrong decisions and `{numbers['loss_verdict']}` for the loss."
    )
    rows = [
        ("before", 100.0, "100", EMPTY),
        ("loss, after", loss, f"{loss:.0f}", SECOND),
        ("wrong decisions, after", error, f"{error:.0f}", SECOND),
    ]
    return said, bars("The same model, on people moved to similar ones", rows, limit=(most, f"tolerated: {most:.0f}"))


def proxy(numbers: dict[str, Any]) -> tuple[str, str]:
    """Tell through which features a gap goes."""
    order = sorted(numbers["features"].items(), key=lambda pair: -abs(pair[1]))[:5]
    first, value = order[0]
    said = (
        f"An example: {MODEL}. Among people who earn less, it wrongly expects a high income of women less often than "
        f"of men, by {points(numbers['gap'])} in this audit. {points(value)} of them go through `{first}` alone. The "
        "parts of the features need not add up to the gap, because several features can say the same about a person, "
        "and some of them work against it."
    )
    sign = 1 if numbers["gap"] > 0 else -1
    with_it, against = ("", SECOND), (", the other way", FIRST)
    ends = [with_it if sign * size > 0 else against for _, size in order]
    rows = [
        (name, abs(size), points(size) + end, colour) for (name, size), (end, colour) in zip(order, ends, strict=True)
    ]
    return said, bars("How much of the gap goes through each feature", rows)


def tail(numbers: dict[str, Any]) -> tuple[str, str]:
    """Tell how much the worst-treated person's score changes."""
    women, men, every = numbers["values"][WOMEN], max(numbers["values"][MEN], 0.0), f"{numbers['horizon']:,.0f}"
    men_gain = f"rises by {points(men)} or more" if men > 0.0005 else "does not rise"
    said = (
        f"An example: {MODEL}, and which was given the sex. Record a woman as a man, leave everything else as it is, "
        f"and ask the model again: for one in {every} women the score rises by {points(women)} or more, on a scale "
        f"from 0 to 100. For men who are recorded as women, even the one who gains most in {every}, it {men_gain}."
    )
    rows = [
        ("woman, recorded as a man", women, f"+{points(women)}", FIRST),
        ("man, recorded as a woman", men, f"+{points(men)}", SECOND),
    ]
    return said, bars(f"Rise in score for the worst-treated person in {every}", rows)


def scan(numbers: dict[str, Any]) -> tuple[str, str]:
    """Tell how the most striking subgroup fares."""
    name = numbers["subgroup"]
    own, rest = numbers["values"][name], numbers["values"]["rest"]
    said = (
        f"An example: {MODEL}. Of the people with a high income, it turns down {of_100(own)} among `{name}` and "
        f"{of_100(rest)} among everybody else. Of all combinations of sex and race that were searched, this one stands "
        "out most clearly."
    )
    sides = [(name.replace("sex=", "").replace("race=", ""), own, SECOND), ("Everybody else", rest, FIRST)]
    return said, people("People with a high income who are turned down", sides)


OPENINGS = {
    "group": group,
    "projection": projection,
    "individual": individual,
    "proxy": proxy,
    "tail": tail,
    "scan": scan,
}


def made() -> dict[Path, str]:
    """Return every opening and every picture by its path."""
    files = {}
    for name, tell in OPENINGS.items():
        said, picture = tell(stored()[name])
        title = picture.partition("<title>")[2].partition("</title>")[0]
        files[ROOT / "evidence" / f"opening-{name}.md"] = f"{said}\n\n![{title}](../images/audit-{name}.svg)\n"
        files[ROOT / "docs" / "images" / f"audit-{name}.svg"] = picture
    return files


def write() -> None:
    """Write the openings and their pictures."""
    for path, content in made().items():
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write()
