"""Section 5: gaps of the model on Adult over several splits, and how well its three models predict."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenhand.arrays import BoolArray, FloatArray
from evenhand.kernels.influence.nuisance import calibration_of, cross_fit, predict_folds
from evenhand.kernels.shared.seeds import stream
from evenhand.report.document import Block
from evenhand.report.figures import forest
from evenhand.reproductions.paper import Claim, Parts, Result, Settings, near
from evenhand.reproductions.wang2019.studies import Split, make_split, read_study

MEASURES = ("da", "cal", "fpr", "fnr", "sp")
_AREAS = {"P(Yhat|X)": (0.866, 0.010), "P(Y|X,S=0)": (0.854, 0.011), "P(S|X)": (0.849, 0.036)}


def run_section_5(settings: Settings, parts: Parts) -> Result:
    """Return base rate, mean predictions, gaps and areas under the curve."""
    _, outcome, _ = read_study("adult")
    made = [parts.keep(f"split {k}", {"split": k}, partial(_values, k)) for k in range(settings["splits"])]
    values = {name: [values[name] for values in made] for name in made[0]}
    return {
        "rows": outcome.size,
        "base_rate": float(outcome.mean()),
        "values": {name: {"mean": float(np.mean(v)), "sd": _deviation(v)} for name, v in values.items()},
        "areas": parts.keep("areas", {}, lambda: _areas(make_split("adult", 0))),
    }


def _deviation(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _values(number: int) -> dict[str, float]:
    split = make_split("adult", number)
    data, rest = split.data(split.audited), split.audited
    h = split.model.probability(split.columns)
    values = {
        "mean prediction, women": float(h[rest & split.inside].mean()),
        "mean prediction, men": float(h[rest & ~split.inside].mean()),
    }
    for measure in MEASURES:
        result = split.audit(measure, data)
        values[measure] = float(result[0].estimate)
        values[f"{measure}, plug-in"] = float(result.evidence[0].to_dict()["counterfactual"]["path"]["gap"][0])
    return values


def _areas(split: Split) -> dict[str, dict[str, float]]:
    """Return the ten-fold test AUC of the audited model and of the nuisance models: over all rows, spread of folds."""
    rest, men = split.audited, ~split.inside
    asked: dict[str, tuple[BoolArray, FloatArray]] = {
        "P(Yhat|X)": (split.train, split.outcome),
        "P(Y|X,S=0)": (rest & ~men, split.outcome),
        "P(Y|X)": (rest, split.outcome),
        "P(Y|X,S=1)": (rest & men, split.outcome),
        "P(S|X)": (rest, men.astype(np.float64)),
    }
    areas = {}
    for name, (rows, target) in asked.items():
        size = int(rows.sum())
        fold = stream(0, f"wang2019/folds {name}").permutation(size) % 10
        X, y, one = split.columns[rows], target[rows], np.ones(size)
        p = predict_folds(cross_fit("logistic", X, y, one, fold), X, fold)
        folds = [calibration_of(p[fold == k], y[fold == k], one[fold == k])["auc"] for k in range(10)]
        areas[name] = {"mean": float(np.mean(folds)), "sd": float(np.std(folds, ddof=1))}
    return areas


def claims_of_section_5(result: Result, settings: Settings) -> Sequence[Claim]:
    """Set the printed values of section 5 beside ours."""
    return [*_value_claims(result["values"], result["base_rate"], result["rows"]), *_area_claims(result["areas"])]


def _value_claims(values: Any, base_rate: float, rows: int) -> list[Claim]:
    def split_claim(words: str, printed: float, name: str, remark: str = "", shown: str = "") -> Claim:
        ours = values[name]
        error = (ours["sd"] or 0.005) * np.sqrt(1 + 0.1)
        return Claim(
            claim=words,
            printed=shown or f"{printed:.1%}",
            ours=_percent(ours),
            reached=near(printed, ours["mean"], float(error)),
            rule="within three standard deviations between splits",
            remark=remark,
        )

    parity = f"16.8 % is the gap of mean predictions (ours: {_percent(values['sp'])}), not of false positive rates."
    return [
        Claim(
            claim="Rows, and share of positives",
            printed="32,561 and 24.1%",
            ours=f"{rows:,} and {base_rate:.2%}",
            reached="yes" if rows == 32_561 and abs(base_rate - 0.241) <= 0.0005 else "no",
            rule="equal as printed",
        ),
        split_claim("Mean prediction, women", 0.125, "mean prediction, women"),
        split_claim("Mean prediction, men", 0.294, "mean prediction, men"),
        split_claim(
            "DA",
            0.00845,
            "da",
            "A slipped decimal point: the paper's own means, 12.5 % and 29.4 %, give 8.1 %.",
            shown=".845%",
        ),
        split_claim(
            "CAL",
            0.131,
            "cal",
            f"Both groups are calibrated about alike; the plug-in value is {_percent(values['cal, plug-in'])}.",
        ),
        split_claim("FPR", 0.168, "fpr", f"{parity} Women have the lower rate, so that the signed gap is negative."),
        split_claim("The printed FPR against the gap of mean predictions, women minus men", -0.168, "sp", parity),
    ]


def _percent(value: Any) -> str:
    spread = "" if value["sd"] is None else f" ± {100 * value['sd']:.1f}"
    return f"{100 * value['mean']:.1f}{spread} %"


def _area_claims(areas: Any) -> list[Claim]:
    claims = []
    for name, (printed, spread) in _AREAS.items():
        ours = areas[name]
        remark = ""
        if name == "P(Y|X,S=0)":
            remark = (
                f"Of women only, as the text says. All audited rows give {areas['P(Y|X)']['mean']:.3f}, men "
                f"{areas['P(Y|X,S=1)']['mean']:.3f}."
            )
        claims.append(
            Claim(
                claim=f"Ten-fold test AUC of {name}",
                printed=f"{printed:.3f} ± {spread:.3f}",
                ours=f"{ours['mean']:.3f} ± {ours['sd']:.3f}",
                reached=near(printed, ours["mean"], float(np.hypot(spread, ours["sd"]) / np.sqrt(10))),
                rule="within three standard errors of a mean of ten folds, both sides",
                remark=remark,
            )
        )
    return claims


def figures_of_section_5(result: Result) -> Sequence[Block]:
    """Draw the gaps with their spread between splits."""
    names = {"da": "DA", "cal": "CAL", "fpr": "FPR", "fnr": "FNR", "sp": "gap of mean predictions"}
    rows = []
    for key, label in names.items():
        value = result["values"][key]
        reach = 2 * (value["sd"] or 0.0)
        mean = value["mean"]
        rows.append({"label": label, "estimate": mean, "low": mean - reach, "high": mean + reach})
    caption = "Women minus men: mean over the splits, and two standard deviations between splits on either side."
    return [forest("Gaps on Adult", caption, rows, value="gap", none=0.0, label="Measure")]
