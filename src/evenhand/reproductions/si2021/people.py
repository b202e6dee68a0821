"""The data sets of the paper, and how its authors split them into training and test rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import datasets
from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.projection import audit_projection
from evenhand.audits.projection.evidence import ProjectionEvidence
from evenhand.intake.data import AuditData
from evenhand.kernels.shared.seeds import old_published_stream

#: In the order of the tables.
SETS = ("arrhythmia", "compas", "drug")

_SEED = 123456  # of the authors' programs
_CELLS = ((1, 1), (0, 1), (1, 0), (0, 0))  # group and outcome, in the order in which they draw
_TRAINED = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Features, outcome and sensitive attribute of a data set."""

    X: FloatArray  # (n, p)
    y: IntArray  # (n,)
    a: IntArray  # (n,)


def read_people(name: str) -> People:
    """Return a data set by name, with the authors' choice of rows and columns."""
    return {"arrhythmia": _arrhythmia, "compas": _compas, "drug": _drug}[name]()


def authors_splits(people: People, many: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield training and test rows, the same that the authors' programs draw.

    Training rows are drawn with replacement inside each cell of group and outcome, seven tenths of its size; the rows
    never drawn, about half, are the test rows. The paper calls it a 70 % to 30 % split.
    """
    rng = old_published_stream(_SEED)
    n = people.y.size
    for _ in range(many):
        train, test = [], []
        for a, y in _CELLS:
            rows = np.flatnonzero((people.a == a) & (people.y == y))
            drawn = rng.randint(0, rows.size, size=int(rows.size / n * int(_TRAINED * n)))
            train.append(rows[drawn])
            test.append(np.delete(rows, drawn))
        yield np.concatenate(train), np.concatenate(test)


def project(
    people: People, rows: IntArray, machine: tuple[FloatArray, float], **options: Any
) -> tuple[float, ProjectionEvidence]:
    """Audit a linear classifier, given by coefficients and intercept, on test rows: the p-value, and its evidence."""
    coefficients, intercept = machine
    margin = people.X[rows] @ coefficients + intercept
    data = AuditData.from_arrays(
        outcome=people.y[rows], decision=(margin >= 0).astype(int), groups={"a": [str(v) for v in people.a[rows]]}
    )
    distance = np.abs(margin) / max(float(np.linalg.norm(coefficients)), 1e-300)
    result = audit_projection(data, distance=distance, beside=False, **options)
    evidence = result.evidence[0]
    assert isinstance(evidence, ProjectionEvidence)
    return result[0].pvalue, evidence


def _compas() -> People:
    """5,278 rows: African-American or Caucasian; age category, sex, charge degree as 0/1, priors z-scored."""
    t = datasets.table("compas")
    days = np.array([float(v) if v not in (None, "") else np.nan for v in t["days_b_screening_arrest"]], dtype=float)
    keep = (
        (np.abs(days) <= 30)
        & (np.asarray(t["is_recid"]).astype(int) != -1)
        & (np.asarray(t["c_charge_degree"]) != "O")
        & (np.asarray(t["score_text"]) != "N/A")
        & np.isin(t["race"], ["African-American", "Caucasian"])
    )
    priors = np.asarray(t["priors_count"]).astype(float)[keep]
    ages = np.asarray(t["age_cat"])[keep]
    X = np.column_stack(
        [
            *(ages == level for level in sorted(set(ages))),
            np.asarray(t["sex"])[keep] == "Male",
            (priors - priors.mean()) / priors.std(),
            np.asarray(t["c_charge_degree"])[keep] == "M",
        ]
    ).astype(float)
    y = np.asarray(t["two_year_recid"]).astype(int)[keep]
    return People(X, y, (np.asarray(t["race"])[keep] == "African-American").astype(int))


def _drug() -> People:
    """1,885 rows: never used cannabis against used; White against others; 11 quantified features."""
    columns = [np.asarray(c) for c in datasets.table("drug").values()]
    X = np.column_stack([columns[k].astype(float) for k in range(1, 13) if k != 5])
    y = (np.char.strip(columns[18].astype(str)) == "CL0").astype(int)
    return People(X, y, np.isclose(columns[5].astype(float), -0.31685).astype(int))


def _arrhythmia() -> People:
    """452 rows: normal against arrhythmia; sex; the first 12 other columns, z-scored.

    As with the authors, a missing cell holds the number of times that the column's most frequent value occurs.
    """
    columns = [np.asarray(c) for c in datasets.table("arrhythmia").values()]
    made = []
    for k in (0, *range(2, 13)):
        values = np.array([float(x) if x not in (None, "?", "") else np.nan for x in columns[k]], dtype=float)
        most = int(np.unique(values[~np.isnan(values)], return_counts=True)[1].max())
        filled = np.where(np.isnan(values), most, values)
        made.append((filled - filled.mean()) / filled.std())
    outcome = (columns[-1].astype(float) == 1).astype(int)
    return People(np.column_stack(made), outcome, columns[1].astype(float).astype(int))
