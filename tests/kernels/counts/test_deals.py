from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from evenhand.kernels.counts import deals
from evenhand.kernels.shared.seeds import stream


@pytest.mark.parametrize("shuffle_below", [2500, 0], ids=["shuffle", "draw-and-repair"])
def test_every_subset_is_equally_likely(monkeypatch: pytest.MonkeyPatch, shuffle_below: int) -> None:
    monkeypatch.setattr(deals, "SHUFFLE_BELOW", shuffle_below)
    masks = deals.random_subsets(stream(3, "uniform"), 6, 2, 6_000)
    found = np.bincount(masks @ (1 << np.arange(6)), minlength=64)
    expected = [sum(1 << i for i in pair) for pair in itertools.combinations(range(6), 2)]
    assert found.sum() == found[expected].sum() == 6_000
    assert stats.chisquare(found[expected]).pvalue > 0.001


def test_every_labelling_is_equally_likely_after_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deals, "SHUFFLE_BELOW", 0)
    labels = deals.random_labels(stream(4, "uniform"), [1, 2, 2], 6_000)
    found = np.unique(labels @ (3 ** np.arange(5)), return_counts=True)[1]
    assert found.size == math.factorial(5) // 4
    assert stats.chisquare(found).pvalue > 0.001


@pytest.mark.parametrize(("rows", "chosen"), [(10, 0), (10, 10), (3000, 1), (3000, 1500), (70_000, 69_999)])
def test_subsets_have_their_size(rows: int, chosen: int) -> None:
    masks = deals.random_subsets(stream(1, "size"), rows, chosen, 5)
    assert masks.shape == (5, rows)
    assert masks.sum(axis=1).tolist() == [chosen] * 5


def test_labels_have_their_sizes_and_places_do_not_matter() -> None:
    sizes = [700, 2, 3000, 1298]
    labels = deals.random_labels(stream(1, "labels"), sizes, 400)
    assert [np.bincount(row, minlength=4).tolist() for row in labels[:10]] == [sizes] * 10
    share = (labels == 0).mean(axis=0)  # each row is in group 0 with probability .14
    z = (share - 0.14) / math.sqrt(0.14 * 0.86 / 400)
    assert abs(float(np.mean(z**2)) - 1) < 0.1


def test_all_subsets_are_all_different() -> None:
    masks = deals.all_subsets(7, 3)
    assert masks.shape == (35, 7)
    assert len({tuple(row) for row in masks.tolist()}) == 35
    assert set(masks.sum(axis=1).tolist()) == {3}


def test_counts_follow_the_hypergeometric_law_in_every_group() -> None:
    counts, sizes = np.array([4, 3, 5]), [3, 4, 5]
    drawn = deals.random_counts(stream(2, "counts"), counts, sizes, 20_000)
    assert (drawn.sum(axis=1) == sizes).all()
    assert (drawn.sum(axis=2) == counts).all()
    for d in range(3):
        for k in range(3):
            expected = stats.hypergeom(12, counts[d], sizes[k]).pmf(np.arange(6)) * 20_000
            found = np.bincount(drawn[:, d, k], minlength=6)
            seen = expected > 5
            assert found[expected == 0].sum() == 0
            assert stats.chisquare(found[seen], expected[seen] * found[seen].sum() / expected[seen].sum()).pvalue > 1e-4


def test_blocks_do_not_depend_on_how_many_are_asked_for() -> None:
    def work(rng: np.random.Generator, b: int) -> np.ndarray:
        return rng.random((b, 2))

    one = deals.in_blocks(work, 103, 10, seed=5, name="w")
    some, more = (deals.in_blocks(work, n, 10, seed=5, name="w", first=k) for n, k in ((40, 0), (103, 4)))
    assert one.shape == (103, 2)
    assert one.tobytes() == np.concatenate([some, more]).tobytes()
    assert np.unique(one).size == 206


def test_subset_sums_add_up() -> None:
    rng = stream(6, "sums")
    masks, features = rng.random((40, 5000)) < 0.3, rng.normal(size=(5000, 3))
    np.testing.assert_allclose(deals.subset_sums(masks, features), np.einsum("ij,jk->ik", masks, features))


def test_too_many_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 255 groups"):
        deals.random_labels(stream(1, "x"), [1] * 256, 1)
