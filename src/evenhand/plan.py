"""The plan: which audits run, with which options, on how much error."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError, near_matches

AUDITS = ("group", "projection", "individual", "proxy", "tail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an audit is to do, decided before the data are looked at.

    Parameters
    ----------
    audits : tuple of str
        Which audits run, of ``"group"``, ``"projection"``, ``"individual"``, ``"proxy"`` and ``"tail"``.
    alpha : float
        Error rate over all findings of all audits.
    correction : {"holm", "bonferroni", "bh", "none", "max-t"}
        How p-values are adjusted over them.
    group, projection, individual, proxy, tail : mapping
        Options of each audit's function beyond those above, such as ``group={"metrics": ["fnr"], "margin": 0.05}``.

    Examples
    --------
    >>> Plan(alpha=0.01, group={"metrics": ["fnr", "fpr"]}).to_dict()["alpha"]
    0.01
    """

    audits: tuple[str, ...] = ("group",)
    alpha: float = 0.05
    correction: str = "holm"
    group: Mapping[str, Any] = field(default_factory=dict)
    projection: Mapping[str, Any] = field(default_factory=dict)
    individual: Mapping[str, Any] = field(default_factory=dict)
    proxy: Mapping[str, Any] = field(default_factory=dict)
    tail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "audits", tuple(self.audits))
        for name in self.audits:
            if name not in AUDITS:
                raise UsageError(f"Audit `{name}` is not known.{near_matches(name, AUDITS)}")
        if not self.audits:
            raise UsageError("The plan names no audit. Name at least one in `audits`.")

    @classmethod
    def from_toml(cls, path: str | Path) -> Plan:
        """Read a plan from a TOML file; its keys are the parameters above.

        Parameters
        ----------
        path : str or Path
            Such as ``audit.toml``.

        Returns
        -------
        Plan
        """
        try:
            content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"Plan `{path}` cannot be read: {error}.") from error
        known = [f.name for f in fields(cls)]
        for key in content:
            if key not in known:
                raise UsageError(f"Plan `{path}` has the key `{key}`, which is not known.{near_matches(key, known)}")
        return cls(**content)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self)
