"""Write the API reference of the docs from the docstrings: ``python evidence/api.py``.

Every name in ``evenhand.__all__`` and in the public lists of its three modules gets a section on one page of
``docs/api``, chosen by the room that defines it. A test checks that each name has its section and that no page
is out of date.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import evenhand

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "api"
# Page: its title, what it holds, and the rooms of the package whose public names stand on it.
PAGES = {
    "data": ("Data", "Files, frames and arrays become `AuditData`.", ("intake",)),
    "audits": ("Audits", "Each audit alone, and several on one error rate.", ("audits", "run", "predictions")),
    "results": ("Results", "What every audit returns, and files made of it.", ("results", "report", "sharing")),
    "metrics": ("Metrics", "The catalogue, and metrics of your own.", ("metrics",)),
    "planning": ("Plan and power", "What is asked, and what the rows can show.", ("plan", "sizing")),
    "change": ("Changes over time", "Two models, two runs, or batches that keep coming.", ("change", "watch")),
    "repair": ("Repair", "Fit several repairs, choose one, certify it on people nobody has seen.", ("repair",)),
    "mitigation": ("Mitigation methods", "`evenhand.mitigation`: repairs as scikit-learn estimators.", ("mitigation",)),
    "similarity": ("Similarity", "`evenhand.similarity`: who counts as similar to whom.", ("similarity",)),
    "datasets": ("Data sets", "`evenhand.datasets`: real data with source and licence, made-up data.", ("datasets",)),
    "errors": ("Errors", "What is raised, and the warnings.", ("errors",)),
}  # fmt: skip
# Public names that are values and so do not know where they were defined.
_VALUES = {"METRICS": "metrics", "METHODS": "mitigation"}
_SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)


def public_names() -> Iterator[tuple[str, Any]]:
    """Yield every public name, as it is written after ``import evenhand``, with what it is."""
    for name in sorted(evenhand.__all__, key=str.lower):
        value = getattr(evenhand, name)
        if inspect.ismodule(value):
            for inner in value.__all__:
                yield f"{name}.{inner}", getattr(value, inner)
        else:
            yield name, value


def page_of(name: str, value: Any) -> str:
    """Return the page on which a public name stands."""
    last = name.rpartition(".")[2]
    room = _VALUES.get(last) or value.__module__.split(".")[1]
    for page, (_, _, rooms) in PAGES.items():
        if room in rooms:
            return page
    raise ValueError(
        f"`{name}` is public and its room `{room}` stands on no page: add the room to PAGES of {__file__}."
    )


def pages() -> dict[str, str]:
    """Return the text of every page by its name, the index with them."""
    names: dict[str, list[tuple[str, Any]]] = {page: [] for page in PAGES}
    for name, value in public_names():
        names[page_of(name, value)].append((name, value))
    texts = {}
    lines = ["# API reference", "", "Every public name, from its docstring. After `import evenhand as eh`:", ""]
    for page, (title, says, _) in PAGES.items():
        parts = [f"# {title}", says] + [section(name, value) for name, value in names[page]]
        texts[page] = "\n\n".join(parts) + "\n"
        lines += [f"## {title}", "", "| name | is |", "| --- | --- |"]
        lines += [f"| [`{name}`]({page}.md#{anchor(name)}) | {cell(summary(value))} |" for name, value in names[page]]
        lines.append("")
    return {"index": "\n".join(lines), **texts}


def anchor(name: str) -> str:
    """Return the address of a name's section on its page."""
    return name.replace(".", "-")


def summary(value: Any) -> str:
    """Return the first sentence of an object's docstring, or what a table of values holds."""
    if isinstance(value, Mapping):
        return f"Catalogue of {len(value)} names."
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def section(name: str, value: Any) -> str:
    """Return one public name's section."""
    parts = [f"## `{name}` {{ #{anchor(name)} }}"]
    if isinstance(value, Mapping):
        return "\n\n".join([*parts, summary(value), _catalogue(value)])
    if not (inspect.isclass(value) and issubclass(value, Enum | BaseException)):
        parts.append(f"```python\n{signature(f'evenhand.{name}', value)}\n```")
    parts.append(explained(inspect.getdoc(value) or ""))
    if inspect.isclass(value):
        parts += _members(name, value)
    return "\n\n".join(parts)


def signature(called: str, value: Any) -> str:
    """Write a call with its parameters, one per line where they are many, annotations as in the source."""
    parameters, shown, starred = list(inspect.signature(value).parameters.values()), [], False
    for p in parameters:
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        shown.append(f"{star}{p.name}{default}")
    line = f"{called}({', '.join(shown)})"
    return line if len(line) <= 80 else f"{called}(\n" + "".join(f"    {part},\n" for part in shown) + ")"


def _default(value: Any) -> str:
    """Write a default; objects whose text holds an address in memory are left out."""
    text = getattr(value, "__name__", None) or repr(value)
    return "..." if " at 0x" in text or text.startswith("<") else text


def explained(text: str) -> str:
    """Turn a numpydoc docstring into Markdown: lists of parameters as tables, examples as code."""
    pieces = _SECTION.split(text)
    parts = [prose(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.append(f"**{title}**")
        if title == "Examples":
            parts.append(f"```pycon\n{body.strip()}\n```")
        elif title in ("Parameters", "Attributes", "Returns", "Raises", "Yields"):
            parts.append(_entries(title, body))
        else:
            parts.append(prose(body))
    return "\n\n".join(part for part in parts if part)


def _entries(title: str, body: str) -> str:
    """Lay the entries of a section out as a table."""
    rows = []
    for entry in re.split(r"\n(?=\S)", body.strip()):
        head, _, text = entry.partition("\n")
        name, _, kind = head.partition(" : ")
        cells = (f"`{name}`", cell(kind), cell(text))
        rows.append(cells if title in ("Parameters", "Attributes") else (cell(head), cells[2]))
    head = ("name", "type", "meaning") if title in ("Parameters", "Attributes") else ("type", "meaning")
    if not any(row[-1] for row in rows):
        rows, head = [row[:-1] for row in rows], head[:-1]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def prose(text: str) -> str:
    """Write running text: code between single marks, what is indented as code, list items as they are."""
    parts = []
    for paragraph in re.split(r"\n{2,}", text.strip()):
        if paragraph.startswith("    "):
            parts.append(f"```\n{textwrap.dedent(paragraph)}\n```")
        else:
            parts.append(_marked(re.sub(r"^\.\. \[(\w+)\]", r"[\1]", paragraph)))
    return "\n\n".join(parts)


def cell(text: str) -> str:
    """Write a text as one table cell."""
    return _marked(" ".join(text.split())).replace("|", "\\|")


def _marked(text: str) -> str:
    """Write double marks of code as single ones, and keep braces and stars as they are."""
    return re.sub(r"``(.+?)``", r"`\1`", text.replace("::\n", ":\n"))


def _catalogue(values: Mapping[str, Any]) -> str:
    """Write a table of named values with what each is."""
    rows = [f"| `{key}` | {cell(getattr(value, 'says', '') or summary(value))} |" for key, value in values.items()]
    return "\n".join(["| name | is |", "| --- | --- |", *rows])


def _members(name: str, cls: type) -> Iterator[str]:
    """Yield the words of an enumeration, then each method and property that the class itself defines."""
    if issubclass(cls, Enum):
        yield "\n".join(f"- `{member.value}`" for member in cls)
    for key, member in vars(cls).items():
        if key.startswith("_") or not inspect.getdoc(member):
            continue
        call = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(call):
            yield f"### `{key}` {{ #{anchor(name)}-{key} }}"
            yield f"```python\n{signature(f'{cls.__name__}.{key}', call)}\n```"
            yield explained(inspect.getdoc(call) or "")
        elif isinstance(member, property):
            yield f"### `{key}` {{ #{anchor(name)}-{key} }}\n\nProperty. {explained(inspect.getdoc(member) or '')}"


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
