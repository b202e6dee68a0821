"""What follows from the parts of the comparison: means, ranks, wins, verdicts, and the sentences of the README."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES
from classifiers import NAMES
from comparison import METHODS, PLAIN, TABLES
from scipy import stats

from evenhand.files import write_all
from evenhand.inference.multiplicity import adjust
from evenhand.inference.scott_knott import scott_knott
from evenhand.kernels.shared.seeds import stream

HERE = Path(__file__).parent
MEASURES = ("accuracy", "aod", "eod", "spd", "di", "ecd", "ecd_other")
WORDS = {
    "exponentiated_gradient": "exponentiated gradient",
    "fair_smote": "Fair-SMOTE",
    "stealth": "STEALTH",
    "maat": "MAAT",
    "minimax": "MiniMax-Fairness",
    "ecd_fair": "ECD-Fair",
}
#: Methods ranked together, as the two research questions do.
RQ3 = (*TABLES["V"], *TABLES["VI"])
RQ4 = tuple(TABLES["VII"])
_PRINTED_CELLS = 20  # of table VII: ten data sets and attributes, network and logistic regression
BEGIN, END = "<!-- comparison: begin -->", "<!-- comparison: end -->"


def values(method: str, repetitions: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Return each measure of a method over the repetitions; all but accuracy are better when smaller.

    A mixture's score is read in two ways. `ecd` takes the expected decision of exponentiated gradient, whose queries
    the paper repeats and averages, and the mean probability of MiniMax-Fairness; `ecd_other` the other way round.
    """
    out = {m: np.array([r[m] for r in repetitions]) for m in MEASURES[:5]}
    decision = np.abs([r["signed_ecd"] for r in repetitions])
    chance = np.abs([r.get("signed_ecd_of_probabilities", r["signed_ecd"]) for r in repetitions])
    out["ecd"], out["ecd_other"] = (chance, decision) if method == "minimax" else (decision, chance)
    return out


def resampled_pvalue(differences: np.ndarray, overlap: float) -> float:
    """Test a mean of zero over repetitions that share rows: Nadeau and Bengio's correction of the paired t-test.

    Two repetitions share rows, so their results are correlated; `overlap` is the test rows' share of all rows, which
    takes the place of the correlation.
    """
    size = differences.size
    variance = float(differences.var(ddof=1)) * (1 / size + overlap / (1 - overlap))
    mean = float(differences.mean())
    if variance <= 1e-24:
        return 1.0 if abs(mean) <= 1e-12 else 0.0
    return float(2 * stats.t.sf(abs(mean) / math.sqrt(variance), size - 1))


def cell(part: dict[str, Any], seed: int, alpha: float) -> dict[str, Any]:
    """Return means and outcomes against the plain model, by Scott-Knott rank, for one data set and model."""
    done = {m: r for m, r in part["methods"].items() if len(r) == len(part["methods"][PLAIN])}
    measured = {m: values(m, r) for m, r in done.items() if not any("problem" in one for one in r)}
    out: dict[str, Any] = {m: {"mean": {k: float(a.mean()) for k, a in v.items()}} for m, v in measured.items()}
    for k in MEASURES:
        worse = -1.0 if k == "accuracy" else 1.0
        for label, family in (("outcome", RQ3), ("outcome", RQ4), ("outcome among all", (*RQ3, *RQ4))):
            ranked = [m for m in (PLAIN, *family) if m in measured]
            samples = [worse * measured[m][k] for m in ranked]
            ranks = scott_knott(samples, stream(seed, f"monjezi2025/{k}"), alpha=alpha).tolist()
            for m, rank in zip(ranked[1:], ranks[1:], strict=True):
                step = rank - ranks[0]
                out[m].setdefault(label, {})[k] = "win" if step < 0 else "loss" if step > 0 else "tie"
        for m in measured:
            if m != PLAIN:
                gaps = worse * (measured[m][k] - measured[PLAIN][k])
                out[m].setdefault("change", {})[k] = float(gaps.mean())  # positive: worse
                out[m].setdefault("pvalue", {})[k] = resampled_pvalue(gaps, part["test"] / part["rows"])
    unable = {m: next(one["problem"] for one in r if "problem" in one) for m, r in done.items() if m not in measured}
    sizes = {k: part[k] for k in ("train", "test")} | {"horizon": part["methods"][PLAIN][0]["horizon"]}
    return {"repetitions": len(done[PLAIN]), **sizes, "methods": out, "unable": unable}


def summarise(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Put all parts together: cells, counts of wins, ties and losses, and verdicts on one error budget per measure."""
    alpha = config["comparison"]["alpha"]
    cells = {}
    for kind in NAMES:
        for name in CASES:
            place = folder / f"{kind}-{name}.json"
            if place.exists():
                made = cell(json.loads(place.read_text(encoding="utf-8")), config["seed"], alpha)
                if len(made["methods"]) > 1:
                    cells[f"{kind} {name}"] = made
    counts: dict[str, Any] = {}
    for method in METHODS:
        has = {c: v["methods"][method] for c, v in cells.items() if method in v["methods"]}
        counts[method] = {"cells": len(has)}
        for k in MEASURES if has else ():
            adjusted = adjust([m["pvalue"][k] for m in has.values()], "holm")
            for m, p in zip(has.values(), adjusted.tolist(), strict=True):
                m.setdefault("verdict", {})[k] = ("worse" if m["change"][k] > 0 else "better") if p <= alpha else "open"
            counts[method][k] = {
                **{o: sum(m["outcome"][k] == o for m in has.values()) for o in ("win", "tie", "loss")},
                **{
                    f"{o} among all": sum(m["outcome among all"][k] == o for m in has.values()) for o in ("win", "loss")
                },
                **{v: sum(m["verdict"][k] == v for m in has.values()) for v in ("better", "open", "worse")},
                "mean lower": sum(m["change"][k] < -1e-12 for m in has.values()),
                "mean higher": sum(m["change"][k] > 1e-12 for m in has.values()),
                "mean": float(np.mean([m["mean"][k] for m in has.values()])),
                "mean of the plain model": float(np.mean([cells[c]["methods"][PLAIN]["mean"][k] for c in has])),
            }
    place = folder / "table-i.json"
    first = json.loads(place.read_text(encoding="utf-8")) if place.exists() else None
    return {"settings": config["comparison"], "counts": counts, "cells": cells, "table_i": first}


def _of(count: int, total: int) -> str:
    return f"{count} of {total} ({100 * count / total:.0f} %)"


def answers(summary: dict[str, Any]) -> list[str]:
    """Return the claims of RQ3 and RQ4 as rows of a table: claim, theirs, ours, reached, why."""
    counts = summary["counts"]
    average = [m for m in RQ3 if counts[m]["cells"]]
    rows = _average_answers(average, counts) if average else []
    for method, claim in (("ecd_fair", "improves the tail in 90 %"), ("minimax", "worsens the tail in 30 %")):
        c = counts[method]
        if not c["cells"]:
            continue
        n, e = c["cells"], c["ecd"]
        share = e["win"] / n if method == "ecd_fair" else e["loss"] / n
        close = share >= 0.9 if method == "ecd_fair" else 0.2 <= share <= 0.4
        reached = ("yes" if close else "no") + (
            f", on {n} of print's {_PRINTED_CELLS} cells" if n < _PRINTED_CELLS else ""
        )
        rows.append(
            f"| RQ4: {WORDS[method]} {claim} | {claim[-4:]} | ranked better in {_of(e['win'], n)}, the same in "
            f"{e['tie']}, worse in {_of(e['loss'], n)}; mean ECD lower in {e['mean lower']}, higher in "
            f"{e['mean higher']}; shown better in {e['better']} and worse in {e['worse']} by our paired tests; ranked "
            f"together with RQ3's methods, better in {e['win among all']} and worse in {e['loss among all']} | "
            f"{reached} | {_why(method, counts)} |"
        )
    return rows


def _average_answers(average: list[str], counts: dict[str, Any]) -> list[str]:
    """Return the rows of RQ3."""
    total = sum(counts[m]["cells"] for m in average)
    kept = sum(counts[m]["aod"]["win"] + counts[m]["aod"]["tie"] for m in average)
    raised = sum(counts[m]["ecd"]["loss"] for m in average)
    shown = {k: sum(counts[m]["ecd"][k] for m in average) for k in ("better", "worse")}
    rows = [
        "| RQ3: mitigators of averages keep or improve AOD, and raise the tail in many cases | shares lost | AOD kept "
        f"or improved in {_of(kept, total)}; ECD raised in {_of(raised, total)}; our paired tests show the tail worse "
        f"in {shown['worse']} and better in {shown['better']} | "
        f"{'in direction' if kept > total / 2 and raised else 'no'} | the printed shares are lost |"
    ]
    for measure, named, claim in (
        ("aod", "exponentiated_gradient", "exponentiated gradient wins oftenest in AOD"),
        ("ecd", "stealth", "STEALTH wins oftenest in the tail"),
    ):
        wins = {m: counts[m][measure]["win"] / counts[m]["cells"] for m in average}
        shares = "; ".join(f"{WORDS[m]} {_of(counts[m][measure]['win'], counts[m]['cells'])}" for m in average)
        rivals = max(share for m, share in wins.items() if m != named)
        mine = wins.get(named, -1.0)
        reached = "yes" if mine > rivals else "tied" if mine == rivals else "no"
        rows.append(f"| RQ3: {claim} | counts lost | {measure.upper()} wins: {shares} | {reached} | |")
    return rows


def _why(method: str, counts: dict[str, Any]) -> str:
    c = counts[method]
    if method == "minimax":
        o = c["ecd_other"]
        return f"with the expected decision as score: better in {o['win']}, worse in {o['loss']}, mean {o['mean']:.3f}"
    e, lost = c["ecd"], c["accuracy"]["mean of the plain model"] - c["accuracy"]["mean"]
    means = f"mean ECD {e['mean']:.3f} against {e['mean of the plain model']:.3f}"
    return f"{means}; mean accuracy lost {lost:.3f}; AOD: better in {c['aod']['win']}, worse in {c['aod']['loss']}"


def _unable(cells: dict[str, Any]) -> list[str]:
    """Say which methods could not be fitted where."""
    where: dict[str, list[str]] = {}
    for name, c in cells.items():
        for method in c["unable"]:
            where.setdefault(method, []).append(name)
    if not where:
        return []
    texts = "; ".join(f"{WORDS[m]} on {', '.join(names)}" for m, names in where.items())
    return [f"Not counted, because at least one repetition could not be fitted: {texts}.", ""]


def _by_model(numbers: dict[str, int], run: Collection[str]) -> str:
    return " and ".join(f"{number} ({kind})" for kind, number in numbers.items() if kind in run)


def page(summary: dict[str, Any]) -> str:
    """Return the README's part about tables V to VII."""
    asked, counts = summary["settings"], summary["counts"]
    horizons = sorted({c["horizon"] for c in summary["cells"].values()})
    made = sorted({(c.split()[0], v["repetitions"]) for c, v in summary["cells"].items()})
    shown = {kind: sorted({r for k, r in made if k == kind}) for kind in NAMES if any(k == kind for k, _ in made)}
    runs = ", ".join(f"{k} {'/'.join(map(str, r))}" for k, r in shown.items())
    lines = [
        f"What was run: {len(summary['cells'])} of 40 data sets and models; repetitions (other splits and seeds) by "
        f"model: {runs}; at most {asked['train_rows']:,} training and {asked['test_rows']:,} test rows of a data set; "
        f"ECD at horizons of {horizons[0]:.0f} to {horizons[-1]:.0f} decisions; "
        f"exponentiated gradient with {asked['gradient_rounds']} rounds ({asked['gradient_constraint']}), "
        f"MiniMax-Fairness with {_by_model(asked['minimax_rounds'], shown)} rounds, ECD-Fair with "
        f"{_by_model(asked['ecd_fair_trials'], shown)} trials (print: an hour for each). With so few repetitions few "
        "differences can be told: a tie does not show that two methods are alike.",
        "",
        "| claim | theirs | ours | reached | why |",
        "| --- | --- | --- | --- | --- |",
        *answers(summary),
        "",
        "Win / tie / loss against the plain model by Scott-Knott (Cliff's delta .147, bootstrap), the four methods of "
        "RQ3 and the two of RQ4 ranked apart; in brackets what our paired tests show "
        "better / worse (corrected resampled t, Holm over the cells of a method, 5 %).",
        "",
        "| method | cells | accuracy | AOD | EOD | SPD | DI | ECD |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method, c in counts.items():
        if c["cells"]:
            texts = [
                f"{c[k]['win']} / {c[k]['tie']} / {c[k]['loss']} [{c[k]['better']} / {c[k]['worse']}]"
                for k in ("accuracy", "aod", "eod", "spd", "di", "ecd")
            ]
            lines.append(f"| {WORDS[method]} | {c['cells']} | {' | '.join(texts)} |")
    lines += [
        "",
        *_unable(summary["cells"]),
        "Means over all cells of a method, the plain model's on the same cells in brackets:",
        "",
        "| method | accuracy | AOD | EOD | SPD | 1 - DI | ECD |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for method, c in counts.items():
        if c["cells"]:
            texts = [
                f"{c[k]['mean']:.3f} [{c[k]['mean of the plain model']:.3f}]"
                for k in ("accuracy", "aod", "eod", "spd", "di", "ecd")
            ]
            lines.append(f"| {WORDS[method]} | {' | '.join(texts)} |")
    if summary["table_i"] is not None:
        lines += ["", *_table_i(summary["table_i"])]
    return "\n".join(lines)


def _table_i(shown: dict[str, Any]) -> list[str]:
    """Return table I: levels of the network on Adult by race, as trained and after exponentiated gradient."""
    labels = ("as trained", "expected decision", "mean probability")
    groups = [g for g in shown["as trained"] if g != "accuracy"]
    horizons = ("100", "1000", "1000000")
    lines = [
        f"Table I with exponentiated gradient ({shown['rounds']} rounds, {shown['members']} networks in the mixture) "
        "on Adult by race: what one decision in so many exceeds, with its 95 % interval. Print says that the levels of "
        "both groups rise.",
        "",
        f"| network | accuracy | {' | '.join(f'{g}: {int(m):,}' for g in groups for m in horizons)} |",
        "| --- | --- |" + " --- |" * (len(groups) * len(horizons)),
    ]
    for label in labels:
        texts = []
        for g in groups:
            for m in horizons:
                level, low, high = shown[label].get(g, {}).get(m, (None, None, None))
                texts.append("not known" if level is None else f"{level:.3f} [{low:.3f}, {high:.3f}]")
        name = label if label == "as trained" else f"exponentiated gradient, {label}"
        lines.append(f"| {name} | {shown[label]['accuracy']:.3f} | {' | '.join(texts)} |")
    return lines


def store(folder: Path, config: dict[str, Any]) -> None:
    """Write the summary and the README's part."""
    summary = summarise(folder, config)
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    made = f"{head}{BEGIN}\n{page(summary)}\n{END}{rest.split(END)[1]}"
    write_all({HERE / "comparison.json": json.dumps(summary, indent=1) + "\n", readme: made})
    print(page(summary))
