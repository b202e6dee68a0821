from __future__ import annotations

import numpy as np
import pytest

from evenhand.kernels.counts.group_lines import group_lines
from evenhand.kernels.counts.row_sums import distinct
from evenhand.kernels.shared.seeds import stream


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("digits", [0, 6])
def test_lines_are_the_columns_of_the_plain_table(weighted: bool, digits: int) -> None:
    rng = stream(1, "lines")
    v, g, c = np.round(rng.normal(size=300), digits) + 0.0, rng.choice([0, 1, 3, 4], 300), rng.integers(0, 4, 300)
    w = np.round(rng.gamma(2.0, size=300)) + 1 if weighted else np.ones(300)
    values, weights, table = distinct(v, w, c, g, 6)
    lines = group_lines(v, w if weighted else None, (c, 2 * c), g, 6)
    for k in range(6):
        has, weight, (once, twice) = lines.group(k)
        used = once > 0  # a record of no rows has a line as well
        assert has[used].tolist() == values[table[:, k] > 0].tolist()
        assert once[used].tolist() == table[table[:, k] > 0, k].tolist()
        assert (twice == 2 * once).all()
        assert weight is None or weight[used].tolist() == weights[table[:, k] > 0].tolist()
    has, weight, total = lines.together([4, 1], 0)
    wanted = table[:, [1, 4]].sum(axis=1)
    assert has.tolist() == values[wanted > 0].tolist()
    assert total.tolist() == wanted[wanted > 0].tolist()
    order = rng.permutation(300)
    moved = group_lines(v[order], w[order] if weighted else None, (c[order],), g[order], 6)
    assert moved.values.tobytes() == lines.values.tobytes()
    assert moved.counts[0].tobytes() == lines.counts[0].tobytes()


def test_no_records() -> None:
    none = np.empty(0)
    lines = group_lines(none, None, (none.astype(int),), none.astype(int), 2)
    assert lines.cuts.tolist() == [0, 0, 0]
    assert lines.group(1)[0].size == 0
    assert lines.together([0, 1], 0)[2].size == 0
