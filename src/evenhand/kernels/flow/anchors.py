"""Rows on linear ground: Euler positions that follow from one gradient of the output and three numbers per row."""

from __future__ import annotations

import numpy as np

from evenhand.arrays import FloatArray, IntArray


class Anchors:
    """Anchor and present position of each row of a tile.

    Where the output's gradient is one vector D and S = I - QQ', every further Euler position is

        x0 + a + alpha QQ'D + gamma b + beta (I - QQ')D,        a = QQ'(x - x0),  b = (I - QQ')(x - x0),

    with x the position at which D was taken: the anchor.

    Examples
    --------
    >>> at = Anchors(np.array([[1.0], [0.0]]), 50.0, np.zeros((1, 2)))
    >>> _ = at.put(np.array([0]), at.moved(slice(None)), np.array([0.5]), np.array([[2.0, 0.0]]))
    >>> at.step(np.array([1.0]), 0.01)
    >>> at.position(slice(None)).tolist(), at.output().tolist()
    ([[0.02, 0.0]], [0.54])
    """

    def __init__(self, Q: FloatArray, penalty: float, origin: FloatArray) -> None:
        n, p = origin.shape
        self.Q, self.penalty, self.origin = Q, penalty, origin
        # a and D along Q by their coordinates; b, and D across Q.
        self.a, self.Dq, self.b, self.DP = (
            np.zeros((n, k), dtype=origin.dtype) for k in (Q.shape[1], Q.shape[1], p, p)
        )
        self.alpha, self.beta, self.start = np.zeros(n), np.zeros(n), np.zeros(n)
        self.gamma = np.ones(n)
        self.along, self.across, self.back = np.zeros(n), np.zeros(n), np.zeros(n)

    def output(self, some: IntArray | slice = slice(None)) -> FloatArray:
        """Return the output at the present positions."""
        out = self.alpha[some] * self.along[some]
        out += self.start[some]
        out += self.beta[some] * self.across[some]
        out += (self.gamma[some] - 1.0) * self.back[some]
        return out

    def step(self, c: FloatArray, size: FloatArray | float, some: IntArray | slice = slice(None)) -> None:
        """Make one Euler step with loss slopes c."""  # [maity2021] eq. (2.8)
        push, left = size * c, 1.0 - 2.0 * size * self.penalty
        self.alpha[some] += push
        self.beta[some] *= left
        self.beta[some] += push
        self.gamma[some] *= left

    def position(self, some: IntArray | slice) -> FloatArray:
        """Return where rows are."""
        a, b = self.moved(some)
        b += a @ self.Q.T
        b += self.origin[some]
        return b

    def moved(self, some: IntArray | slice) -> tuple[FloatArray, FloatArray]:
        """Return how far rows have come: coordinates along Q, and the way across it."""
        alpha, beta, gamma = (
            number[some, None].astype(self.b.dtype, copy=False) for number in (self.alpha, self.beta, self.gamma)
        )
        a, b, Dq, DP = (_rows(array, some) for array in (self.a, self.b, self.Dq, self.DP))
        Dq *= alpha
        DP *= beta
        b *= gamma
        a += Dq
        b += DP
        return a, b

    def put(
        self, some: IntArray, moved: tuple[FloatArray, FloatArray], output: FloatArray, D: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Put the anchor of rows where they are now: how far they have come, the output and its gradient there.

        Returns the gradient along Q, by its coordinates, and across it.
        """
        a, b = moved
        Dq = D @ self.Q
        DP = D - Dq @ self.Q.T
        self.a[some], self.Dq[some], self.b[some], self.DP[some], self.start[some] = a, Dq, b, DP, output
        self.alpha[some] = self.beta[some] = 0.0
        self.gamma[some] = 1.0
        self.along[some] = np.einsum("ij,ij->i", Dq, Dq)
        self.across[some] = np.einsum("ij,ij->i", DP, DP)
        self.back[some] = np.einsum("ij,ij->i", DP, b)
        return Dq, DP


def _rows(array: FloatArray, some: IntArray | slice) -> FloatArray:
    """Return a copy of some rows; `take` needs half the time of an index in brackets."""
    return array[some].copy() if isinstance(some, slice) else array.take(some, axis=0)
