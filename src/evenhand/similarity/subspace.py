"""A metric learned from protected attributes: directions that predict them should not matter.

Each attribute is regressed on the model's inputs; the coefficient vectors span the sensitive subspace H, and
d²(x, x') = ||(I - P_H)(x - x')||².  # [maity2021] F.2, with the bracket the print lacks
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import DataError, UsageError, near_matches
from evenhand.kernels.flow import QuadraticForm
from evenhand.kernels.logistic import fit_logistic
from evenhand.similarity.metric import FairMetric, GroupTable, MetricRows, largest_inputs, orthonormal

FloatArray = NDArray[np.float64]


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

    def fit(self, rows: MetricRows) -> FairMetric:
        """Learn the subspace from these rows."""
        known = [g.name for g in rows.groups] + list(rows.continuous)
        # An intersection says nothing its parts do not say, unless it was asked for by name.
        wanted = [n for n in known if " × " not in n] if self.attributes is None else list(self.attributes)
        for name in wanted:
            if name not in known:
                raise DataError(f"The fair metric asks for the attribute `{name}`.{near_matches(name, known)}")
        wide = rows.X.shape[1]
        axes = np.zeros(wide, dtype=bool)
        if self.columns:
            axes |= rows.space.columns_of(self.columns)
        axes |= np.array([i.column in wanted for i in rows.space.inputs])
        parts: list[FloatArray] = list(np.eye(wide)[axes])
        made = [f"{rows.space.names[j]} itself" for j in np.flatnonzero(axes)]
        if not axes.all():
            for label, coefs in self._regressions(rows, wanted, ~axes):
                for coef in coefs:
                    direction = np.zeros(wide)
                    direction[~axes] = coef
                    if np.linalg.norm(coef) > 1e-9:
                        parts.append(direction)
                        made.append(label)
        if not parts:
            raise DataError(
                "The fair metric has no sensitive direction: no protected attribute with two groups was "
                "found in the "
                "rows it is learned from. Give `groups`, or a metric of your own with `similarity=`."
            )
        basis = orthonormal(np.vstack(parts))
        return FairMetric(
            form=QuadraticForm(basis=basis),
            kind="sensitive subspace learned by regressions",
            learned=True,
            details={
                "penalty": self.l2,
                "regressions": made,
                "rank": basis.shape[1],
                "directions": [
                    {"predicts": m, "inputs": largest_inputs(v / np.linalg.norm(v), rows.space.names)}
                    for m, v in zip(made, parts, strict=True)
                ],
            },
        )

    def _regressions(
        self, rows: MetricRows, wanted: Sequence[str], use: NDArray[np.bool_]
    ) -> Iterator[tuple[str, FloatArray]]:
        X = rows.X[:, use]
        for group in rows.groups:
            if group.name not in wanted:
                continue
            people = group.table.sum(axis=0)
            present = np.flatnonzero(people > 0)
            if present.size < 2:
                raise DataError(
                    f"Attribute `{group.name}` has {present.size} group among the {rows.count.sum():.0f} "
                    "rows the fair metric "
                    "is learned from; at least 2 are needed."
                )
            # Of two groups the larger is the "1": the answer must not depend on how groups are called.
            chosen = present[np.argsort(-people[present], kind="stable")[:1]] if present.size == 2 else present
            found = np.vstack([self._against_the_rest(X, group, int(code)) for code in chosen])
            if present.size == 2:
                yield f"{group.name}={group.labels[chosen[0]]}", found
                continue
            # K groups differ in K - 1 directions: the strongest ones of the K regressions.
            _, s, vt = np.linalg.svd(found, full_matrices=False)
            yield group.name, (s[:, None] * vt)[: present.size - 1]
        for name, sums in rows.continuous.items():
            if name in wanted:
                yield name, _ridge(X, sums, rows.count, self.l2)[None]

    def _against_the_rest(self, X: FloatArray, group: GroupTable, code: int) -> FloatArray:
        yes = group.table[:, code]
        no = group.table.sum(axis=1) - yes
        used, unused = yes > 0, no > 0
        y = np.concatenate([np.ones(used.sum()), np.zeros(unused.sum())])
        weight = np.concatenate([yes[used], no[unused]])
        return fit_logistic(np.vstack([X[used], X[unused]]), y, weight=weight, l2=self.l2).coef


def _ridge(X: FloatArray, sums: FloatArray, count: FloatArray, l2: float) -> FloatArray:
    """Regress a number, known by its sum in each row, on the inputs; only the direction matters."""
    total = count.sum()
    centred = X - count @ X / total
    gram = centred.T @ (centred * count[:, None])
    gram[np.diag_indices_from(gram)] += max(l2, 1e-10 * float(np.trace(gram)) / len(gram))
    target = centred.T @ (sums - count * (sums.sum() / total))
    size = float(np.linalg.norm(target))
    out: FloatArray = np.linalg.solve(gram, target / size) if size > 0 else np.zeros(X.shape[1])
    return out
