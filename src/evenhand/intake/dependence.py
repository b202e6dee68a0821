"""Signs that several rows are about one person, where every test takes each row for a person of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.intake.options import Options
from evenhand.intake.records import Records
from evenhand.intake.wording import count_of, listing

WordArray = NDArray[np.uint64]

# A column is a name for people when its own name says so and it has many values.
_IDENTIFIERS = re.compile(
    r"(?:^|_)(?:id|ids|uid|uuid|guid|pid|ssn|identifier|identity|email|"
    r"(?:person|patient|customer|client|user|subject|applicant|student|employee|member|borrower|defendant|respondent|"
    r"participant|account|case)(?:_?(?:id|no|nr|nbr|num|number|key|code|name))?)$"
)
MOST_CANDIDATES = 3
_LEAST_PEOPLE = 20

_FINE = 30  # distinct values from which a number counts as measured finely
_ALIKE = 0.95  # rank correlation from which two columns say the same
_SHARE = 0.1  # share of rows that must be repeats
_ENOUGH = 50_000  # rows from which a column's own distribution is learnt
_BEYOND = 50.0  # pairs of equal rows must be so many times as frequent as by chance

_WARNING = (
    "every test takes each row for one person, and rows of the same people make p-values too small and intervals too "
    "narrow."
)
_OTHERWISE = "keep one row per person, or count identical people with frequency weights."
_ADVICE = f"E{_WARNING[1:]} Name the column that tells people apart with `cluster=`, {_OTHERWISE}"


def identifier_names(names: Sequence[str], options: Options) -> list[str]:
    """Return the columns of a table whose names say that they name people.

    Parameters
    ----------
    names : sequence of str
        All columns of the table.
    options : Options
        What was asked: a column with a role such as the outcome's is no identifier.

    Returns
    -------
    list of str
        None where a cluster is named, since it is then known which rows belong together.

    Examples
    --------
    >>> options = Options(outcome="y", groups=("sex",))
    >>> identifier_names(["y", "personId", "customer_no", "width", "age"], options)
    ['personId', 'customer_no']
    """
    candidates = names if options.cluster is None else ()
    people = [name for name in candidates if name not in options.results and names_people(name)]
    return people[:MOST_CANDIDATES]


def names_people(name: str) -> bool:
    """Say whether a column's own name says that its values tell people apart.

    Examples
    --------
    >>> names_people("Customer No."), names_people("personId"), names_people("width")
    (True, True, False)
    """
    return _IDENTIFIERS.search("_".join(words_of(name))) is not None


def words_of(name: str) -> list[str]:
    """Return the words of a column's name in small letters, however they are joined.

    Examples
    --------
    >>> words_of("nativeCountry"), words_of("marital-status"), words_of(" Y_true ")
    (['native', 'country'], ['marital', 'status'], ['y', 'true'])
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return [word for word in re.split(r"[\s._\-]+", apart.casefold()) if word]


def identifier_note(name: str, rows: int, people: int) -> str | None:
    """Say that an identifier repeats, or None when it does not or has too few values to name people.

    Examples
    --------
    >>> identifier_note("person", 1500, 300)[:59]
    'Column `person` looks like an identifier of people and has '
    >>> identifier_note("person", 1500, 1500) is None, identifier_note("site_id", 1500, 4) is None
    (True, True)
    """
    if people < _LEAST_PEOPLE or rows - people < max(_SHARE / 10 * rows, 2):
        return None
    return (
        f"Column `{name}` looks like an identifier of people and has {count_of(people, 'value')} in {rows:,} rows. "
        f'If several rows are about one person: {_WARNING} Say `cluster="{name}"`, {_OTHERWISE}'
    )


def repeat_note(records: Records) -> str | None:
    """Say that rows repeat each other far more often than by chance, or return None.

    Two signs are looked for. Two or more finely measured inputs that agree in pairs of rows many times as often as they
    would if they were independent; and rows equal in all inputs, or in the score, that always have the same outcome
    too. Data with few coarse columns show neither, because equal rows are natural there.
    """
    outcome, score, count = records.outcome, records.score, records.weights.count
    features = records.features.items()
    numbers = {name: np.asarray(c.values) for name, c in features if c.kind == "number"} | {**records.continuous}
    labels = {name: c.values for name, c in features if c.kind != "number"}
    labels |= {a.name: a.codes for a in records.attributes}
    if count.size < 2 * _LEAST_PEOPLE or (count != 1).any():
        return None  # counts say themselves that people are identical
    fine = _independent({name: v for name, v in numbers.items() if _distinct(v) >= _FINE})
    n = count.size
    if len(fine) >= 2:
        repeats, pairs = _repeats(_key(list(fine.values())))
        by_chance = n * (n - 1) / 2 * float(np.prod([_agreement(v) for v in fine.values()]))
        if repeats >= _SHARE * n and pairs > _BEYOND * max(by_chance, 1.0):
            return (
                f"{count_of(repeats, 'row')} of {n:,} repeat another row in {listing(fine)}, far more than by chance: "
                f"they look like rows of the same people. {_ADVICE}"
            )
    inputs = [*numbers.values(), *(np.asarray(v, dtype=np.float64) for v in labels.values())]
    if outcome is None or (score is None and not fine):
        return None
    repeats = _same_outcome(outcome, score, _key([*inputs, *([] if score is None else [score])]))
    if not repeats:
        return None
    return f"{count_of(repeats, 'row')} of {n:,} repeat another row in every column, the outcome included. {_ADVICE}"


def _same_outcome(outcome: FloatArray, score: FloatArray | None, key: WordArray) -> int:
    """Return how many rows repeat another one, when equal inputs have equal outcomes far more often than near ones."""
    n = len(key)
    order = np.lexsort((key, score)) if score is not None else np.argsort(key, kind="stable")
    y, k = outcome[order], key[order]
    equal = k[1:] == k[:-1]
    links, classes = int(equal.sum()), int((~equal).sum()) + 1
    if links < _SHARE * n or classes < 4 * _LEAST_PEOPLE or (~equal).sum() < 1:
        return 0
    agree = y[1:] == y[:-1]
    expected = links * float((~agree[~equal]).mean())  # disagreements, if equal rows were like near ones
    disagree = int((~agree[equal]).sum())
    return links if expected >= 2 * _LEAST_PEOPLE and disagree < 0.1 * expected else 0


def _independent(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Leave out columns that say the same as one before."""
    chosen: dict[str, FloatArray] = {}
    ranks: list[FloatArray] = []
    for name, values in sorted(columns.items(), key=lambda item: -_distinct(item[1])):
        rank = np.unique(np.nan_to_num(_some(values), nan=-np.inf), return_inverse=True)[1].astype(np.float64)
        if all(abs(float(np.corrcoef(rank, other)[0, 1])) < _ALIKE for other in ranks):
            chosen[name] = values
            ranks.append(rank)
    return chosen


def _distinct(values: FloatArray) -> int:
    part = _some(values)
    return len(np.unique(part[~np.isnan(part)]))


def _some(values: FloatArray) -> FloatArray:
    """Return evenly spaced rows, enough to know how a column is distributed."""
    return values[:: max(1, len(values) // _ENOUGH)]


def _agreement(values: FloatArray) -> float:
    """Return the share of pairs of different rows that agree in a column."""
    sizes = np.unique(_some(values), return_counts=True)[1].astype(np.float64)
    n = sizes.sum()
    return float((sizes * (sizes - 1)).sum() / (n * (n - 1)))


def _key(columns: Sequence[FloatArray]) -> WordArray:
    """Return one word per row that is the same where all columns are."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    for j, values in enumerate(columns):
        part = (values + 0.0).view(np.uint64) ^ np.uint64(0x9E3779B97F4A7C15 * (j + 1) % 2**64)
        part = (part ^ (part >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ part) * np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(29)
    return key


def _repeats(key: WordArray) -> tuple[int, float]:
    """Return how many rows repeat an earlier one, and how many pairs of rows are equal."""
    sizes = np.unique(key, return_counts=True)[1].astype(np.float64)
    return int(sizes.sum() - len(sizes)), float((sizes * (sizes - 1)).sum() / 2)
