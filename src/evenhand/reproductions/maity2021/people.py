"""Adult and COMPAS as the experiments prepare them, one split into training and test rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand import datasets
from evenhand.arrays import AnyArray, BoolArray, FloatArray
from evenhand.intake import AuditData
from evenhand.kernels.shared.seeds import published_stream

_NUMBERS = ("age", "capital_gain", "capital_loss", "hours_per_week", "education_num")
_CATEGORIES = ("workclass", "marital_status", "occupation", "relationship")
_TRAINED = 0.8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """Some rows of a data set."""

    X: FloatArray  # (rows, inputs)
    y: FloatArray
    # sex, race: 1 for the privileged group.
    sex: FloatArray
    race: FloatArray

    def take(self, rows: AnyArray) -> People:
        """Return some of the rows."""
        return People(X=self.X[rows], y=self.y[rows], sex=self.sex[rows], race=self.race[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """One split of one data set."""

    name: str
    inputs: tuple[str, ...]
    train: People
    test: People

    def audited(self, most: int = 0) -> AuditData:
        """Return the test rows, or the first so many of them."""
        size = self.test.y.size
        rows = self.test.take(np.arange(min(most, size) if most else size))
        features = {name: rows.X[:, j] for j, name in enumerate(self.inputs)}
        groups = {"sex": rows.sex.astype(int), "race": rows.race.astype(int)}
        return AuditData.from_arrays(outcome=rows.y, groups=groups, features=features)


def adult(split: int) -> Split:
    """Return a split of Adult: 45,222 rows, 39 inputs; sex and race (White or not) are protected and not inputs."""
    columns = datasets.adult_table()
    known = ~(_missing(columns["occupation"]) | _missing(columns["native_country"]) | _missing(columns["workclass"]))
    blocks = [np.asarray(columns[name], dtype=float)[known, None] for name in _NUMBERS]
    inputs = list(_NUMBERS)
    for name in _CATEGORIES:
        values = columns[name][known].astype(str)
        labels = np.unique(values)
        blocks.append((values[:, None] == labels).astype(float))
        inputs += [f"{name}={label}" for label in labels]
    people = People(
        X=np.hstack(blocks),
        y=(columns["income"][known] == ">50K").astype(float),
        sex=(columns["sex"][known] == "Male").astype(float),
        race=(columns["race"][known] == "White").astype(float),
    )
    rng = published_stream(2021, split)
    order = rng.permutation(people.y.size)
    cut = int(_TRAINED * people.y.size)
    return _split("adult", inputs, people, order[:cut], order[cut:], standardise=range(len(_NUMBERS)))


def compas(split: int) -> Split:
    """Return a split of COMPAS, stratified by outcome: 5,278 rows, 7 inputs, sex and race among them."""
    columns = datasets.table("compas")
    days = np.asarray(columns["days_b_screening_arrest"], dtype=float)
    keep = (np.abs(days) <= 30) & (columns["is_recid"] != -1) & (columns["c_charge_degree"] != "O")
    keep &= (columns["score_text"] != "N/A") & np.isin(columns["race"].astype(str), ("African-American", "Caucasian"))
    age = columns["age_cat"][keep].astype(str)
    sex = (columns["sex"][keep] == "Female").astype(float)
    race = (columns["race"][keep] == "Caucasian").astype(float)
    priors = np.asarray(columns["priors_count"], dtype=float)[keep]
    felony = (columns["c_charge_degree"][keep] == "F").astype(float)
    ages = [(age == level).astype(float) for level in ("25 - 45", "Greater than 45", "Less than 25")]
    inputs = ["sex", "race", "priors_count", "age=25 to 45", "age=over 45", "age=under 25", "charge=F"]
    y = (columns["two_year_recid"][keep] == 1).astype(float)
    people = People(X=np.column_stack([sex, race, priors, *ages, felony]), y=y, sex=sex, race=race)
    rng = published_stream(2021, split)
    classes = [rng.permutation(np.flatnonzero(y == k)) for k in (0, 1)]
    cuts = [round(_TRAINED * rows.size) for rows in classes]
    train = np.concatenate([rows[:cut] for rows, cut in zip(classes, cuts, strict=True)])
    test = rng.permutation(np.concatenate([rows[cut:] for rows, cut in zip(classes, cuts, strict=True)]))
    return _split("compas", inputs, people, train, test, standardise=[2])


SETS: dict[str, Callable[[int], Split]] = {"adult": adult, "compas": compas}


def _missing(column: AnyArray) -> BoolArray:
    return np.fromiter((value is None for value in column), dtype=bool, count=len(column))


def _split(
    name: str, inputs: Sequence[str], people: People, train: AnyArray, test: AnyArray, *, standardise: Sequence[int]
) -> Split:
    places, trained = list(standardise), people.X[train]
    X = people.X.copy()
    X[:, places] = (X[:, places] - trained[:, places].mean(axis=0)) / trained[:, places].std(axis=0)
    ready = People(X=X, y=people.y, sex=people.sex, race=people.race)
    return Split(name=name, inputs=tuple(inputs), train=ready.take(train), test=ready.take(test))
