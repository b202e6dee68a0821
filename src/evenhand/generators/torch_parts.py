"""What both networks share: torch on demand, its own random state, and output blocks."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evenhand.errors import MissingDependencyError
from evenhand.generators.modes import Coder


def load_torch() -> Any:
    """Return the module torch, or say how to get it."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingDependencyError(
            "CTGAN and TVAE need torch. Install it with `pip install 'evenhand[synth]'`, or use generator='light'."
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
