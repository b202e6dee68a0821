"""Findings with their evidence: a small collection that can be asked for some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, overload

from evenhand.errors import UsageError, near_matches
from evenhand.results.display import Displayed
from evenhand.results.evidence import Evidence
from evenhand.results.finding import Finding, Verdict, without_form
from evenhand.results.frame import frame_of
from evenhand.results.table import text_table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings(Displayed):
    """Findings in a fixed order, with the evidence behind each.

    Parameters
    ----------
    findings : tuple of Finding
        The answer; iterating iterates over them.
    evidence : tuple of Evidence
        For each finding, what the report draws and a reader may check.

    Examples
    --------
    >>> import evenhand as eh
    >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), rng=0)
    >>> [f.measure for f in run["fnr"]]
    ['fnr']
    """

    report: ClassVar[Callable[[], ModuleType]]  # handed over by `evenhand/__init__.py`: the room of that name

    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...]

    def __post_init__(self) -> None:
        if len(self.findings) != len(self.evidence):
            raise ValueError("each finding needs its evidence")

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice | str) -> Findings: ...

    def __getitem__(self, index: int | slice | str) -> Finding | Findings:
        """Return one finding by its place, or those of a slice or of a measure."""
        if isinstance(index, str):
            return self.find(measure=index)
        if isinstance(index, slice):
            return Findings(findings=self.findings[index], evidence=self.evidence[index])
        return self.findings[index]

    def find(
        self,
        *,
        measure: str | None = None,
        group: str | None = None,
        audit: str | None = None,
        verdict: str | None = None,
    ) -> Findings:
        """Return the findings that are about all of what is named.

        Parameters
        ----------
        measure : str, optional
            A measure such as ``"fnr_ratio"``, or a metric such as ``"fnr"`` for all findings about it: the difference,
            the ratio, the test of all groups at once, the features that carry it.
        group : str, optional
            A group such as ``"sex=Female"``, its label alone, or an attribute such as ``"sex"`` for all of its groups.
        audit : str, optional
            Such as ``"group"``.
        verdict : str, optional
            One of the four words.

        Returns
        -------
        Findings
            Empty where each name occurs, but not together.

        Raises
        ------
        UsageError
            When a name occurs in no finding; near matches are offered.

        Examples
        --------
        >>> import evenhand as eh
        >>> run = eh.audit(eh.datasets.planted(rows=400, rng=0), rng=0)
        >>> len(run.find(measure="fnr", verdict="inconclusive"))
        1
        """
        asked = {"measure": measure, "group": group, "audit": audit, "verdict": verdict}
        kept = set(range(len(self.findings)))
        for key, name in asked.items():
            if name is None:
                continue
            names = [_NAMES[key](finding) for finding in self.findings]
            with_it = {j for j, own in enumerate(names) if name in own}
            if not with_it and not (key == "verdict" and name in set(Verdict)):
                known = set(Verdict) if key == "verdict" else dict.fromkeys(one for own in names for one in own)
                raise UsageError(f"No finding has the {key} `{name}`.{near_matches(name, known)}")
            kept &= with_it
        order = sorted(kept)
        return Findings(
            findings=tuple(self.findings[j] for j in order), evidence=tuple(self.evidence[j] for j in order)
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary per finding, ready for any data frame."""
        return [f.to_dict() for f in self.findings]

    def to_frame(self, kind: str | None = None) -> Any:
        """Return a data frame with one row per finding, of pandas where it is installed, else of polars.

        Parameters
        ----------
        kind : {"pandas", "polars"}, optional
            To choose the library.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            Columns: audit, measure, group, reference, estimate, low, high, level, pvalue, pvalue_adjusted, margin,
            verdict, reason. A finding about more than two groups names all of them under ``group``.
        """
        return frame_of(self.findings, kind)

    def plot(self, *, theme: str = "light") -> Any:
        """Return an Altair chart of the estimates with their intervals; needs ``evenhand[plot]``.

        Parameters
        ----------
        theme : {"light", "dark"}
            For the background it will stand on.

        Returns
        -------
        altair.LayerChart or altair.VConcatChart
            One panel for each measure.
        """
        return Findings.report().plot(self, theme=theme)

    def __str__(self) -> str:
        return text_table(self.findings)


def _measure_names(finding: Finding) -> Sequence[str]:
    own = finding.measure
    return (own, without_form(own), without_form(own).removesuffix("_ratio"), own.partition(":")[0])


def _group_names(finding: Finding) -> Sequence[str]:
    parts = [group.partition("=") for group in finding.groups]
    return (*finding.groups, *(name for name, _, _ in parts), *(label for _, _, label in parts))


_NAMES: dict[str, Callable[[Finding], Sequence[str]]] = {
    "measure": _measure_names,
    "group": _group_names,
    "audit": lambda finding: (finding.audit,),
    "verdict": lambda finding: (str(finding.verdict),),
}
