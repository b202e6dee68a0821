"""Section II: the network on Adult by race, as trained and after exponentiated gradient (table I, figures 1 and 2)."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.audits.tail.evidence import TailShown
from evenhand.kernels.shared.seeds import stream
from evenhand.reproductions.monjezi2025.cases import CASES, Case
from evenhand.reproductions.monjezi2025.settings import MODELS
from evenhand.reproductions.monjezi2025.tails import audited, short
from evenhand.reproductions.paper import Parts, Settings

#: The network, and the two ways to read the score of a mixture of networks.
MODELS_SHOWN = ("as trained", "expected decision", "mean probability")

SETTINGS: dict[str, Any] = {
    **MODELS,
    "case": "census-race",
    "constraint": "equalized_odds",
    "slack": 0.01,
    "rounds": 10,
}
SHORT: dict[str, Any] = {
    **SETTINGS,
    "n_resamples": 99,
    "network": {**MODELS["network"], "epochs": 1, "least_steps": 50},
    "rounds": 2,
}

_EXTREMES, _OTHERS, _QUANTILES = 60, 150, 60  # points that are kept for figures
_KEPT: dict[str, Any] = {}  # table and figures are about the same networks, so one of them trains these for all


def study(settings: Settings, parts: Parts) -> dict[str, Any]:
    """Train the networks and audit them; once for all items of section II."""
    key = json.dumps(dict(settings), sort_keys=True)
    if key not in _KEPT:
        _KEPT[key] = parts.keep("networks", settings, lambda: _networks(settings))
    kept: dict[str, Any] = _KEPT[key]
    return kept


def _networks(settings: Settings) -> dict[str, Any]:
    import pandas as pd

    from evenhand.mitigation import ExponentiatedGradient
    from evenhand.mitigation.estimator import check_training, fit_learner
    from evenhand.reproductions.monjezi2025.classifiers import learner, split
    from evenhand.reproductions.monjezi2025.comparison import mixture_of

    case = CASES[settings["case"]]()
    train, test = split(case, settings)
    frame, y, group = pd.DataFrame(case.columns), case.outcome.astype(np.int64), case.columns[case.attribute]
    X, rest = (frame.iloc[rows].reset_index(drop=True) for rows in (train, test))
    network = learner("dnn", case.columns, settings, settings["seed"])
    plain = fit_learner(network, check_training(X, y[train], group[train], None))
    fair = ExponentiatedGradient(
        network,
        constraint=settings["constraint"],
        eps=settings["slack"],
        max_iter=settings["rounds"],
        random_state=settings["seed"],
    ).fit(X, y[train], sensitive_features=group[train])
    mixture = mixture_of(fair)
    out: dict[str, Any] = {"members": len(mixture.members), "models": {}}
    for label, model, form in zip(MODELS_SHOWN, (plain, fair, fair), (None, "decision", "probability"), strict=True):
        mixture.form = form or mixture.form
        score = model.predict_proba(rest)[:, 1]
        one = score if form == "decision" else (score >= 0.5).astype(float)
        shown = audited(case, model, settings).evidence[0].groups  # type: ignore[attr-defined]
        out["models"][label] = {
            "accuracy": short(float(np.where(y[test] == 1, one, 1 - one).mean())),
            "aod": short(_average_odds(one, y[test], group[test] == case.privileged)),
            "groups": {name: _tail(part, _changes(case, model, part), settings) for name, part in shown.items()},
        }
    return out


def _average_odds(one: FloatArray, y: Any, privileged: Any) -> float:
    """Return the average odds difference of decisions, unprivileged less privileged."""
    gaps = [one[~privileged & (y == v)].mean() - one[privileged & (y == v)].mean() for v in (0, 1)]
    return float(np.mean(gaps))


def _changes(case: Case, model: Any, part: TailShown) -> FloatArray:
    """Return each person's change of score, in the order of the rows."""
    from evenhand.models import adapt
    from evenhand.models.counterfactual import recorded_as

    labels = [case.unprivileged, case.privileged]
    own = next(j for j, label in enumerate(labels) if part.group.endswith(f"={label}"))
    mine = {n: c[case.columns[case.attribute] == labels[own]] for n, c in case.columns.items()}
    scorer = adapt(model, case.columns)
    other = recorded_as(mine, labels[1 - own], 1 - own, [{case.attribute: label} for label in labels])
    return np.asarray(scorer.score(other) - scorer.score(mine))


def _tail(part: TailShown, cd: FloatArray, settings: Settings) -> dict[str, Any]:
    """Return what the table and the figures show of one group."""
    fit, plot = part.fit, part.quantile_plot
    order = np.argsort(-cd)
    number = 0 if fit is None else fit.k
    above = order[np.unique(np.linspace(0, max(number - 1, 0), min(_EXTREMES, number)).astype(int))]
    below = stream(settings["seed"], "monjezi2025/points").permutation(order[number:])[:_OTHERS]
    out: dict[str, Any] = {
        "rows": part.rows,
        "mean": short(part.acd),
        "deviation": short(float(cd.std())),
        "maximum": short(part.observed_maximum.value),
        "doubt": part.doubt,
        "levels": {f"{r.interactions:.0f}": [short(r.level), short(r.low), short(r.high)] for r in part.return_levels},
        # A person's place in the file and the change of score.
        "extreme": [[int(j), short(cd[j])] for j in above],
        "others": [[int(j), short(cd[j])] for j in below],
        "fit": None,
    }
    if fit is not None and plot is not None:
        at = np.unique(np.linspace(0, len(plot.fitted) - 1, _QUANTILES).round().astype(int))
        out["fit"] = {
            "k": fit.k,
            "threshold": short(fit.threshold),
            "location": short(fit.location),
            "scale": short(fit.location_scale),
            "shape": short(fit.shape),
            "end": short(fit.end_point),
            "type": fit.type,
            "believed": fit.believed,
            "fits": short(fit.goodness_of_fit.pvalue, 2),
            "stable": short(fit.stability.pvalue, 2),
            "correlation": plot.correlation,
            "quantiles": [[short(plot.fitted[j]), short(plot.observed[j])] for j in at],
        }
    return out


def maximum_density(x: FloatArray, location: float, scale: float, shape: float) -> FloatArray:
    """Return the density of the largest of the horizon's changes.

    Examples
    --------
    >>> grid = np.linspace(-8, 30, 100_001)
    >>> round(float(maximum_density(grid, 0.0, 1.0, -0.2).sum() * (grid[1] - grid[0])), 4)
    1.0
    """
    z = (x - location) / scale
    if abs(shape) < 1e-6:
        exponent = np.exp(-z)
        return np.asarray(exponent * np.exp(-exponent) / scale)
    inside = np.maximum(1 + shape * z, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        rate = inside ** (-1 / shape)
        density = rate ** (1 + shape) * np.exp(-rate) / scale
    return np.where((inside > 0) & np.isfinite(density), density, 0.0)


def rises(before: list[float], after: list[float]) -> str:
    """Say whether a level with its interval is shown to rise: "shown", "in the estimate" or "no"."""
    if any(math.isnan(v) for v in (*before, *after)):
        return "no"
    return "shown" if after[1] > before[2] else "in the estimate" if after[0] > before[0] else "no"
