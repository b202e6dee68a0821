"""Rejection rates of simulated tests beside printed ones: their simulation error, and the claim it decides."""

from __future__ import annotations

import math

from evenhand.reproductions.paper import Claim, near

#: The level of all tests, and the simulations behind each printed rate.
ALPHA, PRINTED_RUNS = 0.05, 10_000
_RULE = "within three simulation standard errors"


def rate_error(rate: float, runs: int) -> float:
    """Return the standard error of a rejection rate over so many simulations; never 0."""
    inside = min(max(rate, 1 / runs), 1 - 1 / runs)
    return math.sqrt(inside * (1 - inside) / runs)


def shown_rate(rate: float, runs: int) -> str:
    """Write a rate with its simulation error."""
    return f"{rate:.4f} ± {rate_error(rate, runs):.4f}"


def rate_claim(claim: str, printed: float, ours: float, runs: int, remark: str = "") -> Claim:
    """Set a rejection rate beside a printed one; both have simulation error."""
    error = math.hypot(rate_error(ours, runs), rate_error(printed, PRINTED_RUNS))
    return Claim(
        claim=claim,
        printed=f"{printed:.4f}",
        ours=shown_rate(ours, runs),
        reached=near(printed, ours, error),
        rule=f"{_RULE} of the difference, {error:.4f}",
        remark=remark,
    )


def own_rate(claim: str, ours: float, runs: int, remark: str = "") -> Claim:
    """State a rejection rate for which nothing is printed."""
    return Claim(
        claim=claim,
        printed="–",
        ours=shown_rate(ours, runs),
        reached="not claimed",
        rule="nothing is printed",
        remark=remark,
    )
