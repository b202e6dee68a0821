"""Does a watch cry wolf, and how soon does it see what is there?

    python calibration/watch.py            # 10,000 null streams of 1,000 looks each, four designs; writes watch.json
    python calibration/watch.py --part delay    # only some: null, family, delay, drift, intervals

* null: both groups have the same rate in every batch; how often does the evidence ever pass 1 / alpha? Beside it, how
  often a z-test that is looked at after each batch ever falls below alpha.
* family: six questions of one watch, all null or half of them; how often is any true null alarmed?
* delay: pairs until an alarm, beside the betting test of Chugg and others (2023) on the same pairs and beside the
  number of pairs that a z-test needs that is looked at once; with all rows of unequal groups, and on census data.
* drift: batches until an alarm when a difference begins after calm batches.
* intervals: how often a confidence sequence ever misses the truth, equivalence is claimed on the margin, a change since
  a baseline is claimed where there is none.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import evenhand as eh
from evenhand.inference.anytime.betting import Stream, log_gains
from evenhand.inference.anytime.family import adjust_evidence
from evenhand.inference.anytime.mixture import log_capital
from evenhand.inference.anytime.sequence import Scale, log_change, log_evidence, sequence

HERE = Path(__file__).resolve().parent
LEVELS = (0.05, 0.01, 0.001)
DIFFERENCE = Scale(ratio=False)
ZERO, ONE = np.array(0.0), np.array(1.0)


def counts(rng: np.random.Generator, size: np.ndarray, rate: np.ndarray) -> Stream:
    """Draw both groups' successes; sizes and rates have a shape (..., batches, 2)."""
    total = rng.binomial(size, rate).astype(float)
    return Stream(size=size.astype(float), total=total, square=total, binary=True)


def two_sided(stream: Stream) -> np.ndarray:
    """Return the log evidence for a difference, as a watch has it, for many streams at once."""
    above, below = (_capital(side) for side in (stream, stream.turned()))
    return np.maximum(above, below) - np.log(2)


def _capital(stream: Stream) -> np.ndarray:
    """Return the log capital; gains are made of a few streams at a time, which fit in the processor's cache."""
    if stream.size.ndim != 3:
        return log_capital(log_gains(stream, ZERO, ONE))
    gains = np.concatenate([log_gains(part(stream, k, 4), ZERO, ONE) for k in range(0, len(stream.size), 4)])
    return log_capital(gains)


def design(name: str, rng: np.random.Generator, streams: int, looks: int) -> Stream:
    """Draw streams in which both groups have the same rate in every batch."""
    shape = (streams, looks)
    if name == "batches of 20, equal groups, rate 0.3":
        size, rate = np.full((*shape, 2), 10), np.full((*shape, 1), 0.3)
    elif name == "batches of 10, groups of 2 and 8, drifting rate":
        size, walk = np.tile([2, 8], (*shape, 1)), rng.normal(0, 0.2, (*shape, 1)).cumsum(axis=1)
        rate = 1 / (1 + np.exp(-walk))
    elif name == "batches of 1,000, groups of 100 and 900, rate 0.05":
        size, rate = np.tile([100, 900], (*shape, 1)), np.full((*shape, 1), 0.05)
    else:  # batches of 10 to 1,000, random shares, rate from 0.05 to 0.6 in waves
        rows = np.exp(rng.uniform(np.log(10), np.log(1000), shape)).astype(int)
        first = rng.binomial(rows, rng.uniform(0.1, 0.5, (streams, 1)))
        size = np.stack([first, rows - first], axis=-1)
        rate = 0.325 + 0.275 * np.sin(np.arange(looks) / 40 + rng.uniform(0, 6, (streams, 1)))[..., None]
    return counts(rng, size, np.broadcast_to(rate, (*shape, 2)))


DESIGNS = (
    "batches of 20, equal groups, rate 0.3",
    "batches of 10, groups of 2 and 8, drifting rate",
    "batches of 1,000, groups of 100 and 900, rate 0.05",
    "batches of 10 to 1,000, random shares, rate in waves from 0.05 to 0.6",
)


def peeked(stream: Stream) -> np.ndarray:
    """Return the smallest p-value of a pooled z-test that is looked at after each batch."""
    size, total = stream.size.cumsum(axis=1), stream.total.cumsum(axis=1)
    pooled = total.sum(axis=-1) / size.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = total[..., 0] / size[..., 0] - total[..., 1] / size[..., 1]
        z = np.abs(gap) / np.sqrt(pooled * (1 - pooled) * (1 / size).sum(axis=-1))
    return 2 * stats.norm.sf(np.nanmax(np.where(np.isfinite(z), z, 0.0), axis=1))


def null(name: str, streams: int, looks: int, *, seed: int = 0, at_once: int = 200) -> dict[str, Any]:
    """Count null streams that are ever alarmed."""
    rng = np.random.default_rng([seed, DESIGNS.index(name)])
    ever, peeks = np.zeros(len(LEVELS), dtype=int), 0
    for start in range(0, streams, at_once):
        stream = design(name, rng, min(at_once, streams - start), looks)
        most = two_sided(stream).max(axis=1)
        ever += [(most >= -np.log(alpha)).sum() for alpha in LEVELS]
        peeks += int((peeked(stream) < 0.05).sum())
    alarms = {f"{alpha:g}": int(n) for alpha, n in zip(LEVELS, ever, strict=True)}
    return {"design": name, "streams": streams, "looks": looks, "alarms": alarms, "peeked_z_05": peeks}


def family(streams: int, looks: int, false: int, *, questions: int = 6, seed: int = 1) -> dict[str, Any]:
    """Count families in which a true null is alarmed, where some of the questions have a difference of 0.15."""
    rng = np.random.default_rng([seed, false])
    size = np.tile([30, 70], (streams, questions, looks, 1))
    rate = np.full((streams, questions, looks, 2), 0.3)
    rate[:, :false, :, 0] += 0.15
    log_e = two_sided(counts(rng, size, rate)).swapaxes(1, 2)  # (streams, looks, questions)
    adjusted = adjust_evidence(log_e, log_e) >= -np.log(0.05)
    return {
        "streams": streams, "looks": looks, "questions": questions, "with_difference": false,
        "any_false_alarm": int(adjusted[:, :, false:].any(axis=(1, 2)).sum()),
        "true_alarms": float(adjusted[:, :, :false].any(axis=1).mean()) if false else None,
    }  # fmt: skip


def betting_of_chugg(first: np.ndarray, second: np.ndarray, alpha: float = 0.05) -> np.ndarray:
    """Return after how many pairs the betting test alarms: bets on the difference of a pair by online Newton steps.

    The capital is multiplied by 1 + b g with g the difference of a pair; the next bet is the last one plus
    2 / (2 - log 3) z / (1 + sum z²), with z = g / (1 + b g), kept within 1/2 of 0.
    """
    gap = first - second
    bet, log_capital_, squares = (np.zeros(len(gap)) for _ in range(3))
    stop = np.full(len(gap), np.inf)
    for t in range(gap.shape[1]):
        log_capital_ += np.log1p(bet * gap[:, t])
        stop[(log_capital_ >= -np.log(alpha)) & np.isinf(stop)] = t + 1
        z = gap[:, t] / (1 + bet * gap[:, t])
        squares += z**2
        bet = np.clip(bet + 2 / (2 - np.log(3)) * z / (1 + squares), -0.5, 0.5)
    return stop


def first_alarm(log_e: np.ndarray, alpha: float = 0.05) -> np.ndarray:
    """Return the number of the first look with an alarm, infinite without one."""
    hit = log_e >= -np.log(alpha)
    return np.where(hit.any(axis=-1), hit.argmax(axis=-1) + 1.0, np.inf)


def pairs(rate: float, gap: float, *, streams: int = 300, most: int = 3000, seed: int = 2) -> dict[str, Any]:
    """Compare pairs until an alarm on the same pairs, one person of each group at a time."""
    rng = np.random.default_rng([seed, int(1e4 * gap)])
    size = np.ones((streams, most, 2), dtype=int)
    stream = counts(rng, size, np.broadcast_to([rate + gap, rate], size.shape))
    ours = np.concatenate([first_alarm(two_sided(part(stream, k))) for k in range(0, streams, 20)])
    theirs = betting_of_chugg(stream.total[..., 0], stream.total[..., 1])
    variance = rate * (1 - rate) + (rate + gap) * (1 - rate - gap)
    return {
        "rate": rate, "gap": gap, "streams": streams, "ours_median_pairs": float(np.median(ours)),
        "chugg_median_pairs": float(np.median(theirs)),
        "z_test_once_pairs_for_half_power": float(np.ceil(stats.norm.isf(0.025) ** 2 * variance / gap**2)),
    }  # fmt: skip


def part(stream: Stream, start: int, many: int = 20) -> Stream:
    at = slice(start, start + many)
    return Stream(size=stream.size[at], total=stream.total[at], square=stream.square[at], binary=stream.binary)


def unequal(rate: float, gap: float, sizes: tuple[int, int], *, streams: int = 200, looks: int = 400) -> dict[str, Any]:
    """Compare rows until an alarm in batches of unequal groups; theirs takes as many pairs as the smaller group has."""
    rng = np.random.default_rng([3, *sizes])
    size = np.tile(sizes, (streams, looks, 1))
    stream = counts(rng, size, np.broadcast_to([rate + gap, rate], size.shape))
    ours = np.concatenate([first_alarm(two_sided(part(stream, k))) for k in range(0, streams, 20)])
    few = min(sizes)
    first, second = (rng.random((streams, looks * few)) < r for r in (rate + gap, rate))
    theirs = np.ceil(betting_of_chugg(first.astype(float), second.astype(float)) / few)
    return {"rate": rate, "gap": gap, "sizes": list(sizes), "streams": streams,
            "ours_median_batches": float(np.median(ours)),
            "chugg_median_batches": float(np.median(theirs))}  # fmt: skip


def census(attribute: str, group: str, reference: str, *, streams: int = 200, most: int = 2500) -> dict[str, Any]:
    """Compare pairs until an alarm about the FNR of real decisions, people drawn from the census file."""
    data = eh.datasets.adult()
    codes, labels = data.attribute(attribute).codes, data.attribute(attribute).labels
    wrong = [1.0 - data.decision[(codes == labels.index(g)) & (data.outcome == 1)] for g in (group, reference)]
    rng = np.random.default_rng([4, len(group)])
    total = np.stack([rng.choice(w, (streams, most)) for w in wrong], axis=-1)
    stream = Stream(size=np.ones_like(total), total=total, square=total, binary=True)
    ours = np.concatenate([first_alarm(two_sided(part(stream, k))) for k in range(0, streams, 20)])
    theirs = betting_of_chugg(total[..., 0], total[..., 1])
    return {"groups": [group, reference], "fnr": [float(w.mean()) for w in wrong], "streams": streams,
            "gap": float(wrong[0].mean() - wrong[1].mean()), "ours_median_pairs": float(np.median(ours)),
            "chugg_median_pairs": float(np.median(theirs))}  # fmt: skip


def drift(calm: int, *, gap: float = 0.1, streams: int = 200, looks: int = 120) -> dict[str, Any]:
    """Count batches from the beginning of a difference to the alarm, after calm batches; groups of 60 and 140."""
    rng = np.random.default_rng([5, calm])
    size = np.tile([60, 140], (streams, calm + looks, 1))
    rate = np.full(size.shape, 0.3)
    rate[:, calm:, 0] += gap
    stream = counts(rng, size, rate)
    log_e = np.concatenate([two_sided(part(stream, k)) for k in range(0, streams, 20)])
    before = (log_e[:, :calm] >= np.log(20)).any(axis=1) if calm else np.zeros(streams, dtype=bool)
    delay = first_alarm(log_e[:, calm:])[~before]
    few = 60
    first = (rng.random((streams, (calm + looks) * few)) < np.repeat(rate[..., 0], few, axis=1)).astype(float)
    second = (rng.random(first.shape) < 0.3).astype(float)
    theirs = np.ceil(betting_of_chugg(first, second) / few) - calm
    return {"calm_batches": calm, "gap": gap, "streams": streams, "ours_median_batches": float(np.median(delay)),
            "chugg_median_batches": float(np.median(theirs[theirs > 0]))}  # fmt: skip


def intervals(streams: int, *, looks: int = 30, seed: int = 6) -> dict[str, Any]:
    """Count confidence sequences that ever miss, and false claims of equivalence and of change."""
    rng = np.random.default_rng(seed)
    missed = {"difference": 0, "ratio": 0, "bounded mean": 0}
    equivalent = changed = contradictions = 0
    margin = 0.1
    for _ in range(streams):
        size = np.stack([rng.integers(10, 60, looks), rng.integers(20, 200, looks)], axis=-1)
        common = rng.uniform(0.2, 0.5)
        stream = counts(rng, size, np.broadcast_to([common + margin, common], size.shape))
        ends = sequence(stream, DIFFERENCE, 0.05, "two-sided", (0.0, margin))
        missed["difference"] += bool(((ends[:, 0] > margin) | (ends[:, 1] < margin)).any())
        alarm = log_evidence(stream, DIFFERENCE, np.zeros(1), "greater")[:, 0] >= np.log(40)
        contradictions += bool((np.maximum.accumulate(alarm) != (ends[:, 0] >= 0)).any())
        inside = log_evidence(stream, DIFFERENCE, np.array([-margin, margin]), "less")[:, 1]
        equivalent += bool((inside >= np.log(20)).any())
        ratio = (common + margin) / common
        ends = sequence(stream, Scale(ratio=True), 0.05, "two-sided", (1.0, ratio))
        missed["ratio"] += bool(((ends[:, 0] > ratio) | (ends[:, 1] < ratio)).any())
        changed += bool((log_change(stream, DIFFERENCE, 10, (0.0, 0.0)) >= np.log(20)).any())
        shape = rng.uniform(0.5, 3.0)
        values = [[rng.beta(shape, 2.0, n) for n in row] for row in size]
        total = np.array([[v.sum() for v in row] for row in values])
        square = np.array([[(v**2).sum() for v in row] for row in values])
        bounded = Stream(size=size.astype(float), total=total, square=square, binary=False)
        ends = sequence(bounded, DIFFERENCE, 0.05, "two-sided", (0.0,))
        missed["bounded mean"] += bool(((ends[:, 0] > 0) | (ends[:, 1] < 0)).any())
    return {"streams": streams, "looks": looks, "missed": missed, "equivalence_on_the_margin": equivalent,
            "change_where_none": changed, "alarm_and_interval_disagree": contradictions}  # fmt: skip


PARTS = {
    "null": lambda: [null(name, 10_000, 1000) for name in DESIGNS],
    "family": lambda: [family(400, 60, false) for false in (0, 3)],
    "delay": lambda: {
        "pairs": [pairs(0.2, 0.104), pairs(0.25, 0.117), pairs(0.25, 0.064)],
        "unequal": [unequal(0.25, 0.104, (20, 80)), unequal(0.25, 0.064, (50, 450))],
        "census": [census("sex", "Female", "Male"), census("race", "Black", "White")],
    },
    "drift": lambda: [drift(calm) for calm in (0, 50, 400)],
    "intervals": lambda: intervals(400),
}


def main() -> None:
    """Run the parts asked for and store them beside the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append")
    path = HERE / "watch.json"
    for name in parser.parse_args().part or PARTS:
        start = time.process_time()
        result = PARTS[name]()
        print(name, json.dumps(result), f"{time.process_time() - start:.0f} s", flush=True)
        stored = json.loads(path.read_text()) if path.exists() else {"alpha": 0.05}
        path.write_text(json.dumps({**stored, name: result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
