from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, UsageError
from evenhand.generators import (
    CTGAN,
    TVAE,
    IndependentSampler,
    LightSampler,
    downstream_f1,
    extend_tail,
    make_generator,
    realism,
)
from evenhand.generators.modes import fit_modes, make_coder


def people(n: int = 600, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    job = rng.choice(["clerk", "nurse", "smith"], p=[0.6, 0.3, 0.1], size=n)
    age = np.clip(rng.normal(40, 12, size=n), 18, 80).astype(np.int64)
    pay = age * 100.0 + np.where(job == "smith", 3000, 0) + rng.normal(0, 200, size=n)
    return {"age": age, "job": job, "pay": pay, "sex": rng.integers(2, size=n)}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(np.array_equal(a[n], b[n]) for n in a)


def make(kind: str, seed: int = 1) -> Any:
    if kind == "ctgan":
        return CTGAN(epochs=2, batch=200, seed=seed)
    if kind == "tvae":
        return TVAE(epochs=4, batch=200, seed=seed)
    return make_generator(kind, seed=seed)


@pytest.mark.parametrize("kind", ["light", "independent", "ctgan", "tvae"])
def test_generators_make_tables_of_the_same_kind_from_a_seed(kind: str) -> None:
    table = people()
    fitted = make(kind).fit(table)
    made, more = fitted.sample(200), fitted.sample(200)
    assert list(made) == list(table)
    for name, column in table.items():
        assert made[name].dtype == column.dtype
        assert made[name].shape == (200,)
        if column.dtype.kind == "U":
            assert set(made[name]) <= set(column)
        else:
            assert column.min() <= made[name].min()
            assert made[name].max() <= column.max()
    assert same(made, make(kind).fit(table).sample(200))
    assert not same(made, more)
    assert not same(made, make(kind, seed=2).fit(table).sample(200))


def test_the_light_sampler_keeps_margins_and_dependence_and_the_baseline_does_not() -> None:
    table = people(2000)
    light = LightSampler(seed=3).fit(table).sample(4000)
    assert np.corrcoef(light["age"], light["pay"])[0, 1] == pytest.approx(
        np.corrcoef(table["age"], table["pay"])[0, 1], abs=0.05
    )
    assert np.mean(light["job"] == "smith") == pytest.approx(0.1, abs=0.02)
    base = IndependentSampler(seed=3).fit(table).sample(4000)
    assert abs(np.corrcoef(base["age"], base["pay"])[0, 1]) < 0.1
    good, bad = realism(table, light), realism(table, base)
    assert good["kl"] > 0.98 > bad["kl"]
    assert good["detection_auc"] < 0.6 < bad["detection_auc"]
    assert good["frechet"] < bad["frechet"]


def test_a_network_learns_more_than_chance() -> None:
    table = people(1000)
    made = TVAE(epochs=80, batch=200, seed=0).fit(table).sample(1000)
    base = IndependentSampler(seed=0).fit(table).sample(1000)
    assert realism(table, made)["frechet"] < realism(table, base)["frechet"]
    # 400 steps only: half the dependence is still to be learnt, but none of it is chance (0.03 is its spread).
    assert np.corrcoef(made["age"], made["pay"])[0, 1] > 0.15


def test_a_time_limit_stops_training() -> None:
    slow = CTGAN(epochs=10**6, batch=50, time_limit=0.2).fit(people(100))
    assert slow.stopped
    assert len(slow.sample(5)["age"]) == 5


def test_training_leaves_the_users_random_state_alone() -> None:
    torch = importlib.import_module("torch")
    torch.manual_seed(5)
    first = torch.rand(3)
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    TVAE(epochs=1, batch=50).fit(people(100)).sample(5)
    assert torch.equal(first, torch.rand(3))
    assert torch.get_num_threads() == threads


def test_modes_find_separate_heaps_and_the_coder_goes_back() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, 700), rng.normal(100, 2, 300)])
    weight, mean, deviation = fit_modes(values)
    far = mean > 50
    assert weight[far].sum() == pytest.approx(0.3, abs=0.02)
    assert np.abs(mean[far] - 100).max() < 6
    assert deviation.max() < 10
    table = people(300)
    coder = make_coder(table)
    matrix = coder.encode(table, np.random.default_rng(1))
    assert matrix.shape == (300, coder.width)
    back = coder.decode(matrix)
    assert np.array_equal(back["job"], table["job"])
    assert np.abs(back["pay"] - table["pay"]).max() < 1e-6


def test_any_object_with_fit_and_sample_will_do() -> None:
    class Mine:
        def fit(self, frame: Any) -> None:
            self.rows = {n: np.asarray(frame[n]) for n in frame}

        def sample(self, n: int) -> dict[str, Any]:
            at = np.arange(n) % len(self.rows["age"])
            return {name: c[at] for name, c in self.rows.items()}

    table = people(50)
    made = make_generator(Mine()).fit(table).sample(100)
    assert realism(table, made)["copied"] == 1.0
    assert made["job"].dtype == table["job"].dtype

    class Broken(Mine):
        def sample(self, n: int) -> Any:
            return {"age": np.zeros(n)}

    with pytest.raises(DataError, match="gave no table with the columns"):
        make_generator(Broken()).fit(table).sample(3)
    with pytest.raises(UsageError, match="needs the methods"):
        make_generator(object())
    with pytest.raises(UsageError, match="Did you mean `light`"):
        make_generator("lihgt")


def test_realism_of_the_same_law_is_perfect_up_to_noise() -> None:
    found = realism(people(3000, 0), people(3000, 1))
    assert found["detection_auc"] == pytest.approx(0.5, abs=0.03)
    assert found["kl"] > 0.99
    assert found["frechet"] < 0.05


def test_downstream_f1_sees_lost_labels() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=2000)
    y = (x + rng.normal(0, 0.5, size=2000) > 0).astype(float)
    train, test = ({"x": x[:1000]}, y[:1000]), ({"x": x[1000:]}, y[1000:])
    assert abs(downstream_f1(train, train, test)) < 1e-12
    assert downstream_f1(train, ({"x": x[:1000]}, 1 - y[:1000]), test) > 0.5


def test_extend_tail_follows_algorithm_1() -> None:
    rng = np.random.default_rng(3)
    rows = {"x": rng.normal(size=80), "w": rng.normal(size=80)}
    seen: list[str] = []
    found = extend_tail(
        rows, lambda c: 0.1 * np.tanh(c["x"] + c["w"]), "light", horizon=1000, upper=1.0, seed=0, progress=seen.append
    )
    assert found["passed"]
    assert found["rows"] == 1000 * found["rounds"]
    assert 0.05 < found["level"] <= 0.11
    assert seen
    again = extend_tail(rows, lambda c: 0.1 * np.tanh(c["x"] + c["w"]), "light", horizon=1000, upper=1.0, seed=0)
    assert again == found
    steps = extend_tail(rows, lambda c: np.sign(c["x"]), "light", horizon=1000, upper=1.0, seed=0)
    assert not steps["passed"]
    assert steps["level"] is None
