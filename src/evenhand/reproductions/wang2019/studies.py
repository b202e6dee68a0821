"""The authors' processed Adult and COMPAS: a logistic regression trained on 30 % of the rows, audited on the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import datasets
from evenhand.arrays import BoolArray, FloatArray
from evenhand.audits.proxy import ProxyResult, audit_proxy
from evenhand.intake import AuditData
from evenhand.kernels.shared.logistic import LogisticFit, fit_logistic
from evenhand.kernels.shared.seeds import stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A processed data set: where it is, its columns, and which dummies belong together."""

    table: str
    outcome: str
    group: str
    reference: str
    blocks: Mapping[str, Sequence[str]]


def _dummies(name: str, levels: str) -> tuple[str, ...]:
    return tuple(f"{name}_{level}" for level in levels.split())


_COUNTS = "eq_0 geq_1 geq_2 geq_5"
STUDIES = {
    "adult": Study(
        table="adult-proxy",
        outcome="IncomeOver50K",
        group="Sex",
        reference="Male",
        blocks={
            "HighestDegree": _dummies("HighestDegree", "is_HS is_AS is_BS is_MSorPhD"),
            "JobType": _dummies("JobType", "is_WhiteCollar is_BlueCollar is_Specialized is_ArmedOrProtective"),
            "Industry": _dummies("Industry", "is_Private is_Government is_SelfEmployed"),
        },
    ),
    "compas": Study(
        table="compas-proxy",
        outcome="arrest",
        group="race",
        reference="white",
        blocks={
            "age": _dummies("age", "leq_24 25_to_45 geq_46"),
            "n_priors": _dummies("n_priors", _COUNTS),
            "n_juvenile_misdemeanors": _dummies("n_juvenile_misdemeanors", _COUNTS),
            "n_juvenile_felonies": _dummies("n_juvenile_felonies", _COUNTS),
        },
    ),
}
TRAINED = 0.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """A data set with a model trained on part of its rows."""

    study: Study
    features: Mapping[str, FloatArray]  # 0/1 columns by name
    outcome: FloatArray
    group: np.ndarray  # labels of all rows
    train: BoolArray  # rows that trained the model
    model: LogisticFit

    @property
    def columns(self) -> FloatArray:
        """The features as columns of one array."""
        return np.column_stack(list(self.features.values()))

    @property
    def audited(self) -> BoolArray:
        """The rows that did not train the model."""
        return ~self.train

    @property
    def inside(self) -> BoolArray:
        """All rows of the group."""
        return np.asarray(self.group != self.study.reference)

    def data(self, rows: BoolArray) -> AuditData:
        """Return some of the rows, scored by the model."""
        return AuditData.from_arrays(
            outcome=self.outcome[rows],
            score=self.model.probability(self.columns[rows]),
            groups={self.study.group: self.group[rows]},
            features={name: values[rows] for name, values in self.features.items()},
        )

    def audit(self, measure: str, data: AuditData, **options: Any) -> ProxyResult:
        """Audit data with "vanilla" logistic nuisance models, as in the paper."""
        return audit_proxy(
            data,
            measure=measure,
            reference=self.study.reference,
            model=self.model.probability,
            interactions=False,
            **options,
        )


def read_study(name: str) -> tuple[dict[str, FloatArray], FloatArray, np.ndarray]:
    """Read features as 0/1 numbers, the outcome and the group."""
    study = STUDIES[name]
    raw = datasets.table(study.table)
    outcome = np.array([str(v).removesuffix(".0") == "1" for v in raw[study.outcome]], dtype=float)
    features = {
        column: np.array([str(v).lower().removesuffix(".0") in ("1", "true") for v in values], dtype=float)
        for column, values in raw.items()
        if column not in (study.outcome, study.group)
    }
    return features, outcome, np.array([str(v) for v in raw[study.group]])


def make_split(name: str, number: int) -> Split:
    """Train the model on a random 30 % of the rows."""
    features, outcome, group = read_study(name)
    order = stream(number, f"wang2019/{name}").permutation(outcome.size)
    train = np.asarray(order < TRAINED * outcome.size)
    X = np.column_stack(list(features.values()))
    model = fit_logistic(X[train], outcome[train], l2=1.0)
    return Split(study=STUDIES[name], features=features, outcome=outcome, group=group, train=train, model=model)
