"""The two data sets of [maity2021] as the experiments prepare them, one split at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import evenhand.datasets as datasets

NUMBERS = ("age", "capital_gain", "capital_loss", "hours_per_week", "education_num")
CATEGORIES = ("workclass", "marital_status", "occupation", "relationship")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One split of one data set."""

    name: str
    names: tuple[str, ...]
    X_train: np.ndarray  # (rows, inputs)
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    sex_train: np.ndarray  # 1 privileged
    sex_test: np.ndarray
    race_train: np.ndarray
    race_test: np.ndarray


def adult(split: int) -> Case:
    """45,222 rows, 39 inputs; sex and race (White or not) are protected and not inputs."""
    columns = datasets.adult_table()
    known = ~(_missing(columns["occupation"]) | _missing(columns["native_country"]) | _missing(columns["workclass"]))
    blocks = [np.asarray(columns[c], dtype=float)[known, None] for c in NUMBERS]
    names = list(NUMBERS)
    for c in CATEGORIES:
        values = columns[c][known].astype(str)
        labels = np.unique(values)
        blocks.append((values[:, None] == labels).astype(float))
        names += [f"{c}={label}" for label in labels]
    X = np.hstack(blocks)
    y = (columns["income"][known] == ">50K").astype(float)
    sex = (columns["sex"][known] == "Male").astype(float)
    race = (columns["race"][known] == "White").astype(float)
    assert X.shape == (45222, 39)
    return _split("adult", names, X, y, sex, race, split, standardise=range(5))


def compas(split: int) -> Case:
    """5,278 rows, 7 inputs, sex and race among them; stratified split."""
    columns = datasets.table("compas")
    days = np.asarray(columns["days_b_screening_arrest"], dtype=float)
    keep = (np.abs(days) <= 30) & (columns["is_recid"] != -1) & (columns["c_charge_degree"] != "O")
    keep &= (columns["score_text"] != "N/A") & np.isin(columns["race"].astype(str), ("African-American", "Caucasian"))
    age = columns["age_cat"][keep].astype(str)
    sex = (columns["sex"][keep] == "Female").astype(float)
    race = (columns["race"][keep] == "Caucasian").astype(float)
    priors = np.asarray(columns["priors_count"], dtype=float)[keep]
    felony = (columns["c_charge_degree"][keep] == "F").astype(float)
    X = np.column_stack([sex, race, priors, age == "25 - 45", age == "Greater than 45", age == "Less than 25", felony])
    names = ["sex", "race", "priors_count", "age=25 to 45", "age=over 45", "age=under 25", "charge=F"]
    y = (columns["two_year_recid"][keep] == 1).astype(float)
    assert X.shape == (5278, 7)
    return _split("compas", names, X.astype(float), y, sex, race, split, standardise=[2], stratify=True)


def _missing(column: np.ndarray) -> np.ndarray:
    return np.fromiter((v is None for v in column), dtype=bool, count=len(column))


def _split(
    name: str, names: list[str], X: np.ndarray, y: np.ndarray, sex: np.ndarray, race: np.ndarray, split: int,
    *, standardise: object, stratify: bool = False,
) -> Case:  # fmt: skip
    rng = np.random.default_rng([2021, split])
    if stratify:
        parts = [rng.permutation(np.flatnonzero(y == k)) for k in (0, 1)]
        train = np.concatenate([p[: round(0.8 * p.size)] for p in parts])
        test = rng.permutation(np.concatenate([p[round(0.8 * p.size) :] for p in parts]))
    else:
        order = rng.permutation(y.size)
        train, test = order[: int(0.8 * y.size)], order[int(0.8 * y.size) :]
    places = list(standardise)  # type: ignore[call-overload]
    X = X.copy()
    X[:, places] = (X[:, places] - X[train][:, places].mean(axis=0)) / X[train][:, places].std(axis=0)
    return Case(
        name=name, names=tuple(names), X_train=X[train], X_test=X[test], y_train=y[train], y_test=y[test],
        sex_train=sex[train], sex_test=sex[test], race_train=race[train], race_test=race[test],
    )  # fmt: skip
