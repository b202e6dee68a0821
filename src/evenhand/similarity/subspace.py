"""A metric learned from protected attributes: directions that predict them should not matter.

Each attribute is regressed on the model's inputs; the coefficient vectors span the sensitive subspace H, and
d²(x, x') = ||(I - P_H)(x - x')||².  # [maity2021] F.2, with the bracket the print lacks
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import DataError, UsageError, near_matches
from evenhand.kernels.flow.gradient_flow import QuadraticForm
from evenhand.kernels.shared.logistic import fit_logistic
from evenhand.similarity.metric import (
    FairMetric,
    GroupTable,
    MetricRows,
    SensitiveDirection,
    largest_inputs,
    orthonormal,
)


class SensitiveSubspace:
    """Learn the directions that predict protected attributes, by regressions solved to convergence.

    A two-valued attribute gives one logistic regression. One with K values gives K regressions, each value against
    the rest, of which the K - 1 strongest directions are kept. A continuous one gives a ridge regression. Inputs
    that are themselves a protected attribute (the column has its name, or is listed in `columns`) count as
    sensitive directly and are left out of the regressions.

    Parameters
    ----------
    attributes : sequence of str, optional
        Which protected attributes; all of the data by default.
    l2 : float
        Ridge penalty of each regression, 1 / C in scikit-learn's terms. It is reported with the result.
    columns : sequence of str
        Further columns or inputs that should not matter.

    Examples
    --------
    >>> SensitiveSubspace(["sex"]).learned
    True
    """

    learned = True

    def __init__(
        self, attributes: Sequence[str] | None = None, *, l2: float = 1.0, columns: Sequence[str] = ()
    ) -> None:
        if not l2 >= 0:
            raise UsageError(f"`l2` must be at least 0; got {l2}.")
        self.attributes = None if attributes is None else tuple(attributes)
        self.l2 = float(l2)
        self.columns = tuple(columns)
        self._kept: frozenset[tuple[str, int | None]] | None = None

    def keeping(self, predicted: Collection[tuple[str, int | None]]) -> SensitiveSubspace:
        """Return the recipe with only these regressions: pairs of attribute and group.

        The group is None for an attribute with two groups and for a number. Columns that hold an attribute stay.
        """
        out = SensitiveSubspace(self.attributes, l2=self.l2, columns=self.columns)
        out._kept = frozenset(predicted)
        return out

    def fit(self, rows: MetricRows) -> FairMetric:
        """Learn the subspace from these rows."""
        axes, learned = self.axes(rows), self.regressions(rows)
        parts = axes + learned
        if not parts:
            raise DataError(
                "The fair metric has no sensitive direction: no protected attribute with two groups was found in the "
                "rows it is learned from. Give `groups`, or a metric of your own with `similarity=`."
            )
        spans = [p.direction for p in axes]
        for attribute in dict.fromkeys(p.attribute for p in learned):
            own = [p for p in learned if p.attribute == attribute]
            coefs = np.vstack([p.strength * p.direction for p in own])
            if len(own) > 2 and len(own) == _present(rows, attribute).size:
                # K groups differ in K - 1 directions: the strongest ones of the K regressions.
                _, s, vt = np.linalg.svd(coefs, full_matrices=False)
                coefs = (s[:, None] * vt)[: len(own) - 1]
            spans += list(coefs)
        basis = orthonormal(np.vstack(spans))
        return FairMetric(
            form=QuadraticForm(basis=basis),
            kind="sensitive subspace learned by regressions",
            learned=True,
            parts=tuple(parts),
            details={
                "penalty": self.l2,
                "regressions": [p.label for p in parts],
                "rank": basis.shape[1],
                "directions": [
                    {"predicts": p.label, "inputs": largest_inputs(p.direction, rows.space.names)} for p in parts
                ],
            },
        )

    def axes(self, rows: MetricRows) -> list[SensitiveDirection]:
        """Return the inputs that hold a protected attribute themselves, or were stated not to matter."""
        wanted = self._wanted(rows)
        stated = rows.space.columns_of(self.columns) if self.columns else np.zeros(rows.X.shape[1], dtype=bool)
        return [
            SensitiveDirection(
                attribute=i.column if i.column in wanted else None,
                group=None,
                direction=unit,
                strength=1.0,
                column=True,
                label=f"{rows.space.names[j]} itself",
            )
            for j, (i, unit) in enumerate(zip(rows.space.inputs, np.eye(rows.X.shape[1]), strict=True))
            if i.column in wanted or stated[j]
        ]

    def regressions(self, rows: MetricRows) -> list[SensitiveDirection]:
        """Return the directions that predict each attribute, from the inputs that do not hold one themselves."""
        use = ~np.any([np.zeros(rows.X.shape[1]), *(axis.direction for axis in self.axes(rows))], axis=0)
        out: list[SensitiveDirection] = []
        if not use.any():
            return out
        for name, group, label, coef in self._fits(rows, rows.X[:, use]):
            length = float(np.linalg.norm(coef))
            if length > 1e-9:
                direction = np.zeros(use.size)
                direction[use] = coef / length
                out.append(
                    SensitiveDirection(
                        attribute=name, group=group, direction=direction, strength=length, column=False, label=label
                    )
                )
        return out

    def _wanted(self, rows: MetricRows) -> list[str]:
        known = [g.name for g in rows.groups] + list(rows.continuous)
        # An intersection says nothing its parts do not say, unless it was asked for by name.
        wanted = [n for n in known if " × " not in n] if self.attributes is None else list(self.attributes)
        for name in wanted:
            if name not in known:
                raise DataError(f"The fair metric asks for the attribute `{name}`.{near_matches(name, known)}")
        return wanted

    def _fits(self, rows: MetricRows, X: FloatArray) -> Iterator[tuple[str, int | None, str, FloatArray]]:
        wanted = self._wanted(rows)
        for group in rows.groups:
            if group.name not in wanted or not self._keeps(group.name):
                continue
            people = group.table.sum(axis=0)
            present = _present(rows, group.name)
            if present.size < 2:
                raise DataError(
                    f"Attribute `{group.name}` has {present.size} group among the {rows.count.sum():.0f} rows the fair "
                    "metric is learned from; at least 2 are needed."
                )
            # Of two groups the larger is the "1": the answer must not depend on how groups are called.
            chosen = present[np.argsort(-people[present], kind="stable")[:1]] if present.size == 2 else present
            for code in chosen:
                if present.size == 2 or self._keeps(group.name, int(code)):
                    label = f"{group.name}={group.labels[code]}"
                    yield group.name, int(code), label, self._against_the_rest(X, group, int(code))
        for name, sums in rows.continuous.items():
            if name in wanted and self._keeps(name):
                yield name, None, name, _ridge(X, sums, rows.count, self.l2)

    def _keeps(self, attribute: str, *code: int) -> bool:
        if self._kept is None:
            return True
        return any(a == attribute and (not code or g is None or g in code) for a, g in self._kept)

    def _against_the_rest(self, X: FloatArray, group: GroupTable, code: int) -> FloatArray:
        yes = group.table[:, code]
        no = group.table.sum(axis=1) - yes
        used, unused = yes > 0, no > 0
        y = np.concatenate([np.ones(used.sum()), np.zeros(unused.sum())])
        weight = np.concatenate([yes[used], no[unused]])
        return fit_logistic(np.vstack([X[used], X[unused]]), y, weight=weight, l2=self.l2).coef


def _present(rows: MetricRows, attribute: str | None) -> IntArray:
    """Return the groups of an attribute that occur in these rows; none for a number."""
    table = next((g.table for g in rows.groups if g.name == attribute), np.zeros((0, 0)))
    return np.flatnonzero(table.sum(axis=0) > 0)


def _ridge(X: FloatArray, sums: FloatArray, count: FloatArray, l2: float) -> FloatArray:
    """Regress a number, known by its sum in each row, on the inputs; only the direction matters."""
    total = count.sum()
    centred = X - count @ X / total
    gram = centred.T @ (centred * count[:, None])
    gram[np.diag_indices_from(gram)] += max(l2, 1e-10 * float(np.trace(gram)) / len(gram))
    target = centred.T @ (sums - count * (sums.sum() / total))
    size = float(np.linalg.norm(target))
    return np.linalg.solve(gram, target / size) if size > 0 else np.zeros(X.shape[1])
