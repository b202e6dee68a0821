"""Forward Euler through a network of rectifiers, at a few numbers per step and row.

Such a network is linear as long as no unit switches on or off. There its gradient by the inputs is one vector D, the
loss gradient is c D with one number c, and with S = I - QQ' every further Euler position is

    x0 + a + alpha QQ'D + gamma b + beta (I - QQ')D,        a = QQ'(x - x0),  b = (I - QQ')(x - x0),

where x is the position at which D was taken (the anchor). A step then changes three numbers instead of costing two
products of matrices. Bounds on these numbers, found at the anchor, say how long no unit can have switched; a row
that reaches them gets a new anchor. Positions are those of forward Euler up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.flow.perceptron import Perceptron

Slope = Callable[[FloatArray, FloatArray], FloatArray]
Look = Callable[[FloatArray, IntArray], FloatArray]

# Steps for which the pull back to the start is bounded at an anchor; the change of c allowed until the next one; and
# the share of a unit's room that this change may take.
AHEAD, CHANGE, SHARE = 16, 0.3, 0.25
# A new anchor costs about as much as five single steps.
OFTEN = 0.2
# Rows worked on together: a step costs some twenty calls whatever their number.
TILE = 8192
# Rows whose anchors are renewed together: what is known of their units stays in the second-level cache.
RENEWED = 512


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """A network with one output, linear or with one hidden layer of rectifiers, and the loss on top of it.

    Examples
    --------
    >>> net = Perceptron(weights=(np.array([[2.0]]),), biases=(np.array([0.0]),))
    >>> pieces = Pieces(net, lambda out, y: np.ones_like(out), np.zeros(1), lambda out, rows: out)
    >>> end, seen, made = pieces.follow(np.array([0]), np.zeros((1, 1)), np.eye(1), 50.0, np.full(10, 0.01), [10])
    >>> end.round(6).tolist(), seen[0].round(6).tolist(), made
    ([[0.2]], [[0.4]], 10)
    """

    network: Perceptron  # at most one hidden layer, one output
    slope: Slope  # `slope(outputs, y)`: the loss's derivative by the output, both of shape (rows, 1)
    y: FloatArray  # (rows,): outcomes
    look: Look  # `look(outputs, rows)`: what to keep at marked steps, shape (rows, values)

    def follow(
        self, rows: IntArray, origin: FloatArray, basis: FloatArray, penalty: float, steps: FloatArray,
        marks: Sequence[int],
    ) -> tuple[FloatArray, list[FloatArray], int]:  # fmt: skip
        """Make Euler steps from `origin`; the form's basis is Q.

        Returns
        -------
        positions, seen, made
            Where the rows are, what was seen after the marked steps, and after how many steps: fewer than asked for
            where units switch so often that single steps are cheaper.
        """
        y = self.y[rows]
        at = _Anchors(self.network, basis, penalty, origin)
        seen: list[FloatArray] = []
        renewed = 0
        for k in range(len(steps) + 1):
            stale = at.stale()
            for low in range(0, stale.size, RENEWED):
                some = stale[low : low + RENEWED]
                at.renew(some, lambda out, some: self.slope(out[:, None], y[some])[:, 0], steps[k : k + AHEAD])
            renewed += stale.size
            output = at.output()
            if k in marks:
                seen.append(self.look(output[:, None], rows))
            if k == len(steps) or (k % AHEAD == AHEAD - 1 and renewed > OFTEN * AHEAD * rows.size):
                break
            if k % AHEAD == AHEAD - 1:
                renewed = 0
            at.step(self.slope(output[:, None], y)[:, 0], float(steps[k]))
        return at.position(slice(None)), seen, k


class _Anchors:
    """Anchor and present position of each row of a tile."""

    def __init__(self, network: Perceptron, Q: FloatArray, penalty: float, origin: FloatArray) -> None:
        n, p = origin.shape
        self.network, self.Q, self.penalty, self.origin = network, Q, penalty, origin
        self.hidden = len(network.weights) == 2
        self.seen_by = Q.T @ network.weights[0]  # what the units see of the free directions
        # a and D along Q by their coordinates; b, and D across Q.
        self.a, self.Dq, self.b, self.DP = (np.zeros((n, k)) for k in (Q.shape[1], Q.shape[1], p, p))
        self.alpha, self.beta, self.start = np.zeros(n), np.zeros(n), np.zeros(n)
        self.gamma = np.ones(n)
        self.along, self.across, self.back = np.zeros(n), np.zeros(n), np.zeros(n)
        # A row may go on while each number lies between two bounds: alpha, gamma - 1, and what beta is beyond
        # (1 - gamma) rest. At first nothing is allowed: every row wants an anchor.
        self.rest = np.zeros(n)
        self.alpha_low, self.alpha_high = np.ones(n), np.zeros(n)
        self.gamma_low, self.gamma_high = np.zeros(n), np.zeros(n)
        self.beta_room = np.zeros(n)

    def stale(self) -> IntArray:
        """Return the rows for which a unit may have switched since their anchor."""
        lag = self.gamma - 1.0
        good = self.alpha >= self.alpha_low
        good &= self.alpha <= self.alpha_high
        good &= lag >= self.gamma_low
        good &= lag <= self.gamma_high
        lag *= self.rest
        lag += self.beta
        good &= np.abs(lag) <= self.beta_room
        return np.flatnonzero(~good)

    def output(self) -> FloatArray:
        """Return the network's output at the present positions."""
        out = self.alpha * self.along
        out += self.start
        out += self.beta * self.across
        out += (self.gamma - 1.0) * self.back
        return out

    def step(self, c: FloatArray, size: float) -> None:
        """Make one Euler step with loss slopes c."""  # [maity2021] eq. (2.8)
        push = size * c
        self.alpha += push
        self.beta *= 1.0 - 2.0 * size * self.penalty
        self.beta += push
        self.gamma *= 1.0 - 2.0 * size * self.penalty

    def position(self, some: IntArray | slice) -> FloatArray:
        """Return where rows are."""
        a, b = self._moved(some)
        b += a @ self.Q.T
        b += self.origin[some]
        return b

    def _moved(self, some: IntArray | slice) -> tuple[FloatArray, FloatArray]:
        """Return how far rows have come: coordinates along Q, and the way across it."""
        a = self.a[some] + self.alpha[some, None] * self.Dq[some]
        b = self.gamma[some, None] * self.b[some]
        b += self.beta[some, None] * self.DP[some]
        return a, b

    def renew(self, some: IntArray, push: Callable[[FloatArray, IntArray], FloatArray], steps: FloatArray) -> None:
        """Put the anchor of some rows where they are now."""
        Q, weights = self.Q, self.network.weights
        a, b = self._moved(some)
        X = a @ Q.T
        X += b
        X += self.origin[some]
        last = weights[-1][:, 0]
        if self.hidden:
            z = X @ weights[0]
            z += self.network.biases[0]
            on = (z > 0) * last
            self.start[some] = np.einsum("ij,ij->i", z, on) + self.network.biases[1]
            D = on @ weights[0].T
        else:
            self.start[some] = X @ last + self.network.biases[0]
            D = np.broadcast_to(last, X.shape)
        Dq = D @ Q
        DP = D - Dq @ Q.T
        self.a[some], self.Dq[some], self.b[some], self.DP[some] = a, Dq, b, DP
        self.alpha[some] = self.beta[some] = 0.0
        self.gamma[some] = 1.0
        self.along[some] = np.einsum("ij,ij->i", Dq, Dq)
        self.across[some] = np.einsum("ij,ij->i", DP, DP)
        self.back[some] = np.einsum("ij,ij->i", DP, b)
        if self.hidden and steps.size:
            self._bound(some, z, (Dq, DP, b), push(self.start[some], some), steps)
        elif not self.hidden:
            self.alpha_low[some] = self.gamma_low[some] = -np.inf
            self.alpha_high[some] = self.gamma_high[some] = self.beta_room[some] = np.inf

    def _bound(
        self, some: IntArray, z: FloatArray, way: tuple[FloatArray, FloatArray, FloatArray], c: FloatArray,
        steps: FloatArray,
    ) -> None:  # fmt: skip
        """Say how far rows with unit inputs z and slope c may go before a unit can have switched.

        The way is D along Q, D across Q, and b. What the next step does is known; what may come after it is bounded.
        """
        Dq, DP, b = way
        first, push = self.network.weights[0], steps[0] * c
        # b moves towards rest * DP, where pull and push are even; near there neither term below is large.
        rest = c / (2.0 * self.penalty) if self.penalty else np.zeros_like(c)
        gamma = np.cumprod(1.0 - 2.0 * self.penalty * steps)
        side = np.where(z > 0, 1.0, -1.0)
        lag = (b - rest[:, None] * DP) @ first
        nearer = (-push[:, None] * Dq) @ self.seen_by
        room = (gamma[0] - 1.0) * lag  # how far the inputs are from zero after the next step
        room += z
        room -= nearer
        room *= side
        later = gamma - gamma[0]
        if later.any():
            lag *= side
            room += np.minimum(later.min() * lag, later.max() * lag)
        nearer *= side
        np.maximum(nearer, 0.0, out=nearer)
        held = DP @ first
        np.abs(held, out=held)
        widest = CHANGE * np.abs(rest) if self.penalty else np.abs(c) * float(steps.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            beta_room = np.minimum(SHARE * (room / held).min(axis=1), widest)
            held *= beta_room[:, None]
            room -= held
            far = np.minimum((room / nearer).min(axis=1), 1e9) * (1.0 - 1e-9)  # in steps as long as the next
        good = (beta_room > 0) & (far > 0)
        ends = np.stack([push * (1.0 - 1e-9), push + push * far])
        # An anchor without room holds where it is: for one step.
        self.alpha_low[some] = np.where(good, ends.min(axis=0), 1.0)
        self.alpha_high[some] = np.where(good, ends.max(axis=0), 0.0)
        self.gamma_low[some] = gamma.min() - 1.0 - 1e-12
        self.gamma_high[some] = gamma.max() - 1.0 + 1e-12
        self.rest[some], self.beta_room[some] = rest, np.where(good, beta_room, 0.0)


def as_pieces(network: object, slope: Slope, y: FloatArray, look: Look) -> Pieces | None:
    """Return the pieces of a network with one output, or with two whose difference counts; None for others.

    Parameters
    ----------
    network : object
        Only a `Perceptron` with at most one hidden layer, of rectifiers, has them.
    slope, y, look
        As in `Pieces`, for the single output.

    Returns
    -------
    Pieces or None

    Examples
    --------
    >>> net = Perceptron(weights=(np.ones((2, 3)),), biases=(np.zeros(3),))
    >>> as_pieces(net, lambda out, y: out, np.zeros(1), lambda out, rows: out) is None
    True
    """
    if not isinstance(network, Perceptron) or len(network.weights) > 2 or network.biases[-1].size > 2:
        return None
    if len(network.weights) == 2 and network.activation != "relu":
        return None
    if network.biases[-1].size == 2:
        weights = (*network.weights[:-1], np.diff(network.weights[-1], axis=1))
        network = replace(network, weights=weights, biases=(*network.biases[:-1], np.diff(network.biases[-1])))
    return Pieces(network, slope, y, look)
