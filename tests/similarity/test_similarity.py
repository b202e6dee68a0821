from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import DataError, UsageError
from evenhand.models.input_space import numeric_space
from evenhand.similarity import (
    ComparablePairs,
    Discounted,
    ExpertMatrix,
    MatchedPairs,
    MetricRows,
    SensitiveSubspace,
    Similarity,
)
from evenhand.similarity.comparable_pairs import fit_comparable
from evenhand.similarity.metric import GroupTable, angles, orthonormal
from evenhand.similarity.prediction import predicted_groups
from evenhand.similarity.reach import group_reach
from evenhand.similarity.uncertainty import bootstrap_metric

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 4))
SPACE = numeric_space({f"x{j}": X[:, j] for j in range(4)}, None, None)


def table(name, codes, labels):
    return GroupTable(name=name, labels=labels, table=np.eye(len(labels))[codes])


def rows(groups=(), continuous=None, count=None, data=X, space=SPACE):
    count = np.ones(len(data)) if count is None else count
    return MetricRows(X=data, groups=tuple(groups), continuous=continuous or {}, count=count, space=space)


SEX = (X[:, 0] + 0.5 * X[:, 1] + RNG.logistic(size=N) > 0).astype(int)
RACE = np.digitize(X[:, 2] + 0.3 * RNG.normal(size=N), [-0.5, 0.7])


def test_recipes_share_one_face():
    for recipe in (ExpertMatrix(np.eye(2)), Discounted(columns=["a"]), SensitiveSubspace()):
        assert isinstance(recipe, Similarity)


def test_subspace_is_scikit_learns_converged_direction():
    linear_model = importlib.import_module("sklearn.linear_model")
    peer = linear_model.LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, SEX).coef_[0]
    metric = SensitiveSubspace().fit(rows([table("sex", SEX, ("f", "m"))]))
    assert metric.form.basis.shape == (4, 1)
    assert angles(metric.form.basis, (peer / np.linalg.norm(peer))[:, None])[0] < 1e-3
    assert metric.details["penalty"] == 1.0
    assert metric.details["directions"][0]["inputs"][0]["input"] == "x0"


def test_default_solver_settings_would_not_have_converged_but_ours_has():
    # The gradient of the penalised likelihood vanishes at the direction found.
    from evenhand.kernels.shared.logistic import fit_logistic

    fit = fit_logistic(X, SEX, l2=1.0)
    residual = SEX - fit.probability(X)
    np.testing.assert_allclose(X.T @ residual - fit.coef, 0.0, atol=1e-6)


def test_names_of_groups_do_not_matter():
    one = SensitiveSubspace().fit(rows([table("sex", SEX, ("f", "m"))])).form.basis
    two = SensitiveSubspace().fit(rows([table("sex", 1 - SEX, ("x", "y"))])).form.basis
    np.testing.assert_array_equal(one, two)


def test_many_values_and_numbers_and_counts():
    three = SensitiveSubspace().fit(rows([table("race", RACE, ("a", "b", "c"))]))
    assert three.form.basis.shape == (4, 2)
    inside = three.form.basis.T @ np.eye(4)[2]  # the input that makes the groups lies in the span
    assert np.linalg.norm(inside) > 0.99
    age = 40 + 8 * X[:, 3] + RNG.normal(size=N)
    number = SensitiveSubspace().fit(rows(continuous={"age": age}))
    slope = np.linalg.lstsq(np.column_stack([np.ones(N), X]), age, rcond=None)[0][1:]
    assert angles(number.form.basis, (slope / np.linalg.norm(slope))[:, None])[0] < 0.2
    count = RNG.integers(1, 4, N)
    weighted = SensitiveSubspace().fit(
        rows([GroupTable(name="sex", labels=("f", "m"), table=np.eye(2)[SEX] * count[:, None])], count=count * 1.0)
    )
    repeated = SensitiveSubspace().fit(
        rows([table("sex", np.repeat(SEX, count), ("f", "m"))], data=np.repeat(X, count, axis=0))
    )
    assert angles(weighted.form.basis, repeated.form.basis)[0] < 1e-5


def test_inputs_that_are_the_attribute_are_sensitive_themselves():
    data = np.column_stack([SEX.astype(float), X])
    space = numeric_space({n: data[:, j] for j, n in enumerate(("sex", "x0", "x1", "x2", "x3"))}, None, None)
    metric = SensitiveSubspace().fit(rows([table("sex", SEX, ("f", "m"))], data=data, space=space))
    assert metric.form.basis.shape == (5, 2)
    free = metric.form.free_directions()
    np.testing.assert_allclose(free @ (free.T @ np.eye(5)[0]), np.eye(5)[0], atol=1e-12)
    learned = SensitiveSubspace().fit(rows([table("sex", SEX, ("f", "m"))]))
    inner = np.vstack([np.zeros((1, 1)), learned.form.basis])
    np.testing.assert_allclose(free @ (free.T @ inner), inner, atol=1e-9)


def test_subspace_errors():
    with pytest.raises(DataError, match="has 1 group among the 600 rows"):
        SensitiveSubspace().fit(rows([table("sex", np.zeros(N, dtype=int), ("f", "m"))]))
    with pytest.raises(DataError, match="no sensitive direction"):
        SensitiveSubspace().fit(rows())
    with pytest.raises(DataError, match="Did you mean `sex`"):
        SensitiveSubspace(["sexx"]).fit(rows([table("sex", SEX, ("f", "m"))]))
    with pytest.raises(UsageError, match="`l2` must be at least 0"):
        SensitiveSubspace(l2=-1)


def test_expert_matrix_and_discounted_directions_agree():
    v = np.array([1.0, 2.0, 0.0, 0.0]) / np.sqrt(5)
    a = ExpertMatrix(np.eye(4) - np.outer(v, v)).fit(rows()).form
    b = Discounted([5 * v]).fit(rows()).form
    np.testing.assert_allclose(a.dense(), b.dense(), atol=1e-14)
    c = Discounted(columns=["x1"]).fit(rows()).form
    np.testing.assert_allclose(c.dense(), np.diag([1.0, 0, 1, 1]), atol=1e-14)


def test_an_expert_matrix_keeps_its_distance_in_other_units():
    S = np.array([[2.0, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    center, unit = X.mean(axis=0), np.array([1.0, 10.0, 0.1, 3.0])
    scaled = rows(data=(X - center) / unit, space=SPACE.rescaled(center, unit))
    d = X[:5] - X[5:10]
    np.testing.assert_allclose(
        ExpertMatrix(S).fit(scaled).form.square(d / unit), np.einsum("ij,jk,ik->i", d, S, d), rtol=1e-12
    )
    free = Discounted(np.eye(4)[:1] + np.eye(4)[1:2]).fit(scaled).form
    np.testing.assert_allclose(free.square(np.array([[1.0, 1.0, 0, 0]]) / unit), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 2.0]], "square"),
        ([[1.0, 1.0], [0.0, 1.0]], "symmetric"),
        ([[-1.0, 0], [0, 1.0]], "negative eigenvalues"),
    ],
)
def test_expert_matrices_are_checked(matrix, message):
    with pytest.raises(UsageError, match=message):
        ExpertMatrix(matrix)


def test_the_metric_must_fit_the_model():
    with pytest.raises(UsageError, match="for 2 inputs and the model has 4"):
        ExpertMatrix(np.eye(2)).fit(rows())
    with pytest.raises(UsageError, match="Give `directions` or `columns`"):
        Discounted()


def columns_of(data):
    return {f"x{j}": data[:, j] for j in range(4)}


def test_matched_pairs_find_the_planted_directions():
    Q = np.linalg.qr(RNG.normal(size=(4, 2)))[0]
    left = RNG.normal(size=(80, 4))
    right = left + RNG.normal(size=(80, 2)) @ Q.T * [1.0] + 0.01 * RNG.normal(size=(80, 4))
    metric = MatchedPairs(columns_of(left), columns_of(right), share=0.99).fit(rows())
    assert metric.form.basis.shape == (4, 2)
    assert angles(metric.form.basis, Q).max() < 1.0
    one = MatchedPairs(columns_of(left), columns_of(right), components=1).fit(rows())
    _, _, vt = np.linalg.svd(right - left, full_matrices=False)
    assert angles(one.form.basis, vt[:1].T)[0] < 1e-5
    with pytest.raises(DataError, match="do not differ"):
        MatchedPairs(columns_of(left), columns_of(left)).fit(rows())


def test_comparable_pairs_recover_the_matrix_that_made_the_answers():
    true = np.diag([0.0, 1.5])
    gap = RNG.normal(size=(6000, 2)) * 1.5
    comparable = RNG.random(6000) < 2 / (1 + np.exp(np.einsum("ij,jk,ik->i", gap, true, gap)))
    S, _ = fit_comparable(gap, comparable, 1e-6)
    np.testing.assert_allclose(S, true, atol=0.12)
    assert np.linalg.eigvalsh(S)[0] >= -1e-12


def test_comparable_pairs_as_a_recipe():
    left = RNG.normal(size=(300, 4))
    gap = RNG.normal(size=(300, 4))
    answer = np.abs(gap[:, 0]) < 0.7  # only the first input matters to these people
    metric = ComparablePairs(columns_of(left), columns_of(left + gap), answer).fit(rows())
    S = metric.form.dense()
    assert S[0, 0] > 5 * np.abs(np.delete(np.diag(S), 0)).max()
    with pytest.raises(DataError, match="same answer"):
        ComparablePairs(columns_of(left), columns_of(left + gap), np.ones(300, dtype=bool))


def test_bootstrap_angles_shrink_with_the_sample():
    def spread(n):
        sample = rows([table("sex", SEX[:n], ("f", "m"))], data=X[:n])
        recipe = SensitiveSubspace()
        return bootstrap_metric(recipe, sample, recipe.fit(sample), refits=15, seed=1)

    small, large = spread(100), spread(600)
    assert len(small.forms) == 15
    assert np.median(large.largest_angle) < np.median(small.largest_angle)
    # The bootstrap says what fresh samples say, within a factor of two.
    fresh = []
    for k in range(25):
        rng = np.random.default_rng([7, k])
        Z = rng.normal(size=(600, 4))
        s = (Z[:, 0] + 0.5 * Z[:, 1] + rng.logistic(size=600) > 0).astype(int)
        fresh.append(SensitiveSubspace().fit(rows([table("sex", s, ("f", "m"))], data=Z)).form.basis)
    truth = orthonormal(np.array([[1.0, 0.5, 0.0, 0.0]]))
    turn = np.median([angles(truth, b).max() for b in fresh])
    assert 0.5 < np.median(large.largest_angle) / turn < 2.0
    again = spread(600)
    np.testing.assert_array_equal(again.largest_angle, large.largest_angle)


def test_pairs_have_their_own_bootstrap():
    def turned(pairs):
        rng = np.random.default_rng(5)
        left = rng.normal(size=(pairs, 4))
        right = left + rng.normal(size=(pairs, 1)) * [1.0, 0.5, 0.0, 0.0] + 0.3 * rng.normal(size=(pairs, 4))
        recipe = MatchedPairs(columns_of(left), columns_of(right), components=1)
        spread = bootstrap_metric(recipe, rows(), recipe.fit(rows()), refits=12, seed=0)
        assert spread.failed == 0
        return np.median(spread.largest_angle)

    assert 0 < 3 * turned(4000) < turned(60)
    answers = np.arange(40) % 2 == 0
    gap = np.where(answers[:, None], 0.2, 2.0) * np.random.default_rng(6).normal(size=(40, 4))
    recipe = ComparablePairs(columns_of(np.zeros((40, 4))), columns_of(gap), answers, l2=0.1)
    spread = bootstrap_metric(recipe, rows(), recipe.fit(rows()), refits=3, seed=0)
    assert np.all(spread.distance > 0)
    one_answer = ComparablePairs(columns_of(np.zeros((2, 4))), columns_of(gap[:2]), answers[:2], l2=0.1)
    assert bootstrap_metric(one_answer, rows(), one_answer.fit(rows()), refits=12, seed=0).failed > 0


# Do the inputs predict the groups, and how far do the groups differ?


def test_random_groups_pass_for_predicted_no_more_often_than_allowed():
    rng = np.random.default_rng(7)
    passed = {1: 0, 5: 0}
    trials = 300
    for wide in passed:
        for _ in range(trials):
            data = rng.normal(size=(120, wide))
            space = numeric_space({f"x{j}": data[:, j] for j in range(wide)}, None, None)
            whole = rows([table("sex", rng.integers(0, 2, 120), ("f", "m"))], data=data, space=space)
            halves = whole.take(np.arange(60)), whole.take(np.arange(60, 120))
            passed[wide] += predicted_groups(SensitiveSubspace(), *halves)[0].pvalue <= 0.05
    for count in passed.values():
        assert count <= stats.binom.ppf(0.999, trials, 0.05)


def test_rank_sums_on_rows_apart_are_scipys():
    whole = rows([table("sex", SEX, ("f", "m")), table("race", RACE, ("a", "b", "c"))])
    one, two = whole.take(np.arange(0, N, 2)), whole.take(np.arange(1, N, 2))
    found = predicted_groups(SensitiveSubspace(), one, two)
    assert [(p.attribute, p.group) for p in found] == [("sex", None), ("race", 0), ("race", 1), ("race", 2)]
    z = []
    for learn, test in ((one, two), (two, one)):
        v = SensitiveSubspace(["race"]).regressions(learn)[2].direction
        member = test.groups[1].table[:, 2] == 1
        score = test.X @ v
        z.append(stats.norm.isf(stats.mannwhitneyu(score[member], score[~member], alternative="greater",
                                                   use_continuity=False, method="asymptotic").pvalue))  # fmt: skip
    assert stats.norm.isf(found[3].pvalue) == pytest.approx(np.mean(z), rel=1e-6)


def test_only_predicted_groups_stay_in_the_metric():
    noise = np.random.default_rng(1).integers(0, 2, N)
    whole = rows([table("sex", SEX, ("f", "m")), table("noise", noise, ("u", "v"))])
    assert SensitiveSubspace().fit(whole).form.basis.shape[1] == 2
    kept = SensitiveSubspace().keeping({("sex", None)}).fit(whole)
    alone = SensitiveSubspace(["sex"]).fit(whole)
    np.testing.assert_array_equal(kept.form.basis, alone.form.basis)


def test_reach_is_the_difference_of_means_along_the_direction():
    whole = rows([table("sex", SEX, ("f", "m"))])
    metric = SensitiveSubspace().fit(whole)
    directions, reach = group_reach(metric, whole)
    at = X @ directions[:, 0]
    assert reach[0] == pytest.approx(abs(at[SEX == 1].mean() - at[SEX == 0].mean()))
    assert angles(directions, metric.form.basis)[0] < 1e-5
    stated = Discounted(columns=["x1"]).fit(whole)
    assert group_reach(stated, whole)[1].tolist() == [np.inf]
    age = 40 + 8 * X[:, 3]
    number = rows(continuous={"age": age})
    _, along = group_reach(SensitiveSubspace().fit(number), number)
    assert along[0] == pytest.approx(2 * X[:, 3].std(), rel=0.01)
