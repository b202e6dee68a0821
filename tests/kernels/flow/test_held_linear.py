from __future__ import annotations

import numpy as np
import pytest

from evenhand.kernels.flow.gradient_flow import Euler, Flow, QuadraticForm, follow
from evenhand.kernels.flow.held_linear import HeldFlow, LinearScore, Room, follow_held
from evenhand.kernels.flow.losses import LogitLoss
from evenhand.kernels.flow.simplex import to_simplex
from evenhand.kernels.flow.tiles import Tiles

N, P = 70, 8


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("penalty", [0.0, 30.0])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("sizes", [(), (2,), (3,), (2, 3)])
def test_it_makes_the_steps_of_the_general_flow(outputs, penalty, wide, sizes):
    """Rows are brought back as `follow` does it: first along the free directions, then in each input, then to shares.

    Where the range is wide, some inputs are far from their edges for everybody but one.
    """
    rng = np.random.default_rng(outputs)
    X = rng.normal(size=(N, P))
    X[:, 3] = rng.integers(0, 2, N)  # at the edge of its range, whichever value it has
    shares = tuple(np.arange(P - 3, P)[:size] if size == 3 else np.array([1, 4]) for size in sizes)
    for block in shares:
        X[:, block] = np.eye(block.size)[rng.integers(0, block.size, N)]
    y = rng.integers(0, max(outputs, 2), N).astype(float)
    weights, bias, loss = 2 * rng.normal(size=(P, outputs)), rng.normal(size=outputs), LogitLoss()
    D = np.linalg.qr(rng.normal(size=(P, 2)))[0]
    reach, low, high = np.array([0.4, np.inf]), X.min(axis=0), X.max(axis=0)
    if wide:
        low[:3], high[:3] = -9.0, 9.0
        X[5, [0, 2]] = low[0], high[2]
    ends = (X @ D).min(axis=0) + 0.3, (X @ D).max(axis=0) - 0.3

    def allowed(start):
        began = start @ D
        least = np.maximum(np.minimum(ends[0], began), began - reach)
        return began, least, np.minimum(np.maximum(ends[1], began), began + reach)

    def keep(at, start):
        _, least, most = allowed(start)
        out = at + (np.clip(at @ D, least, most) - at @ D) @ D.T
        out = np.clip(out, np.minimum(low, start), np.maximum(high, start))
        for block in shares:
            out[:, block] = to_simplex(out[:, block].T).T
        return out

    def room(start):
        began, least, most = allowed(start)
        return Room(
            least=least - began,
            most=most - began,
            lowest=np.minimum(low - start, 0.0),
            highest=np.maximum(high - start, 0.0),
        )

    def look(out, rows):
        return np.column_stack([loss.log_value(out, y[rows]), loss.wrong(out, y[rows])])

    general = Flow(
        gradient=lambda at, rows: loss.slope(at @ weights + bias, y[rows]) @ weights.T,
        form=QuadraticForm(basis=D),
        penalty=penalty,
        keep=keep,
    )
    score = LinearScore(weights=weights, bias=bias, slope=lambda out, rows: loss.slope(out, y[rows]), look=look)
    held = HeldFlow(score=score, directions=D, penalty=penalty, room=room, shares=shares)
    steps = Euler(0.012 / np.arange(1, 121) ** 0.2, [0, 1, 60, 120])
    slow = follow(X, general, steps, observe=lambda at, rows: look(at @ weights + bias, rows))
    for tile in (16, N):
        fast = follow_held(X, held, steps, Tiles(size=tile))
        np.testing.assert_allclose(fast.end, slow.end, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(fast.seen, slow.seen, rtol=1e-11, atol=1e-12)
        np.testing.assert_array_equal(fast.stopped, slow.stopped)
        np.testing.assert_array_equal(fast.times, slow.times)
    assert slow.stopped.any()
    assert np.abs(slow.end - X).max() > 0.1
