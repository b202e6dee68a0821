"""What both networks share: torch on demand, its own random state, and output blocks."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.errors import MissingDependencyError, UsageError
from evenhand.generators.columns import Columns
from evenhand.generators.modes import Coder, make_coder
from evenhand.kernels.shared.seeds import stream


class TorchGenerator:
    """A network that learns a table and draws rows; CTGAN and TVAE say how they train and draw."""

    name = ""
    seed: int
    time_limit: float
    stopped = False
    _coder = Coder(kinds=(), modes=())
    _block = 0
    _began = 0.0

    def fit(self, columns: Columns) -> Self:
        """Train on a table."""
        torch = load_torch()
        self._coder, self._block, self._began = make_coder(columns), 0, time.monotonic()
        rng = stream(self.seed, f"generator/{self.name}/fit")
        real = self._coder.encode(columns, rng)
        with seeded(torch, self.seed):
            self._train(torch, self._coder, real, rng)
        return self

    def _late(self) -> bool:
        """Say whether the time for training is over, and remember it."""
        self.stopped = self.stopped or time.monotonic() - self._began > self.time_limit
        return self.stopped

    def sample(self, n: int) -> dict[str, NDArray[Any]]:
        """Draw n rows; each call goes on where the last one stopped."""
        if not self._coder.kinds:
            raise UsageError("The generator has not been fitted.")
        torch = load_torch()
        rng = stream(self.seed, f"generator/{self.name}/sample", self._block)
        self._block += 1
        conditions = self._sample_conditions(n, rng)
        with seeded(torch, int(rng.integers(2**62))), torch.no_grad():
            made = self._draw(torch, self._coder, torch.as_tensor(conditions, dtype=torch.float32))
        return self._coder.decode(made.numpy().astype(np.float64))

    def _train(self, torch: Any, coder: Coder, real: FloatArray, rng: np.random.Generator) -> None:
        """Learn from coded rows until the epochs or the time are over."""
        raise NotImplementedError

    def _sample_conditions(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return what is asked of each row; nothing unless the generator is conditional."""
        return np.zeros((n, 0))

    def _draw(self, torch: Any, coder: Coder, asked: Any) -> Any:
        """Return one coded row for each row of conditions."""
        raise NotImplementedError


def load_torch() -> Any:
    """Return the module torch, or say how to get it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingDependencyError(
            "CTGAN and TVAE need torch. Install it with `pip install 'evenhand[torch]'`, or use `generator='light'`."
        ) from error


@contextmanager
def seeded(torch: Any, seed: int) -> Iterator[None]:
    """Draw from a seed of one's own and leave the user's random state and thread count alone."""
    threads = torch.get_num_threads()
    # One thread: the networks are small, threads that wait for busy cores cost more than they bring, and sums come
    # out the same on every machine.
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed % 2**63)
            yield
    finally:
        torch.set_num_threads(threads)


def improve(adam: Any, loss: Any) -> None:
    """Make one step down the gradient of a loss."""
    adam.zero_grad()
    loss.backward()
    adam.step()


def choose(torch: Any, coder: Coder, raw: Any, temperature: float) -> Any:
    """Squash places into [-1, 1] and draw soft choices (Gumbel) from each block."""
    out = []
    for kind, low, high in coder.blocks:
        part = raw[:, low:high]
        if kind == "place":
            out.append(torch.tanh(part))
        else:
            out.append(torch.nn.functional.gumbel_softmax(part, tau=temperature, dim=1))
    return torch.cat(out, dim=1)
