"""Forward Euler through a network of rectifiers, at a few numbers per step and row.

Such a network is linear as long as no unit switches on or off. There its gradient by the inputs is one vector D, the
loss gradient is c D with one number c, and a step changes three numbers (`Anchors`) instead of costing two products of
matrices. Bounds on these numbers, found at the anchor, say how long no unit can have switched; a row
that reaches them gets a new anchor. Positions are those of forward Euler up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.flow.anchors import Anchors
from evenhand.kernels.flow.perceptron import Perceptron

Slope = Callable[[FloatArray, FloatArray], FloatArray]
Look = Callable[[FloatArray, IntArray], FloatArray]

# Steps for which the pull back to the start is bounded at an anchor; the change of c allowed until the next one; and
# the share of a unit's room that this change may take.
AHEAD, CHANGE, SHARE = 16, 0.3, 0.25
# A new anchor costs about as much as five single steps.
OFTEN = 0.2
# Rows worked on together: a step costs some twenty calls whatever their number.
TILE = 16384
# Rows whose anchors are renewed together: what is known of their units stays in the second-level cache.
RENEWED = 512
# Bounds are found in single precision, in half the time, and moved to the safe side by what rounding may have done:
# this share of the sizes that go into a product, for each term of it and a few more.
ROUNDING, TERMS = float(np.finfo(np.float32).eps), 8


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
        at = _Bounded(self.network, basis, penalty, origin)
        seen: list[FloatArray] = []
        renewed = 0
        for k in range(len(steps) + 1):
            stale = at.stale()
            ahead = _Ahead.of(steps[k : k + AHEAD], penalty)
            for low in range(0, stale.size, RENEWED):
                some = stale[low : low + RENEWED]
                at.renew(some, lambda out, some: self.slope(out[:, None], y[some])[:, 0], ahead)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Ahead:
    """The next steps."""

    size: float  # the length of the next
    total: float  # the length of all
    gamma: FloatArray  # (steps,): what is left of a way across Q after each

    @classmethod
    def of(cls, steps: FloatArray, penalty: float) -> _Ahead | None:
        if not steps.size:
            return None
        left = np.asarray(np.cumprod(1.0 - 2.0 * penalty * steps), dtype=np.float64)
        return cls(float(steps[0]), float(steps.sum()), left)


class _Bounded(Anchors):
    """Anchors with bounds on the numbers that say where rows are."""

    def __init__(self, network: Perceptron, Q: FloatArray, penalty: float, origin: FloatArray) -> None:
        super().__init__(Q, penalty, origin)
        n, first = len(origin), network.weights[0]
        self.network, self.hidden = network, len(network.weights) == 2
        self.seen_by = Q.T @ first  # what the units see of the free directions
        if self.hidden:
            self.at_start = origin @ first + network.biases[0]  # (rows, units): what they see where rows start
            self.single = first.astype(np.float32), self.seen_by.astype(np.float32)
            self.rounding = ROUNDING * (len(first) + TERMS) * float(np.linalg.norm(first, axis=0).max(initial=0.0))
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

    def renew(self, some: IntArray, push: Callable[[FloatArray, IntArray], FloatArray], ahead: _Ahead | None) -> None:
        """Put the anchor of some rows where they are now; without steps ahead it holds for the next one only."""
        weights, biases = self.network.weights, self.network.biases
        last = weights[-1][:, 0]
        a, b = self.moved(some)
        if not self.hidden:
            output = (self.origin[some] + b + a @ self.Q.T) @ last + biases[0]
            self.put(some, (a, b), output, np.broadcast_to(last, b.shape))
            self.alpha_low[some] = self.gamma_low[some] = -np.inf
            self.alpha_high[some] = self.gamma_high[some] = self.beta_room[some] = np.inf
            return
        pulled = b @ weights[0]
        z = self.at_start.take(some, axis=0)
        z += pulled
        z += a @ self.seen_by
        on = (z > 0) * last
        output = np.einsum("ij,ij->i", z, on)
        output += biases[1]
        D = on @ weights[0].T
        Dq, DP = self.put(some, (a, b), output, D)
        if ahead is None:
            self.alpha_low[some], self.alpha_high[some] = 1.0, 0.0
        else:
            # What is too large for single precision leaves no room.
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                self._bound(some, (z, pulled), (Dq, DP, b), push(self.start[some], some), ahead)

    def _bound(
        self, some: IntArray, units: tuple[FloatArray, FloatArray], way: tuple[FloatArray, FloatArray, FloatArray],
        c: FloatArray, ahead: _Ahead,
    ) -> None:  # fmt: skip
        """Say how far rows with slope c may go before a unit can have switched.

        Of the units, what they see and the part of b in it; the way is D along Q, D across Q, and b. What the next step
        does is known; what may come after it is bounded.
        """
        z, lag = (seen.astype(np.float32) for seen in units)
        (Dq, DP, b), (first, seen_by), push = way, self.single, ahead.size * c
        # b moves towards rest * DP, where pull and push are even; near there neither term below is large.
        rest = c / (2.0 * self.penalty) if self.penalty else np.zeros_like(c)
        widest = CHANGE * np.abs(rest) if self.penalty else np.abs(c) * ahead.total
        free, across = np.abs(push) * np.sqrt(self.along[some]), np.sqrt(self.across[some])
        size = np.sqrt(np.einsum("ij,ij->i", b, b)) + (np.abs(rest) + widest) * across + free

        def column(numbers: FloatArray) -> NDArray[np.float32]:
            return numbers.astype(np.float32)[:, None]

        held = DP.astype(np.float32) @ first
        lag -= column(rest) * held
        nearer = (-push[:, None] * Dq).astype(np.float32) @ seen_by
        side = np.sign(z)
        room = z  # how far the inputs are from zero after the next step
        room += np.float32(ahead.gamma[0] - 1.0) * lag
        room -= nearer
        room *= side
        later = ahead.gamma - ahead.gamma[0]
        if later.any():
            lag *= side
            worst = np.float32(later.min()) * lag
            lag *= np.float32(later.max())
            room += np.minimum(worst, lag, out=worst)
        room -= column(self.rounding * size)
        nearer *= side
        np.maximum(nearer, 0.0, out=nearer)
        nearer += column(self.rounding * free)
        np.abs(held, out=held)
        held += column(self.rounding * across)
        beta_room = np.minimum(SHARE * np.divide(room, held, out=lag).min(axis=1), widest)
        held *= column(beta_room)
        room -= held
        far = np.divide(room, nearer, out=nearer).min(axis=1)  # in steps as long as the next
        far = np.minimum(far, 1e9) * (1.0 - 8 * ROUNDING)
        good = (beta_room > 0) & (far > 0)
        near, end = push * (1.0 - 1e-9), push + push * far
        # An anchor without room holds where it is: for one step.
        self.alpha_low[some] = np.where(good, np.minimum(near, end), 1.0)
        self.alpha_high[some] = np.where(good, np.maximum(near, end), 0.0)
        self.gamma_low[some] = ahead.gamma.min() - 1.0 - 1e-12
        self.gamma_high[some] = ahead.gamma.max() - 1.0 + 1e-12
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
