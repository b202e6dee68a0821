"""One seed in, many independent streams out, the same whoever asks and in whatever order."""

from __future__ import annotations

import zlib

import numpy as np

RngLike = int | np.random.Generator | np.random.SeedSequence | None


def seed_of(rng: RngLike) -> int:
    """Reduce what the user passed as `rng` to one whole number that can be written down.

    Parameters
    ----------
    rng : int, Generator, SeedSequence or None
        A seed; a generator is asked for one; None takes fresh entropy from the system.

    Returns
    -------
    int
        Below 2**63, so that it survives JSON.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if isinstance(rng, bool) or (isinstance(rng, int | np.integer) and rng < 0):
        raise TypeError(f"`rng` must be a non-negative whole number or a numpy Generator; got {rng!r}.")
    if isinstance(rng, int | np.integer):
        return int(rng)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1, np.uint64)[0] >> 1)
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1)
    raise TypeError(f"`rng` must be a non-negative whole number or a numpy Generator; got {type(rng).__name__}.")


def stream(seed: int, name: str, block: int = 0) -> np.random.Generator:
    """Return the random stream of one named piece of work.

    Streams with different names or blocks are independent; the same name and block always give the
    same numbers, so work can be cut into blocks, of which more can be made later.

    Parameters
    ----------
    seed : int
        From `seed_of`.
    name : str
        The piece of work, such as ``"group/auc"``. Never a group label: renaming a group must not
        change its p-value.
    block : int
        Which block of resamples.

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> bool(stream(1, "a").random() == stream(1, "a").random() != stream(1, "b").random())
    True
    """
    key = (zlib.crc32(name.encode()), block)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


def published_stream(*seed: int) -> np.random.Generator:
    """Return the stream that numpy itself makes of seeds, to repeat what was drawn from them elsewhere.

    Examples
    --------
    >>> bool(published_stream(1, 2).random() == np.random.default_rng([1, 2]).random())
    True
    """
    return np.random.default_rng(seed)


def old_published_stream(seed: int) -> np.random.RandomState:
    """Return the stream of numpy's old generator, which many published experiments have used.

    Examples
    --------
    >>> old_published_stream(123456).randint(0, 100, 3).tolist()
    [65, 49, 56]
    """
    return np.random.RandomState(seed)
