"""TVAE, written from its description: Xu, Skoularidou, Cuesta-Infante, Veeramachaneni (2019), sec. 4.4.

A variational autoencoder over the same coding of columns as CTGAN: places are normal with a spread learnt per
column, choices are multinomial, and the evidence lower bound is maximised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.generators.modes import Coder
from evenhand.generators.torch_parts import TorchGenerator, improve


@dataclass(kw_only=True, eq=False, repr=False)
class TVAE(TorchGenerator):
    """A variational autoencoder for tables.

    Parameters
    ----------
    epochs, batch : int
        Passes over the rows, rows per step.
    latent, hidden : int
        Width of the code and of the two hidden layers on either side.
    rate : float
        Learning rate.
    time_limit : float
        Seconds of training; when they are over, training stops and `stopped` is True.
    seed : int
        Same seed, same rows (unless the time limit stopped it).

    Examples
    --------
    >>> table = {"x": np.linspace(0, 1, 200), "c": np.array(["a", "b"] * 100)}
    >>> made = TVAE(epochs=1).fit(table).sample(50)  # doctest: +SKIP
    """

    name = "tvae"
    epochs: int = 100
    batch: int = 500
    latent: int = 128
    hidden: int = 128
    rate: float = 1e-3
    time_limit: float = float("inf")
    seed: int = 0

    def _train(self, torch: Any, coder: Coder, real: FloatArray, rng: np.random.Generator) -> None:
        table, n, nn = torch.as_tensor(real, dtype=torch.float32), real.shape[0], torch.nn
        body = nn.Sequential(
            nn.Linear(coder.width, self.hidden), nn.ReLU(), nn.Linear(self.hidden, self.hidden), nn.ReLU()
        )
        mean, log_variance = nn.Linear(self.hidden, self.latent), nn.Linear(self.hidden, self.latent)
        self._decoder = nn.Sequential(
            nn.Linear(self.latent, self.hidden), nn.ReLU(), nn.Linear(self.hidden, self.hidden), nn.ReLU(),
            nn.Linear(self.hidden, coder.width),
        )  # fmt: skip
        self._spread = nn.Parameter(torch.full((coder.width,), 0.1))
        parts = [body, mean, log_variance, self._decoder]
        parameters = [p for part in parts for p in part.parameters()] + [self._spread]
        adam = torch.optim.Adam(parameters, lr=self.rate, weight_decay=1e-5)
        for _ in range(self.epochs):
            for rows in torch.randperm(n).split(min(self.batch, n)):
                x = table[rows]
                h = body(x)
                mu, spread = mean(h), log_variance(h).clamp(-20, 10)
                code = mu + torch.randn_like(mu) * torch.exp(spread / 2)
                loss = self._loss(torch, coder, self._decoder(code), x)
                divergence = -0.5 * (1 + spread - mu**2 - spread.exp()).sum() / x.shape[0]
                improve(adam, loss + divergence)
                with torch.no_grad():
                    self._spread.clamp_(0.01, 1.0)
            if self._late():
                break

    def _loss(self, torch: Any, coder: Coder, raw: Any, x: Any) -> Any:
        total = 0.0
        for kind, low, high in coder.blocks:
            if kind == "place":
                spread = self._spread[low]
                miss = x[:, low] - torch.tanh(raw[:, low])
                total = total + (miss**2 / (2 * spread**2)).sum() + torch.log(spread) * x.shape[0]
            else:
                total = total + torch.nn.functional.cross_entropy(
                    raw[:, low:high], x[:, low:high].argmax(dim=1), reduction="sum"
                )
        return 2 * total / x.shape[0]

    def _draw(self, torch: Any, coder: Coder, asked: Any) -> Any:
        n = asked.shape[0]
        raw = self._decoder(torch.randn(n, self.latent))
        for kind, low, high in coder.blocks:
            if kind == "place":
                raw[:, low] = torch.tanh(raw[:, low]) + torch.randn(n) * self._spread[low]
            else:  # draw the choice instead of taking the likeliest: rare categories would vanish
                raw[:, low:high] += torch.distributions.Gumbel(0.0, 1.0).sample((n, high - low))
        return raw
