"""CTGAN, written from its description: Xu, Skoularidou, Cuesta-Infante, Veeramachaneni (2019).

A number becomes a mode and a place inside it; the generator is told one category it must produce, drawn by the log
of its frequency so that rare categories are learnt; the critic sees rows in packs and its gradient is penalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.errors import UsageError
from evenhand.generators.modes import Coder
from evenhand.generators.torch_parts import TorchGenerator, choose, improve


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Training:
    """What a step of training needs: the coded rows, their order by each category, and the critic."""

    torch: Any
    coder: Coder
    real: FloatArray
    order: list[IntArray]
    batch: int
    rng: np.random.Generator
    critic: Any
    adam_generator: Any
    adam_critic: Any

    def tensor(self, a: FloatArray) -> Any:
        return self.torch.as_tensor(a, dtype=self.torch.float32)


@dataclass(kw_only=True, eq=False, repr=False)
class CTGAN(TorchGenerator):
    """A conditional generative adversarial network for tables.

    Parameters
    ----------
    epochs : int
        Passes over the rows.
    batch : int
        Rows per step, a multiple of `pack`.
    noise, hidden, pack : int
        Random inputs, width of the two hidden layers, rows the critic sees together.
    rate : float
        Learning rate of both networks.
    penalty : float
        Weight of the gradient penalty.
    temperature : float
        Of the soft choices.
    time_limit : float
        Seconds of training; when they are over, training stops and `stopped` is True.
    seed : int
        Same seed, same rows (unless the time limit stopped it).

    Examples
    --------
    >>> table = {"x": np.linspace(0, 1, 200), "c": np.array(["a", "b"] * 100)}
    >>> made = CTGAN(epochs=1, batch=100).fit(table).sample(50)  # doctest: +SKIP
    """

    name = "ctgan"
    epochs: int = 100
    batch: int = 500
    noise: int = 128
    hidden: int = 256
    pack: int = 10
    rate: float = 2e-4
    penalty: float = 10.0
    temperature: float = 0.2
    time_limit: float = float("inf")
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batch % self.pack:
            raise UsageError(f"`batch` must be a multiple of `pack`; got {self.batch} and {self.pack}.")

    def _train(self, torch: Any, coder: Coder, real: FloatArray, rng: np.random.Generator) -> None:
        self._shares = [real[:, low:high].mean(axis=0) for low, high in coder.choices]
        conditions = sum(high - low for low, high in coder.choices)
        self._layers = self._generator(torch, coder.width, conditions)
        critic = self._critic(torch, coder.width, conditions)
        parameters = [p for layer in self._layers for p in layer.parameters()]
        options: dict[str, Any] = {"lr": self.rate, "betas": (0.5, 0.9)}
        training = _Training(
            torch=torch,
            coder=coder,
            real=real,
            order=[real[:, low:high].argmax(axis=1).argsort(kind="stable") for low, high in coder.choices],
            batch=min(self.batch, max(self.pack, real.shape[0] // self.pack * self.pack)),
            rng=rng,
            critic=critic,
            adam_generator=torch.optim.Adam(parameters, weight_decay=1e-6, **options),
            adam_critic=torch.optim.Adam(critic.parameters(), **options),
        )
        for _ in range(self.epochs * max(1, real.shape[0] // training.batch)):
            if self._late():
                break
            self._teach_critic(training)
            self._teach_generator(training)
        for layer in self._layers:
            layer.eval()

    def _generator(self, torch: Any, width: int, conditions: int) -> list[Any]:
        nn, size = torch.nn, self.noise + conditions
        layers = []
        for _ in range(2):
            layers.append(nn.Sequential(nn.Linear(size, self.hidden), nn.BatchNorm1d(self.hidden), nn.ReLU()))
            size += self.hidden  # each layer's output is put beside its input
        return [*layers, nn.Linear(size, width)]

    def _critic(self, torch: Any, width: int, conditions: int) -> Any:
        nn, parts = torch.nn, []
        size = (width + conditions) * self.pack
        for _ in range(2):
            parts += [nn.Linear(size, self.hidden), nn.LeakyReLU(0.2), nn.Dropout(0.5)]
            size = self.hidden
        return nn.Sequential(*parts, nn.Linear(size, 1))

    def _forward(self, torch: Any, asked: Any) -> Any:
        given = torch.cat([torch.randn(asked.shape[0], self.noise), asked], 1)
        for layer in self._layers[:-1]:
            given = torch.cat([layer(given), given], dim=1)
        return self._layers[-1](given)

    def _conditions(self, n: int, rng: np.random.Generator, *, balanced: bool) -> tuple[FloatArray, IntArray, IntArray]:
        """Draw a category column and one of its categories for each row, as one-hot conditions."""
        sizes = [s.size for s in self._shares]
        total = sum(sizes)
        if not sizes:
            nothing = np.zeros(n, dtype=np.int64)
            return np.zeros((n, 0)), nothing - 1, nothing
        column = rng.integers(len(sizes), size=n)
        category = np.zeros(n, dtype=np.int64)
        for c, share in enumerate(self._shares):
            weight = np.log1p(share * 1e4) if balanced else share
            mine = column == c
            category[mine] = rng.choice(share.size, size=int(mine.sum()), p=weight / weight.sum())
        at = np.cumsum([0, *sizes])[column] + category
        return (at[:, None] == np.arange(total)).astype(float), column, category

    def _teach_critic(self, t: _Training) -> None:
        torch = t.torch
        condition, column, category = self._conditions(t.batch, t.rng, balanced=True)
        rows = t.rng.integers(t.real.shape[0], size=t.batch)
        for c, share in enumerate(self._shares):  # real rows that have the asked category
            mine = column == c
            counts = np.rint(share * t.real.shape[0]).astype(np.int64)
            start, size = (np.cumsum(counts) - counts)[category[mine]], counts[category[mine]]
            rows[mine] = t.order[c][start + (t.rng.random(size.size) * size).astype(np.int64)]
        asked = t.tensor(condition)
        fake = choose(torch, t.coder, self._forward(torch, asked), self.temperature)
        true, made = self._packed(t, t.tensor(t.real[rows]), asked), self._packed(t, fake.detach(), asked)
        between = (torch.rand(true.shape[0], 1) * (true - made) + made).requires_grad_(True)
        slope = torch.autograd.grad(t.critic(between).sum(), between, create_graph=True)[0]
        loss = t.critic(made).mean() - t.critic(true).mean() + self.penalty * ((slope.norm(dim=1) - 1) ** 2).mean()
        improve(t.adam_critic, loss)

    def _teach_generator(self, t: _Training) -> None:
        condition, column, category = self._conditions(t.batch, t.rng, balanced=True)
        asked = t.tensor(condition)
        raw = self._forward(t.torch, asked)
        fake = choose(t.torch, t.coder, raw, self.temperature)
        loss = -t.critic(self._packed(t, fake, asked)).mean()
        for c, (low, high) in enumerate(t.coder.choices):
            mine = np.flatnonzero(column == c)
            if mine.size:  # the asked category must come out
                wanted = t.torch.as_tensor(category[mine])
                entropy = t.torch.nn.functional.cross_entropy(raw[mine][:, low:high], wanted, reduction="sum")
                loss = loss + entropy / t.batch
        improve(t.adam_generator, loss)

    def _packed(self, t: _Training, rows: Any, asked: Any) -> Any:
        return t.torch.cat([rows, asked], 1).reshape(t.batch // self.pack, -1)

    def _sample_conditions(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self._conditions(n, rng, balanced=False)[0]  # they follow the observed shares

    def _draw(self, torch: Any, coder: Coder, asked: Any) -> Any:
        return choose(torch, coder, self._forward(torch, asked), self.temperature)
