"""Coverage and size where groups are unknown or guessed, with the shortcuts beside them.

Three kinds of designs. "missing": the group of some people is unknown, at random or where it hides most; the interval
must cover the true difference, and a true difference of 0 may be called one in at most alpha of the runs. "proxy":
probabilities of groups, decisions independent of the proxy given the group; the estimate's interval and test must hold,
and so must the bounds'. "contradicted": decisions depend on the proxy beyond the group; the estimate is wrong, the
bounds are not, and the warning should be seen.

python calibration/unknown.py [--short] [--replications 20] [--rounds 10]
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from evenhand.inference.rates.samples import RateSamples
from evenhand.inference.samples import Draws
from evenhand.inference.unknown.identified import End, IdentifiedSet
from evenhand.inference.unknown.mixture import Mixture
from evenhand.inference.unknown.proxy_bounds import DENOMINATOR, NUMERATOR, OUTSIDE, ProxyBounds, ProxyRows

HERE = Path(__file__).parent
LEVELS = (0.05, 0.01, 0.001)
EVERY = 5  # of so many runs the bounds and the test of fit are made in one


@dataclass(frozen=True)
class Missing:
    """Two groups of which some people's group is unknown."""

    rows: int
    unknown: float  # share of people whose group is unknown
    how: str  # "random", or "hiding": those decided 1 in the group with the higher rate, and 0 in the other
    rates: tuple[float, float] = (0.3, 0.3)

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        return f"missing n={self.rows} unknown={self.unknown} {self.how} rates={self.rates[0]}/{self.rates[1]}"

    def draw(self, rng: np.random.Generator) -> tuple[IdentifiedSet, float]:
        """Draw people; return the range of the difference and the known people's p-value."""
        group = rng.integers(0, 2, self.rows)
        chosen = rng.random(self.rows) < np.asarray(self.rates)[group]
        if self.how == "random":
            unknown = rng.random(self.rows) < self.unknown
        else:  # the difference of the known is as far from the truth as it can be
            hides = chosen == (group == 0)
            unknown = hides & (rng.random(self.rows) < self.unknown / max(hides.mean(), 1e-9))
        x = np.array([np.sum(chosen & ~unknown & (group == k)) for k in (0, 1)])
        n = np.array([np.sum(~unknown & (group == k)) for k in (0, 1)])
        top, rest = int(np.sum(chosen & unknown)), int(np.sum(~chosen & unknown))
        low = RateSamples.from_counts([x[0], x[1] + top], [n[0] + rest, n[1] + top])
        high = RateSamples.from_counts([x[0] + top, x[1]], [n[0] + top, n[1] + rest])
        known = RateSamples.from_counts(x, n).test(0, 1, Draws()).pvalue
        return IdentifiedSet(low=_end(low), high=_end(high)), known


def _end(samples: RateSamples) -> End:
    def interval(level: float) -> tuple[float, float]:
        return samples.interval(0, 1, level=level, ratio=False, draws=Draws())[:2]

    return End(
        estimate=samples.difference(0, 1), interval=interval, pvalue=lambda _: samples.test(0, 1, Draws()).pvalue
    )


@dataclass(frozen=True)
class Proxy:
    """Groups that are guessed from a proxy."""

    rows: int
    groups: int
    proxy: str  # "informative", "weak" or "binned": how well the probabilities tell groups apart
    apart: float = 0.0  # true difference between the first two groups
    outside: bool = False  # whether the rate has an outcome in its denominator
    leak: float = 0.0  # how much decisions depend on the proxy beyond the group

    @property
    def name(self) -> str:
        """Return one line that names the design."""
        more = (" outcome" if self.outside else "") + (f" leak={self.leak}" if self.leak else "")
        return f"proxy n={self.rows} K={self.groups} {self.proxy} difference={self.apart}{more}"

    def draw(self, rng: np.random.Generator) -> tuple[ProxyRows, np.ndarray]:
        """Draw people with their probabilities; also return the true groups."""
        share = np.array([0.6, 0.4]) if self.groups == 2 else np.array([0.5, 0.25, 0.1, 0.1, 0.05])[: self.groups]
        share = share / share.sum()
        if self.proxy == "binned":
            kinds = np.random.default_rng(1).dirichlet(share * 0.8, 20)
            p = kinds[rng.integers(0, 20, self.rows)]
        else:
            p = rng.dirichlet(share * {"informative": 0.6, "weak": 8.0}[self.proxy], self.rows)
        group = (p.cumsum(1) > rng.random((self.rows, 1))).argmax(1)
        rate = np.full(self.groups, 0.35)
        rate[0] += self.apart
        chance = rate[group] + self.leak * (p[:, 0] - share[0])
        place = np.where(rng.random(self.rows) < np.clip(chance, 0, 1), NUMERATOR, DENOMINATOR)
        if self.outside:
            place = np.where(rng.random(self.rows) < np.linspace(0.4, 0.6, self.groups)[group], place, OUTSIDE)
        return ProxyRows.of(p, place), group


def _generator(design: Missing | Proxy, seed: int) -> np.random.Generator:
    """Return the random numbers of one run, which no other design shares."""
    return np.random.default_rng([seed, zlib.crc32(design.name.encode())])


def simulate_missing(design: Missing, replications: int, first: int = 0) -> dict[str, Any]:
    """Count coverage of the truth, and false disparities where there is none."""
    truth = design.rates[0] - design.rates[1]
    covered, values, plain, widths = 0, [], [], []
    for seed in range(first, first + replications):
        bounds, known = design.draw(_generator(design, seed))
        low, high = bounds.interval(0.95)
        covered += low <= truth <= high
        widths.append(high - low)
        values.append(bounds.beyond(0.0, 0.0))
        plain.append(known)
    return {
        "design": asdict(design) | {"kind": "missing", "name": design.name},
        "replications": replications,
        "coverage": covered / replications,
        "width": float(np.mean(widths)),
        "rejected": _shares(values),
        "known_only_rejected": _shares(plain),
    }


def simulate_proxy(design: Proxy, replications: int, first: int = 0) -> dict[str, Any]:
    """Count coverage and rejections of the estimate and of the bounds, and what the shortcuts say."""
    count = {"em": 0, "bounds": 0}
    values: dict[str, list[float]] = {"em": [], "bounds": []}
    estimates: dict[str, list[float]] = {"em": [], "weighting": [], "threshold": [], "truth": []}
    shortcut = {"weighting": 0, "threshold": 0}
    warned = looked = 0
    for seed in range(first, first + replications):
        people, group = design.draw(_generator(design, seed))
        truth = design.apart if not design.leak else _true_gap(design)
        model = Mixture(people)
        # The interval holds the values that the test keeps, so one test says whether it covers the truth.
        kept = model.pvalue(0, 1, truth)
        count["em"] += kept > 0.05
        values["em"].append(kept if truth == 0 else model.pvalue(0, 1, 0.0))
        estimates["em"].append(model.value(0, 1, ratio=False))
        if seed % EVERY == 0:  # these take longer, and do not come near their limits
            looked += 1
            warned += model.misfit(0, 1) < 0.01
            bounds = ProxyBounds(people, 0, 1).difference()
            low, high = bounds.interval(0.95)
            count["bounds"] += low <= truth <= high
            values["bounds"].append(bounds.beyond(0.0, 0.0))
        estimates["truth"].append(_gap(people, np.eye(design.groups)[group])[0])
        for name, weight in (("weighting", people.probability), ("threshold", _likeliest(people.probability))):
            gap, error = _gap(people, weight)
            estimates[name].append(gap)
            shortcut[name] += abs(gap - truth) <= 1.959964 * error
    return {
        "design": asdict(design) | {"kind": "contradicted" if design.leak else "proxy", "name": design.name},
        "replications": replications,
        "true_difference": design.apart if not design.leak else _true_gap(design),
        "coverage": {
            name: n / (looked if name == "bounds" else replications) for name, n in (count | shortcut).items()
        },
        "rejected": {name: _shares(p) for name, p in values.items()},
        "mean_estimate": {name: float(np.nanmean(v)) for name, v in estimates.items()},
        "warned": warned / looked,
    }


def _true_gap(design: Proxy) -> float:
    """Return the true difference where decisions depend on the proxy, from many people."""
    if design not in _GAPS:
        people, group = Proxy(**asdict(design) | {"rows": 2_000_000}).draw(np.random.default_rng(99))
        _GAPS[design] = _gap(people, np.eye(design.groups)[group])[0]
    return _GAPS[design]


_GAPS: dict[Proxy, float] = {}


def _likeliest(p: np.ndarray) -> np.ndarray:
    return np.eye(p.shape[1])[p.argmax(1)]


def _gap(people: ProxyRows, weight: np.ndarray) -> tuple[float, float]:
    """Return the difference of two groups' weighted rates and its standard error."""
    inside = people.place != OUTSIDE
    value, w = (people.place[inside] == NUMERATOR).astype(float), weight[inside][:, :2]
    if (w.sum(0) == 0).any():
        return float("nan"), float("nan")
    rate = value @ w / w.sum(0)
    influence = w * (value[:, None] - rate) / w.sum(0)
    return float(rate[0] - rate[1]), float(np.sqrt(((influence[:, 0] - influence[:, 1]) ** 2).sum()))


def _shares(values: list[float]) -> dict[str, float]:
    return {str(alpha): float(np.mean(np.array(values) <= alpha)) for alpha in LEVELS}


MISSING = (
    *(Missing(rows=200, unknown=unknown, how=how) for unknown in (0.05, 0.2) for how in ("random", "hiding")),
    *(Missing(rows=1000, unknown=unknown, how=how) for unknown in (0.05, 0.2) for how in ("random", "hiding")),
    *(
        Missing(rows=5000, unknown=unknown, how=how, rates=rates)
        for unknown in (0.01, 0.05, 0.2, 0.4)
        for how in ("random", "hiding")
        for rates in ((0.3, 0.3), (0.5, 0.3))
    ),
)
PROXY = (
    *(
        Proxy(rows=rows, groups=groups, proxy=proxy, apart=apart, outside=outside)
        for rows in (500, 2000)
        for groups in (2, 3, 5)
        for proxy in ("informative", "weak")
        for apart, outside in ((0.0, False), (0.1, True))
    ),
    *(Proxy(rows=20_000, groups=groups, proxy=proxy) for groups in (2, 5) for proxy in ("informative", "weak")),
    *(Proxy(rows=2000, groups=3, proxy="binned", apart=apart) for apart in (0.0, 0.1)),
)
CONTRADICTED = tuple(
    Proxy(rows=rows, groups=3, proxy=proxy, apart=0.1, leak=leak)
    for rows in (2000, 20_000)
    for proxy in ("informative", "weak")
    for leak in (-0.2, 0.2)
)
SHORT = (
    Missing(rows=5000, unknown=0.05, how="random"),
    Missing(rows=5000, unknown=0.2, how="hiding", rates=(0.5, 0.3)),
    Proxy(rows=500, groups=3, proxy="informative"),
    Proxy(rows=2000, groups=3, proxy="informative", apart=0.1, leak=0.2),
)


def run(design: Missing | Proxy, replications: int, first: int = 0) -> dict[str, Any]:
    """Simulate one design, those that cost little more often and those with many rows less often."""
    if isinstance(design, Missing):
        return simulate_missing(design, (5 if design.rows >= 5000 else 1) * replications, first)
    times = 5 if design.rows <= 500 else 3 if design.rows <= 2000 else 1
    return simulate_proxy(design, times * replications, first)


def joined(one: Any, two: Any, share: float) -> Any:
    """Average two results of one design, the first with this share of the runs."""
    if isinstance(one, dict):
        return {key: joined(one[key], two[key], share) for key in one}
    return share * one + (1 - share) * two


def main() -> None:
    """Run the grid in rounds over all designs, and store what there is after each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=20, help="runs of a design in each round")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--short", action="store_true")
    asked = parser.parse_args()
    designs = SHORT if asked.short else (*PROXY, *CONTRADICTED, *MISSING)
    results: dict[str, dict[str, Any]] = {}
    for number in range(1 if asked.short else asked.rounds):
        for design in designs:
            made = run(design, asked.replications, first=10_000 * number)
            old = results.get(design.name)
            if old is not None:
                runs = old["replications"] + made["replications"]
                share = old["replications"] / runs
                numbers = {k: joined(v, made[k], share) for k, v in old.items() if k not in ("design", "replications")}
                made = {"design": made["design"], "replications": runs, **numbers}
            results[design.name] = made
            if asked.short:
                print(design.name, made["coverage"], made["rejected"])
        if not asked.short:
            stored = json.dumps(list(results.values()), indent=1) + "\n"
            (HERE / "unknown.json").write_text(stored, encoding="utf-8")
            print(f"round {number + 1}: {time.process_time():.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
