"""Section 2: distributionally robust fairness (2.3) by its dual (2.4), where it can be computed exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize, special

from evenhand.arrays import FloatArray, IntArray
from evenhand.kernels.flow.gradient_flow import Adaptive, Flow, QuadraticForm, follow
from evenhand.kernels.flow.worst_loss import largest_penalised, score_speed, worst_mean_loss
from evenhand.report.document import Block
from evenhand.report.figures import Frame, lines
from evenhand.reproductions.maity2021.simulation import Sample, draw, fitted_intercept
from evenhand.reproductions.paper import Claim, Parts, Result, Settings

SETTINGS: dict[str, Any] = {"budgets": [0.001, 0.003, 0.01, 0.03, 0.1], "price": 0.01, "thetas": [0.4, 1.2, 2.0, 4.0]}
_TIMES = (0.4, 5.0, 50.0)  # about the flow times of figure 1 and table 1, and ten times the latter
_RIGHT = np.diag([0.0, 1.0])  # the metric of section 4.1


def run_section_2(settings: Settings, parts: Parts) -> Result:
    """Return the growth of the mean loss within budgets, primal and dual on three people, and what flows reach."""
    sample = draw(0)
    priced = np.diag([settings["price"], 1.0])
    growth, reached = {}, {}
    for theta in settings["thetas"]:
        w, z = _against(sample, theta)
        speed = score_speed(w, priced)
        plain = float(np.logaddexp(0.0, z).mean())
        values = [worst_mean_loss(z, speed, budget) for budget in settings["budgets"]]
        growth[str(theta)] = [value - plain for value, _ in values]
        reached[str(theta)] = _flow_shares(sample, theta, priced, values[-1][1])
    w, z = _against(sample, 1.0)
    free = worst_mean_loss(z, score_speed(w, _RIGHT), 0.0)[0]
    return {
        "budgets": settings["budgets"],
        "price": settings["price"],
        "growth": growth,
        "reached": reached,
        "primal_and_dual": [_primal_and_dual(sample, budget, priced) for budget in settings["budgets"]],
        "infinite_when_free": math.isinf(free),
    }


def _against(sample: Sample, theta: float) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of a model, and everyone's log-odds of the wrong label."""
    w = np.array([theta, 0.0])
    score = sample.X @ w + fitted_intercept(sample, w)
    return w, np.where(sample.y == 1, -score, score)


def _flow_shares(sample: Sample, theta: float, matrix: FloatArray, penalty: float) -> list[float]:
    """Return which share of the largest penalised gain the gradient flow has reached at some times."""
    w, z = _against(sample, theta)
    bias = fitted_intercept(sample, w)
    form = QuadraticForm(matrix=matrix)

    def gradient(at: FloatArray, rows: IntArray) -> FloatArray:
        return np.asarray((special.expit(at @ w + bias) - sample.y[rows])[:, None] * w)

    def penalised(at: FloatArray, rows: IntArray) -> FloatArray:
        score = at @ w + bias
        loss = np.logaddexp(0.0, np.where(sample.y[rows] == 1, -score, score))
        return np.asarray((loss - penalty * form.square(at - sample.X[rows]))[:, None])

    flow = Flow(gradient=gradient, form=form, penalty=penalty)
    seen = follow(sample.X, flow, Adaptive(np.array(_TIMES), 1e-5), observe=penalised).seen
    plain = float(np.logaddexp(0.0, z).mean())
    most = float(largest_penalised(z, score_speed(w, matrix), penalty)[0].mean())
    return [float((values.mean() - plain) / (most - plain)) for values in seen[..., 0]]


def _primal_and_dual(sample: Sample, budget: float, matrix: FloatArray) -> dict[str, float]:
    """Return (2.2) as a linear programme over many places for three people, and (2.4) for the same."""
    w, everyone = _against(sample, 1.0)
    z, speed = everyone[:3], score_speed(w, matrix)
    t = np.linspace(-1.0, 1.0, 2001)  # distances along the cheapest direction, with sign
    loss, cost = np.logaddexp(0.0, z[:, None] + speed * t), np.tile(t**2, (3, 1))
    done: Any = optimize.linprog(
        -loss.ravel(),
        A_ub=cost.reshape(1, -1),
        b_ub=[budget],
        A_eq=np.kron(np.eye(3), np.ones(t.size)),
        b_eq=np.full(3, 1 / 3),
        method="highs",
    )
    return {"primal": float(-done.fun), "dual": worst_mean_loss(z, speed, budget)[0]}


def claims_of_section_2(result: Result, settings: Settings) -> Sequence[Claim]:
    """Judge the duality, and say what the definition gives and what a flow reaches of it."""
    pairs = result["primal_and_dual"]
    apart = max(abs(pair["primal"] - pair["dual"]) for pair in pairs)
    shares = result["reached"]
    times = ", ".join(f"{t:g}" for t in _TIMES)
    return [
        Claim(
            claim="The dual (2.4) is the largest mean loss within a budget (2.2)",
            printed="equal",
            ours=f"at most {apart:.1g} apart on three people, {len(pairs)} budgets",
            reached="yes" if apart <= 1e-3 else "no",
            rule="within .001 of a linear programme over 2,001 places for each person",
        ),
        Claim(
            claim="Ending the flow early does not give the largest penalised loss (2.5)",
            printed="one cannot guarantee optimality",
            ours="; ".join(
                f"theta_1 = {theta}: {', '.join(f'{100 * s:.0f} %' for s in values)}"
                for theta, values in shares.items()
            )
            + f" of the gain after times {times}",
            reached="yes" if min(min(values[:-1]) for values in shares.values()) < 0.99 else "no",
            rule="less than 99 % of the exact gain somewhere",
            remark="A flow bounds the maximum from below, never from above.",
        ),
        Claim(
            claim="Growth of the mean loss within any budget under the metric of section 4.1, theta_1 not 0",
            printed="–",
            ours="infinite" if result["infinite_when_free"] else "finite",
            reached="not claimed",
            rule="none printed",
            remark="Moving along a free direction costs nothing and the log loss has no bound: no such model is "
            "distributionally robustly fair, however small its theta_1.",
        ),
    ]


def figures_of_section_2(result: Result) -> Sequence[Block]:
    """Draw the growth of the loss against the budget."""
    rows = [
        {"x": budget, "y": value, "series": f"theta 1 = {theta}"}
        for theta, values in result["growth"].items()
        for budget, value in zip(result["budgets"], values, strict=True)
    ]
    caption = (
        "The left side of (2.3), computed exactly: by how much the mean loss of a logistic model can grow when people "
        f"are moved within a budget of mean squared distance, the first coordinate priced at {result['price']:g} of "
        "the second."
    )
    frame = Frame(x="budget epsilon", y="growth", x_log=True, points=True)
    return [lines("Distributionally robust fairness of four models", caption, rows, frame)]
