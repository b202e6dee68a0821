"""The data sets of table II as columns, outcome and one protected attribute with two groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.datasets.files import table
from evenhand.generators.columns import Columns


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One row of table II.

    Parameters
    ----------
    name, attribute : str
        Data set and protected attribute.
    privileged, unprivileged : str
        The two groups.
    columns : dict
        Features; the attribute's column holds the two labels.
    outcome : ndarray
        1 for the first label of table II.
    """

    name: str
    attribute: str
    privileged: str
    unprivileged: str
    columns: Columns
    outcome: FloatArray


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([value is None for value in values])


def _plain(columns: Columns, drop: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    out = {}
    for name, values in columns.items():
        if name in drop:
            continue
        if values.dtype == object:
            values = np.where(_missing(values), "unknown", values).astype(str)
        elif values.dtype.kind == "f":
            values = np.where(np.isnan(values), np.nanmedian(values), values)
        elif values.dtype.kind == "b":
            values = values.astype(np.int64)
        out[name] = values
    return out


def _case(
    name: str, attribute: str, labels: tuple[str, str], column: NDArray[Any], columns: Columns, outcome: NDArray[Any],
    drop: tuple[str, ...], keep: NDArray[np.bool_] | None = None,
) -> Case:  # fmt: skip
    """`labels` are (privileged, unprivileged); `column` is True for the privileged."""
    features = _plain(columns, drop)
    features[attribute] = np.where(column, labels[0], labels[1])
    keep = np.ones(len(outcome), dtype=bool) if keep is None else keep
    return Case(
        name=name,
        attribute=attribute,
        privileged=labels[0],
        unprivileged=labels[1],
        columns={n: c[keep] for n, c in features.items()},
        outcome=np.asarray(outcome, dtype=np.float64)[keep],
    )


def _adult(attribute: str) -> Case:
    t = table("adult")
    complete = ~np.logical_or.reduce([_missing(t[n]) for n in ("workclass", "occupation", "native_country")])
    keep = complete & np.isin(t["race"].astype(str), ["White", "Black"]) if attribute == "race" else complete
    labels = ("White", "Black") if attribute == "race" else ("Male", "Female")
    privileged = t[attribute].astype(str) == labels[0]
    drop = ("fnlwgt", "education", "income", "split", "native_country", attribute)
    return _case("census", attribute, labels, privileged, t, t["income"] == ">50K", drop, keep)


def _german() -> Case:
    t = table("german")
    male = t["status_sex"].astype(str) != "A92"
    return _case("credit", "sex", ("Male", "Female"), male, t, t["class"] == 1, ("status_sex", "class"))


def _bank() -> Case:
    t = table("bank")
    y = t["y"] if t["y"].dtype.kind == "b" else t["y"].astype(str) == "yes"
    return _case("bank", "age_group", ("young", "old"), t["age"] < 25, t, y, ("y", "age"))


def _compas() -> Case:
    t = table("compas")
    days = t["days_b_screening_arrest"].astype(float)
    keep = (np.abs(days) <= 30) & (t["is_recid"] != -1) & (t["c_charge_degree"] != "O")
    wanted = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "c_charge_degree", "sex")
    white = t["race"].astype(str) == "Caucasian"
    return _case(
        "compas", "race", ("Caucasian", "Other"), white, {n: t[n] for n in wanted}, t["two_year_recid"] == 0, (), keep
    )


def _default() -> Case:
    t = table("default")
    label = "default payment next month"
    return _case("default", "sex", ("Male", "Female"), t["SEX"] == 1, t, t[label] == 1, ("ID", "SEX", label))


def _heart() -> Case:
    t = table("heart-cleveland")
    return _case("heart", "sex_label", ("Male", "Female"), t["sex"] == 1, t, t["num"] > 0, ("sex", "num"))


def _meps15() -> Case:
    t = table("meps15")
    return _case(
        "meps15", "sex", ("Male", "Female"), t["SEX"] == 1, t, t["Probability"] == 1, ("SEX", "Probability", "PERWT15F")
    )


def _meps16() -> Case:
    t = table("meps21")
    return _case("meps16", "sex", ("Male", "Female"), t["SEX"] == 1, t, t["label"] == 1, ("SEX", "label"))


def _student() -> Case:
    both = [table("student-mat"), table("student-por")]
    t = {n: np.concatenate([b[n] for b in both]) for n in both[0]}
    return _case("students", "sex", ("M", "F"), t["sex"].astype(str) == "M", t, t["G3"] >= 12, ("sex", "G3"))


CASES: dict[str, Callable[[], Case]] = {
    "census-race": lambda: _adult("race"),
    "census-sex": lambda: _adult("sex"),
    "credit-sex": _german,
    "bank-age": _bank,
    "compas-race": _compas,
    "default-sex": _default,
    "heart-sex": _heart,
    "meps15-sex": _meps15,
    "meps16-sex": _meps16,
    "students-sex": _student,
}
