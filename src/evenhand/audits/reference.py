"""The group that an attribute's other groups are compared with: chosen and checked here, for every audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.errors import UsageError, near_matches
from evenhand.intake import Attribute, AuditData
from evenhand.summaries import group_sizes

# What a group may be compared with that is not one group, as the group audit understands it.
WORDS = {
    "highest": "the group whose value is highest, whichever that is",
    "rest": "all other groups together",
    "overall": "everybody, the group included",
}


def references(
    data: AuditData, wanted: Mapping[str, str] | str | None = None, attributes: Sequence[Attribute] | None = None
) -> dict[str, str]:
    """Name each attribute's reference group: the user's choice, or the group with the most rows.

    Parameters
    ----------
    data : AuditData
        Records.
    wanted : mapping of str to str, str or None
        Attribute to label; a single label where one attribute is audited.
    attributes : sequence of Attribute, optional
        Those audited; by default all.

    Returns
    -------
    dict of str to str
        Attribute to label.

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[0, 1, 1], groups={"g": ["a", "a", "b"]})
    >>> references(data), references(data, "b")
    ({'g': 'a'}, {'g': 'b'})
    """
    audited = data.attributes if attributes is None else attributes
    if isinstance(wanted, str) and wanted in WORDS and not any(wanted in a.labels for a in audited):
        wanted = {a.name: wanted for a in audited}
    if isinstance(wanted, str):
        if len(audited) != 1:
            name = next((a.name for a in audited), "sex")
            raise UsageError(
                f"`reference=` is the single label `{wanted}` but there are {len(audited)} attributes. "
                f"Give a mapping such as {{{name!r}: {wanted!r}}}."
            )
        wanted = {audited[0].name: wanted}
    wanted = wanted or {}
    known = {a.name: [label for k, label in enumerate(a.labels) if k != a.unknown] for a in data.attributes}
    for name, label in wanted.items():
        if name not in known:
            raise UsageError(
                f"`reference=` names the attribute `{name}`, which is not audited.{near_matches(name, known)}"
            )
        if str(label) in WORDS and str(label) not in known[name]:
            raise UsageError(
                f"Reference `{name}={label}` is a word of the group audit, for {WORDS[str(label)]}. Other audits "
                f"compare with one group: name it, such as {{{name!r}: {known[name][0]!r}}}."
            )
        if str(label) not in known[name]:
            raise UsageError(
                f"Reference `{name}={label}` is not a group in the data.{near_matches(label, known[name])}"
            )
    return {a.name: str(wanted.get(a.name, _largest(data, a))) for a in audited}


def words_among(data: AuditData, wanted: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return the attributes whose groups are compared with none of them, and the word that says with what.

    Parameters
    ----------
    data : AuditData
        Records.
    wanted : mapping of str to str, str or None
        As the user named references. In a mapping a group's label goes before a word; a word alone holds for all
        attributes, and is refused where a group has it as its label.

    Returns
    -------
    dict of str to str
        Attribute to one of `WORDS`.

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[0, 1, 1], groups={"g": ["a", "a", "b"]})
    >>> words_among(data, "highest"), words_among(data, {"g": "a"})
    ({'g': 'highest'}, {})
    """
    if isinstance(wanted, str):
        if wanted not in WORDS:
            return {}
        taken = next((a.name for a in data.attributes if wanted in a.labels), None)
        if taken is not None:
            raise UsageError(
                f"`reference=` is `{wanted}`, which is a group of `{taken}` and also a word for {WORDS[wanted]}. Write "
                f"{{{taken!r}: {wanted!r}}} for the group; for the word, give the group another label."
            )
        return {a.name: wanted for a in data.attributes}
    known = {a.name: a.labels for a in data.attributes}
    return {k: v for k, v in (wanted or {}).items() if v in WORDS and k in known and v not in known[k]}


def groups_among(data: AuditData, wanted: Mapping[str, str] | str | None) -> Mapping[str, str] | str | None:
    """Return the references that are groups, for audits that compare with one group.

    Examples
    --------
    >>> data = AuditData.from_arrays(decision=[0, 1, 1], groups={"g": ["a", "a", "b"]})
    >>> groups_among(data, {"g": "rest"}), groups_among(data, {"g": "b"})
    ({}, {'g': 'b'})
    """
    words = words_among(data, wanted)
    if isinstance(wanted, str) or wanted is None:
        return None if words else wanted
    return {k: v for k, v in wanted.items() if k not in words}


def _largest(data: AuditData, attribute: Attribute) -> str:
    """Return the label of the group with the most rows; people of unknown group are none."""
    sizes = group_sizes(data, attribute)
    if attribute.unknown is not None:
        sizes[attribute.unknown] = -1
    return attribute.labels[int(sizes.argmax())]
