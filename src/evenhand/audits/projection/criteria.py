"""Group fairness as conditions on a classifier: the discerning tuple (U, phi). [si2021] Definition 1.

A classifier C is fair when E[C(X) phi(U, E[U])] = 0. U says which cells a row belongs to, phi compares them. The
named criteria compare the rates of decision 1 between groups, among all rows or those of one outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.errors import DataError, UsageError
from evenhand.intake import Attribute, AuditData
from evenhand.kernels.transport.projection import cell_sums

# Which outcomes' rows the rates are taken among; None is all rows. [si2021] Examples 1 to 4
CRITERIA: dict[str, tuple[int | None, ...]] = {
    "equal_opportunity": (1,),
    "predictive_equality": (0,),
    "equalized_odds": (1, 0),
    "statistical_parity": (None,),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Criterion:
    """A criterion of one's own: any tuple (U, phi) with its derivative.

    Parameters
    ----------
    name : str
        What findings call it.
    u : array-like, shape (records, s)
        U for each record.
    phi : callable
        ``phi(u, mu)`` with u of shape (k, s) and mu of shape (s,) returns shape (k, m).
    phi_z : callable
        ``phi_z(u, mu)``, the derivative of phi by its second argument, returns shape (k, m, s).
    groups : tuple of str
        What findings list as groups.

    Examples
    --------
    Acceptance must not differ between the two groups that the columns of `u` mark:

    >>> import numpy as np
    >>> rate_gap = Criterion(
    ...     name="gap", u=[[1, 0], [0, 1]], groups=("a", "b"),
    ...     phi=lambda u, mu: (u[:, :1] / mu[0] - u[:, 1:] / mu[1]),
    ...     phi_z=lambda u, mu: np.stack([-u[:, 0] / mu[0] ** 2, u[:, 1] / mu[1] ** 2], axis=1)[:, None, :])
    >>> rate_gap.name
    'gap'
    """

    name: str
    u: ArrayLike
    phi: Callable[[FloatArray, FloatArray], FloatArray]
    phi_z: Callable[[FloatArray, FloatArray], FloatArray]
    groups: tuple[str, ...] = ("all",)


def among(group: str, outcome: int | None) -> str:
    """Name a group with the rows that count."""
    return group if outcome is None else f"{group} with outcome {outcome}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rate:
    """One group's rate of decision 1 among the rows of one outcome."""

    group: str  # such as `"sex=Female"`
    outcome: int | None  # the outcome whose rows count; None for all rows
    cells: BoolArray  # (U,): which values of U belong to it
    reference: bool  # whether the attribute's other groups are compared with it

    @property
    def words(self) -> str:
        """The group with the rows that count, in words."""
        return among(self.group, self.outcome)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conditions:
    """A criterion on given records: which cell each belongs to, and what a cell does to the m conditions."""

    name: str  # the criterion
    groups: tuple[str, ...]  # groups compared, references last
    code: IntArray  # (records,): each record's value of U; negative where phi is 0
    mass: FloatArray  # (U, 2): mass with decision 0 and 1
    phi: FloatArray  # (U, m): phi(u, mean of U)
    influence: FloatArray  # (U, 2, m): phi C + E[phi_z C] u, centred. [si2021] Theorem 1
    contrasts: tuple[str, ...]  # the conditions in words
    rates: tuple[Rate, ...]  # the rates compared; empty for a criterion of one's own
    # For one attribute: the places in `rates` that must agree, reference first. Empty otherwise.
    strata: tuple[tuple[int, ...], ...]
    blocks: tuple[IntArray, ...]  # conditions that share no rows, solved apart

    @property
    def value(self) -> FloatArray:
        """E[C phi], one number for each condition; shape (m,)."""
        return self.mass[:, 1] @ self.phi


def rate_conditions(
    name: str, data: AuditData, attributes: Sequence[tuple[Attribute, int]], decision: IntArray, mass: FloatArray
) -> Conditions | str:
    """Write a named criterion for one or several attributes as conditions.

    Parameters
    ----------
    name : str
        A key of `CRITERIA`.
    data : AuditData
        Records.
    attributes : sequence of (Attribute, int)
        Attributes with the code of their reference group.
    decision : ndarray of int, shape (records,)
        Decisions, 0 or 1.
    mass : ndarray, shape (records,)
        Masses that sum to the number of rows.

    Returns
    -------
    Conditions or str
        A sentence instead when a group has no row to take a rate of.
    """
    outcomes = CRITERIA[name]
    sizes = [len(a.labels) for a, _ in attributes]
    combined = np.zeros(decision.size, dtype=np.int64)
    for (attribute, _), size in zip(attributes, sizes, strict=True):
        combined = combined * size + attribute.codes
    n_combined = int(np.prod(sizes))
    stratum = _strata(name, data, outcomes, decision.size)
    code = np.where(stratum >= 0, stratum * n_combined + combined, -1)
    n_cells = n_combined * len(outcomes)
    table = cell_sums(np.where(code >= 0, 2 * code + decision, -1), mass, 2 * n_cells).reshape(-1, 2)  # (U, 2)
    total = float(mass.sum())
    place = np.arange(n_cells)
    member_of = np.unravel_index(place % n_combined, sizes)
    orders = [by_size(attribute, reference, data.count) for attribute, reference in attributes]
    rates: list[Rate] = []
    phi: list[FloatArray] = []
    strata, influence, contrasts, blocks = [], [], [], []
    for k, outcome in enumerate(outcomes):
        first = len(phi)
        for (attribute, reference), order, member in zip(attributes, orders, member_of, strict=True):
            cells = [(place // n_combined == k) & (member == g) for g in order]
            compared = [
                Rate(group=attribute.group_name(g), outcome=outcome, cells=c, reference=g == reference)
                for g, c in zip(order, cells, strict=True)
            ]
            empty = [rate for rate in compared if table[rate.cells].sum() <= 0]
            if empty:
                among = "" if outcome is None else f" with outcome {outcome}"
                return f"Group `{empty[0].group}` has no rows{among}, so its rate is undefined."
            (base_lever, base_spread), *others = [_terms(rate, table, total) for rate in compared]
            for rate, (lever, spread) in zip(compared[1:], others, strict=True):
                phi.append(lever - base_lever)
                influence.append(spread - base_spread)
                contrasts.append(f"{rate.words} minus {compared[0].words}")
            strata.append(tuple(range(len(rates), len(rates) + len(compared))))
            rates += compared
        blocks.append(np.arange(first, len(phi)))
    return Conditions(
        name=name,
        groups=tuple(a.group_name(g) for (a, _), o in zip(attributes, orders, strict=True) for g in [*o[1:], o[0]]),
        code=code,
        mass=table,
        phi=np.stack(phi, axis=-1),
        influence=np.stack(influence, axis=-1),
        contrasts=tuple(contrasts),
        rates=tuple(rates),
        strata=tuple(strata) if len(attributes) == 1 else (),
        blocks=tuple(blocks),
    )


def _strata(name: str, data: AuditData, outcomes: tuple[int | None, ...], records: int) -> IntArray:
    """Return which of a criterion's outcomes each record has; -1 for none of them."""
    if outcomes == (None,):
        return np.zeros(records, dtype=np.int64)
    if data.outcome is None or data.outcome_kind != "binary":
        raise DataError(f"`{name}` needs a binary outcome. Name its column in `outcome=`, or use `statistical_parity`.")
    stratum = np.full(records, -1, dtype=np.int64)
    for k, outcome in enumerate(outcomes):
        stratum[data.outcome == outcome] = k
    return stratum


def _terms(rate: Rate, table: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """Return U_g / mu_g, shape (U,), and what a row of each cell and decision does to a rate, shape (U, 2)."""
    size, positive = table[rate.cells].sum(), table[rate.cells, 1].sum()
    lever = rate.cells * (total / size)
    return lever, lever[:, None] * (np.array([0.0, 1.0]) - positive / size)


def by_size(attribute: Attribute, reference: int, count: IntArray) -> list[int]:
    """Return an attribute's groups, the reference first, then from the largest on: renaming groups changes nothing."""
    sizes = cell_sums(attribute.codes, count.astype(float), len(attribute.labels))
    others = [g for g in range(len(attribute.labels)) if g != reference]
    return [reference, *sorted(others, key=lambda g: (-sizes[g], attribute.labels[g]))]


def own_conditions(criterion: Criterion, decision: IntArray, mass: FloatArray) -> Conditions:
    """Write a criterion of the user's own as conditions on records with these decisions and masses."""
    rows = np.asarray(criterion.u, dtype=float)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or rows.shape[0] != decision.size or not np.isfinite(rows).all():
        raise DataError(
            f"`u` of criterion `{criterion.name}` must hold finite numbers, one row for each of the {decision.size} "
            f"records; got shape {rows.shape}."
        )
    values, code = np.unique(rows, axis=0, return_inverse=True)
    code = np.asarray(code, dtype=np.int64).reshape(-1)
    table = cell_sums(2 * code + decision, mass, 2 * len(values)).reshape(-1, 2)
    total = float(mass.sum())
    mu = table.sum(axis=1) @ values / total  # (s,)
    phi = np.asarray(criterion.phi(values, mu), dtype=float)
    jacobian = np.asarray(criterion.phi_z(values, mu), dtype=float)
    if phi.ndim != 2 or phi.shape[0] != len(values):
        raise UsageError(f"`phi` must return shape (k, m); got {phi.shape} for k = {len(values)}.")
    if jacobian.shape != (*phi.shape, values.shape[1]):
        raise UsageError(f"`phi_z` must return shape {(*phi.shape, values.shape[1])}; got {jacobian.shape}.")
    if not (np.isfinite(phi).all() and np.isfinite(jacobian).all()):
        raise DataError(f"`phi` or `phi_z` of criterion `{criterion.name}` is not finite on these data.")
    slope = np.einsum("u,ums->ms", table[:, 1] / total, jacobian)  # E[phi_z C]
    shift = values @ slope.T  # (U, m)
    influence = np.stack([shift, phi + shift], axis=1)  # (U, 2, m)
    influence = influence - np.einsum("uc,ucm->m", table, influence) / total
    m = phi.shape[1]
    return Conditions(
        name=criterion.name,
        groups=tuple(criterion.groups),
        code=code,
        mass=table,
        phi=phi,
        influence=influence,
        contrasts=tuple(f"{criterion.name}[{k}]" for k in range(m)),
        rates=(),
        strata=(),
        blocks=(np.arange(m),),
    )
