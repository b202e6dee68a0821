"""CTGAN, written from its description: Xu, Skoularidou, Cuesta-Infante, Veeramachaneni (2019).

A number becomes a mode and a place inside it; the generator is told one category it must produce, drawn by the log
of its frequency so that rare categories are learnt; the critic sees rows in packs and its gradient is penalised.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import UsageError
from evenhand.generators.columns import Columns
from evenhand.generators.modes import Coder, make_coder
from evenhand.generators.torch_parts import choose, load_torch, seeded
from evenhand.kernels.shared.seeds import stream

FloatArray = NDArray[np.float64]


class CTGAN:
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

    def __init__(
        self,
        *,
        epochs: int = 100,
        batch: int = 500,
        noise: int = 128,
        hidden: int = 256,
        pack: int = 10,
        rate: float = 2e-4,
        penalty: float = 10.0,
        temperature: float = 0.2,
        time_limit: float = float("inf"),
        seed: int = 0,
    ) -> None:
        if batch % pack:
            raise UsageError(f"`batch` must be a multiple of `pack`; got {batch} and {pack}.")
        self.epochs, self.batch, self.noise, self.hidden, self.pack = epochs, batch, noise, hidden, pack
        self.rate, self.penalty, self.temperature = rate, penalty, temperature
        self.time_limit, self.seed, self.stopped = time_limit, seed, False
        self._coder: Coder | None = None
        self._layers: list[Any] = []
        self._shares: list[FloatArray] = []
        self._block = 0

    def fit(self, columns: Columns) -> CTGAN:
        """Train on a table."""
        torch = load_torch()
        rng = stream(self.seed, "generator/ctgan/fit")
        coder = self._coder = make_coder(columns)
        real = coder.encode(columns, rng)
        self._shares = [real[:, low:high].mean(axis=0) for low, high in coder.choices]
        order = [real[:, low:high].argmax(axis=1).argsort(kind="stable") for low, high in coder.choices]
        conditions = sum(high - low for low, high in coder.choices)
        with seeded(torch, self.seed):
            self._layers = self._generator(torch, coder.width, conditions)
            critic = self._critic(torch, coder.width, conditions)
            parameters = [p for layer in self._layers for p in layer.parameters()]
            options: dict[str, Any] = {"lr": self.rate, "betas": (0.5, 0.9)}
            adam_g = torch.optim.Adam(parameters, weight_decay=1e-6, **options)
            adam_c = torch.optim.Adam(critic.parameters(), **options)
            batch = min(self.batch, max(self.pack, real.shape[0] // self.pack * self.pack))
            began = time.monotonic()
            for _ in range(self.epochs * max(1, real.shape[0] // batch)):
                if time.monotonic() - began > self.time_limit:
                    self.stopped = True
                    break
                self._step(torch, coder, real, order, batch, rng, critic, adam_g, adam_c)
            for layer in self._layers:
                layer.eval()
        self._block = 0
        return self

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

    def _forward(self, torch: Any, given: Any) -> Any:
        for layer in self._layers[:-1]:
            given = torch.cat([layer(given), given], dim=1)
        return self._layers[-1](given)

    def _conditions(
        self, n: int, rng: np.random.Generator, *, balanced: bool
    ) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64]]:
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

    def _step(
        self, torch: Any, coder: Coder, real: FloatArray, order: list[NDArray[np.int64]], batch: int,
        rng: np.random.Generator, critic: Any, adam_g: Any, adam_c: Any,
    ) -> None:  # fmt: skip
        def tensor(a: FloatArray) -> Any:
            return torch.as_tensor(a, dtype=torch.float32)

        condition, column, category = self._conditions(batch, rng, balanced=True)
        rows = rng.integers(real.shape[0], size=batch)
        for c, share in enumerate(self._shares):  # real rows that have the asked category
            mine = column == c
            counts = np.rint(share * real.shape[0]).astype(np.int64)
            start, size = (np.cumsum(counts) - counts)[category[mine]], counts[category[mine]]
            rows[mine] = order[c][start + (rng.random(size.size) * size).astype(np.int64)]
        asked = tensor(condition)
        fake = choose(
            torch, coder, self._forward(torch, torch.cat([torch.randn(batch, self.noise), asked], 1)), self.temperature
        )
        true = torch.cat([tensor(real[rows]), asked], 1).reshape(batch // self.pack, -1)
        made = torch.cat([fake.detach(), asked], 1).reshape(batch // self.pack, -1)
        between = (torch.rand(true.shape[0], 1) * (true - made) + made).requires_grad_(True)
        slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
        loss = critic(made).mean() - critic(true).mean() + self.penalty * ((slope.norm(dim=1) - 1) ** 2).mean()
        adam_c.zero_grad()
        loss.backward()
        adam_c.step()

        condition, column, category = self._conditions(batch, rng, balanced=True)
        asked = tensor(condition)
        raw = self._forward(torch, torch.cat([torch.randn(batch, self.noise), asked], 1))
        fake = choose(torch, coder, raw, self.temperature)
        loss = -critic(torch.cat([fake, asked], 1).reshape(batch // self.pack, -1)).mean()
        for c, (low, high) in enumerate(coder.choices):
            mine = np.flatnonzero(column == c)
            if mine.size:  # the asked category must come out
                wanted = torch.as_tensor(category[mine])
                entropy = torch.nn.functional.cross_entropy(raw[mine][:, low:high], wanted, reduction="sum")
                loss = loss + entropy / batch
        adam_g.zero_grad()
        loss.backward()
        adam_g.step()

    def sample(self, n: int) -> dict[str, NDArray[Any]]:
        """Draw n rows; conditions follow the observed shares."""
        if self._coder is None:
            raise UsageError("The generator has not been fitted.")
        torch = load_torch()
        rng = stream(self.seed, "generator/ctgan/sample", self._block)
        self._block += 1
        condition = self._conditions(n, rng, balanced=False)[0]
        with seeded(torch, int(rng.integers(2**62))), torch.no_grad():
            given = torch.cat([torch.randn(n, self.noise), torch.as_tensor(condition, dtype=torch.float32)], 1)
            made = choose(torch, self._coder, self._forward(torch, given), self.temperature)
        return self._coder.decode(made.numpy().astype(np.float64))
