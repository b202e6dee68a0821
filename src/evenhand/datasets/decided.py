"""Real data with decisions: Adult judged by a logistic model, COMPAS judged by its own score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.datasets.files import Values, missing, table
from evenhand.datasets.registry import source
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.intake.data import AuditData
from evenhand.kernels.shared.logistic import fit_logistic

# Sex and race are not inputs: the audit asks what a model does to groups it does not see. `education` says
# the same as `education_num`; `fnlwgt` is the survey's weight, not a property of the person.
ADULT_NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
ADULT_CATEGORIES = ("workclass", "marital_status", "occupation", "relationship")
COMPAS_FEATURES = ("age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count", "c_charge_degree")


def adult_table() -> dict[str, Values]:
    """Return all 48,842 rows of Adult as one array per column.

    Returns
    -------
    dict of str to ndarray
        The fifteen columns of the UCI files and `split` (``"train"`` or ``"test"``). Missing texts are None.

    Examples
    --------
    >>> columns = adult_table()
    >>> int((columns["income"] == ">50K").sum()), int((columns["split"] == "test").sum())
    (11687, 16281)
    """
    return table("adult")


def adult(model: str = "logistic") -> AuditData:
    """Return Adult's test rows with the decisions of a model trained on its training rows.

    The model predicts an income above 50,000 dollars from age, years of education, capital gain and loss,
    hours per week, work class, marital status, occupation and relationship. It sees neither sex nor race.
    It decides 1 where its score is at least one half.

    Parameters
    ----------
    model : {"logistic"}
        Logistic regression with ridge penalty 1 on standardised columns.

    Returns
    -------
    AuditData
        16,281 rows; outcome is income, groups are sex and race, features are the model's inputs.

    Examples
    --------
    >>> data = adult()
    >>> data.rows.rows_used, [a.name for a in data.attributes]
    (16281, ['sex', 'race'])
    """
    if model != "logistic":
        raise UsageError(f"Adult has no model called `{model}`.{near_matches(model, ['logistic'])}")
    columns = adult_table()
    train = columns["split"] == "train"
    test = ~train
    columns = {name: _known(column) for name, column in columns.items()}
    design = _design(columns, train)  # (rows, inputs)
    outcome = (columns["income"] == ">50K").astype(np.float64)
    fit = fit_logistic(design[train], outcome[train], l2=1.0)
    # Six decimals hide the last bits, which depend on the machine's linear algebra.
    score = fit.probability(design[test]).round(6)
    return AuditData.from_arrays(
        outcome=outcome[test],
        decision=(score >= 0.5).astype(np.float64),
        score=score,
        groups={name: columns[name][test] for name in ("sex", "race")},
        features={name: columns[name][test] for name in (*ADULT_NUMBERS, *ADULT_CATEGORIES)},
    )


def _known(column: Values) -> Values:
    """Write a missing text as the word ``unknown``: one more category for the model."""
    if column.dtype != object:
        return column
    return np.where(missing(column), "unknown", column).astype(np.str_)


def _design(columns: dict[str, Values], train: BoolArray) -> FloatArray:
    numbers = np.column_stack([columns[name].astype(np.float64) for name in ADULT_NUMBERS])
    numbers = (numbers - numbers[train].mean(axis=0)) / numbers[train].std(axis=0)
    parts = [numbers]
    for name in ADULT_CATEGORIES:
        labels = np.unique(columns[name][train])
        parts.append((columns[name][:, None] == labels[None, :]).astype(np.float64))
    return np.concatenate(parts, axis=1)


def compas(*, violent: bool = False, filtered: bool = True) -> AuditData:
    """Return ProPublica's COMPAS rows with the tool's own decisions.

    Parameters
    ----------
    violent : bool
        The file and the score for violent recidivism in place of the general ones.
    filtered : bool
        Keep only the rows of ProPublica's analysis: screened within 30 days of the arrest, no ordinary
        traffic offence, recidivism and score known. Otherwise all rows.

    Returns
    -------
    AuditData
        Outcome is a new offence within two years, decision is a decile of 5 or more (medium or high risk),
        score is the decile over 10, groups are sex and race, features are age, prior offences, juvenile
        offences and charge degree.

    Raises
    ------
    DataError
        When no copy of the file was found; the message says where to put it.

    Examples
    --------
    >>> data = compas()  # doctest: +SKIP
    >>> data.rows.rows_used  # doctest: +SKIP
    6172
    """
    columns = table("compas-violent" if violent else "compas")
    decile = columns["v_decile_score" if violent else "decile_score"].astype(np.float64)
    text = columns["v_score_text" if violent else "score_text"]
    keep = decile >= 1  # -1 means not scored
    if filtered:
        days = columns["days_b_screening_arrest"].astype(np.float64)  # NaN is not within 30 days
        keep &= (np.abs(days) <= 30) & (columns["is_recid"] != -1)
        keep &= (columns["c_charge_degree"] != "O") & (text != "N/A") & ~missing(text)
    return AuditData.from_arrays(
        outcome=columns["two_year_recid"][keep].astype(np.float64),
        decision=(decile[keep] >= 5).astype(np.float64),
        score=decile[keep] / 10,
        groups={name: columns[name][keep].astype(np.str_) for name in ("sex", "race")},
        features={name: _known(columns[name][keep]) for name in COMPAS_FEATURES},
    )


_DECIDED: dict[str, Callable[[], AuditData]] = {
    "adult": adult,
    "compas": compas,
    "compas-violent": lambda: compas(violent=True),
}


def load(name: str) -> AuditData:
    """Return a known data set that has decisions, ready for an audit.

    Parameters
    ----------
    name : str
        ``"adult"``, ``"compas"`` or ``"compas-violent"``.

    Returns
    -------
    AuditData

    Raises
    ------
    DataError
        When the name is not known, no copy was found, or the data set has outcomes but no decisions.

    Examples
    --------
    >>> load("adult").rows.rows_used
    16281
    """
    source(name)
    if name not in _DECIDED:
        raise DataError(
            f"The data set `{name}` has outcomes but no decisions, so there is nothing to audit yet. Take "
            f"its columns with `datasets.table('{name}')`, add a model's decisions and pass both to "
            f"`AuditData.from_arrays`. With decisions: {', '.join(_DECIDED)}."
        )
    return _DECIDED[name]()
