"""Evenhand: is what we see unfair treatment, or noise, and how sure are we?"""

import typing as _typing
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

from evenhand.audits.registry import AUDITS as _AUDITS
from evenhand.errors import (
    DataError,
    EvenhandError,
    EvenhandWarning,
    MissingDependencyError,
    UsageError,
)
from evenhand.intake import AuditData, read
from evenhand.metrics import METRICS, Metric, cell_metric, row_metric
from evenhand.plan import Plan
from evenhand.results import AuditResult, AuditRun, Finding, Findings, Interval, Verdict
from evenhand.results import Displayed as _Displayed
from evenhand.results import Evidence as _Evidence

if _typing.TYPE_CHECKING:
    from evenhand import datasets, mitigation, similarity
    from evenhand.audits.projection.boundary import Distances
    from evenhand.audits.projection.criteria import Criterion
    from evenhand.change import Change, ChangeVerdict, Comparison, compare
    from evenhand.predictions import audit_arrays
    from evenhand.repair import MitigationResult, mitigate
    from evenhand.report.bias_audit import BiasAudit, bias_audit
    from evenhand.run import audit
    from evenhand.sizing import PowerResult, power
    from evenhand.watch import Watch

__version__: str


def _report() -> _ModuleType:
    from evenhand import report

    return report


def _sharing() -> _ModuleType:
    from evenhand import sharing

    return sharing


def _notebook(value: _typing.Any) -> str:
    from evenhand.report.notebook import notebook_html

    return notebook_html(value)


def _kinds_of_evidence(audit: str) -> _typing.Sequence[type[_Evidence]]:
    return _AUDITS[audit].kinds_of_evidence if audit in _AUDITS else (_Evidence,)


# A run writes its own report and is read back from a file, and objects are shown in notebooks, but results come before
# audits and report and know nothing of them. The package knows every room: it hands them over here, to be loaded when
# they are first asked for.
AuditResult.kinds_of_evidence = staticmethod(_kinds_of_evidence)
AuditRun.report = Findings.report = staticmethod(_report)
AuditRun.sharing = staticmethod(_sharing)
_Displayed.notebook = staticmethod(_notebook)

# Loaded when first used: half of the package, which most programs that import it never need.
_LATER = {
    **{f"audit_{name}": f"evenhand.audits.{name}" for name in _AUDITS},
    "audit": "evenhand.run",
    "audit_arrays": "evenhand.predictions",
    "Distances": "evenhand.audits.projection.boundary",
    "Criterion": "evenhand.audits.projection.criteria",
    "PowerResult": "evenhand.sizing",
    "power": "evenhand.sizing",
    **dict.fromkeys(("Change", "ChangeVerdict", "Comparison", "compare"), "evenhand.change"),
    "MitigationResult": "evenhand.repair",
    "mitigate": "evenhand.repair",
    "Watch": "evenhand.watch",
    "BiasAudit": "evenhand.report.bias_audit",
    "bias_audit": "evenhand.report.bias_audit",
}


def __getattr__(name: str) -> _typing.Any:
    if name == "__version__":
        return _import_module("importlib.metadata").version("evenhand")
    if name == "datasets":
        return _import_module("evenhand.datasets")
    if name == "mitigation":
        return _import_module("evenhand.mitigation")
    if name == "similarity":
        return _import_module("evenhand.similarity")
    if name in _LATER:
        return getattr(_import_module(_LATER[name]), name)
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "METRICS",
    "AuditData",
    "AuditResult",
    "AuditRun",
    "BiasAudit",
    "Change",
    "ChangeVerdict",
    "Comparison",
    "Criterion",
    "DataError",
    "Distances",
    "EvenhandError",
    "EvenhandWarning",
    "Finding",
    "Findings",
    "Interval",
    "Metric",
    "MissingDependencyError",
    "MitigationResult",
    "Plan",
    "PowerResult",
    "UsageError",
    "Verdict",
    "Watch",
    "audit",
    "audit_arrays",
    "bias_audit",
    "cell_metric",
    "compare",
    "datasets",
    "mitigate",
    "mitigation",
    "power",
    "read",
    "row_metric",
    "similarity",
]
__all__ += [f"audit_{name}" for name in _AUDITS]
