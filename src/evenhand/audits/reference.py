"""The group that an attribute's other groups are compared with: chosen and checked here, for every audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.errors import UsageError, near_matches
from evenhand.intake import Attribute, AuditData
from evenhand.summaries import group_sizes


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
    if isinstance(wanted, str):
        if len(audited) != 1:
            name = next((a.name for a in audited), "sex")
            raise UsageError(
                f"`reference` is the single label `{wanted}` but there are {len(audited)} attributes. "
                f"Give a mapping such as {{{name!r}: {wanted!r}}}."
            )
        wanted = {audited[0].name: wanted}
    wanted = wanted or {}
    known = {a.name: [label for k, label in enumerate(a.labels) if k != a.unknown] for a in data.attributes}
    for name, label in wanted.items():
        if name not in known:
            raise UsageError(
                f"`reference` names the attribute `{name}`, which is not audited.{near_matches(name, known)}"
            )
        if str(label) not in known[name]:
            raise UsageError(
                f"Reference `{name}={label}` is not a group in the data.{near_matches(label, known[name])}"
            )
    return {a.name: str(wanted.get(a.name, _largest(data, a))) for a in audited}


def _largest(data: AuditData, attribute: Attribute) -> str:
    """Return the label of the group with the most rows; people of unknown group are none."""
    sizes = group_sizes(data, attribute)
    if attribute.unknown is not None:
        sizes[attribute.unknown] = -1
    return attribute.labels[int(sizes.argmax())]
