"""Propositions 1, 2 and 5 on Adult: the least gap that weights can leave, the correction, the bound of counting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.kernels.influence.functionals import Sample, functional, value
from evenhand.report.document import Block, Table
from evenhand.reproductions.paper import Claim, Parts, Result, Settings
from evenhand.reproductions.wang2019.studies import make_split

_STEP = 0.001  # epsilon of eq. (4)
_MINIMA = {"cal": "m_CAL", "fnr": "m_FNR", "fpr": "the same for FPR"}


def run_propositions(settings: Settings, parts: Parts) -> Result:
    """Return what the audit says of each measure, and the gap's slope along the correction function."""
    return {
        measure: parts.keep(measure, settings, partial(_propositions, measure, settings["split"]))
        for measure in _MINIMA
    }


def _propositions(measure: str, number: int) -> dict[str, Any]:
    split = make_split("adult", number)
    result = split.audit(measure, split.data(split.audited))
    evidence = result.evidence[0].to_dict()
    women = split.audited & split.inside
    weights = result.weights[f"{split.study.group}={split.group[women][0]}"]
    rows = {name: values[women] for name, values in split.features.items()}
    psi, phi = weights.influence(rows), weights.correction(rows)
    path = evidence["counterfactual"]["path"]["held_out"]
    X = weights.design.encode(rows)
    h, eta = (
        split.model.probability(split.columns[women]),
        None if weights.outcome is None else weights.outcome.whole(X),
    )

    def gap(weight: FloatArray) -> float:
        fixed = np.array([[0.0, 1.0]])  # the reference does not move
        sample = Sample(h=h, eta=np.zeros_like(h) if eta is None else eta, weight=weight, reference=fixed)
        return value(functional(measure), sample)

    return {
        "attainable": evidence["counterfactual"]["attainable"],
        "held_out": [path[0], path[-1]],
        "counting_bound": evidence["nuisance"]["outcome"]["counting_bound"],
        "auc": evidence["nuisance"]["outcome"]["auc"],
        "slope": (gap(1 + _STEP * phi) - gap(np.ones_like(phi))) / _STEP,  # eq. (16)
        "deviation": float(psi.std()),
    }


def claims_of_propositions(result: Result, settings: Settings) -> Sequence[Claim]:
    """State the minima and the bound, and judge proposition 2's slope."""
    claims = []
    for measure, name in _MINIMA.items():
        made = result[measure]
        least = made["attainable"]
        claims.append(
            Claim(
                claim=f"Proposition 1: {name}",
                printed="no number",
                ours=f"{least['nearest']:.3f} in [{least['low']:.3f}, {least['high']:.3f}]; gap left {least['gap']:g}",
                reached="not claimed",
                rule="nothing is printed",
                remark="The descent takes the held-out gap from {:.4f} to {:.4f}.".format(*made["held_out"]),
            )
        )
        ratio = abs(made["slope"]) / made["deviation"]
        claims.append(
            Claim(
                claim=f"Proposition 2: along phi the {measure.upper()} gap changes as fast as psi says",
                printed="ratio 1",
                ours=f"ratio {ratio:.3f}",
                reached="yes" if abs(ratio - 1) < 0.05 else "no",
                rule="within .05, for psi of averaged instead of cross-fitted models",
            )
        )
    made = result["fnr"]
    claims.append(
        Claim(
            claim="Proposition 5: bound of counting for P(Y|X,S=0), from (18) at beta .05",
            printed="no number",
            ours=f"{made['counting_bound']:.2f} of at most 2",
            reached="not claimed",
            rule="nothing is printed",
            remark=f"The fitted model has a cross-fitted AUC of {made['auc']:.3f}; the bound is for counted shares.",
        )
    )
    return claims


def figures_of_propositions(result: Result) -> Sequence[Block]:
    """List what any reweighting of women can reach."""
    head = ("Measure", "Least value", "Largest value", "Value of men", "Nearest value", "Gap left")
    rows = tuple(
        (measure.upper(), *(made["attainable"][k] for k in ("low", "high", "reference", "nearest", "gap")))
        for measure, made in result.items()
    )
    return [Table(title="What any reweighting of women can reach", head=head, rows=rows)]
