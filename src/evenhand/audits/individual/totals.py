"""What is known of the people who were moved, added up: any division of the people gives the same sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.individual.evidence import ExamplePair, OffRange
from evenhand.audits.individual.moving import Moved
from evenhand.audits.individual.people import People
from evenhand.audits.individual.region import Box
from evenhand.kernels.flow.ratio_sums import RateSums, RatioSums

# A loss that falls by less than this, on the logarithm, fell by rounding.
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedPair:
    """An example with its place among all others: by its ratio, and equal ratios by the person's inputs."""

    log_ratio: float  # minus infinity where it is not a number
    person: tuple[float, ...]  # inputs, outcome and sampling weight: the same person in two batches is one
    pair: ExamplePair

    @property
    def place(self) -> tuple[float, tuple[float, ...]]:
        """What the examples are sorted by."""
        return -self.log_ratio, self.person


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Totals:
    """Sums over people before and after they were moved."""

    # ratios, rates: one per checkpoint of the map; the last is the whole map.
    ratios: tuple[RatioSums, ...]
    rates: tuple[RateSums, ...]
    parts: Mapping[tuple[str, str], tuple[RatioSums, RateSums]]  # each class and group, under the whole map
    lowered: float  # rows whose loss fell
    silent: float  # rows whose loss is not a number before or after
    outside: FloatArray  # (4,): rows that ended outside of directions, inputs, either, and those held at the edge
    pairs: tuple[RankedPair, ...] = ()  # the largest ratios
    examples: int = 0  # how many of them are kept

    @classmethod
    def of(cls, people: People, moved: Moved, boxes: Sequence[tuple[IntArray, Box]], examples: int = 0) -> Totals:
        """Add up people who were moved, each part of them inside its box."""
        classes = [
            (("class", label), people.count * (people.view.y == k)) for k, label in enumerate(people.view.labels)
        ]
        groups = [
            (("group", f"{g.name}={label}"), g.table[:, k])
            for g in people.rows.groups
            for k, label in enumerate(g.labels)
        ]
        steps = [_sums(people, moved, k, people.count) for k in range(moved.clock.size)]
        return cls(
            ratios=tuple(ratio for ratio, _ in steps),
            rates=tuple(rate for _, rate in steps),
            parts={name: _sums(people, moved, -1, count) for name, count in classes + groups},
            lowered=float(people.count[moved.log_ratio() < -ROUNDING].sum()),
            silent=float(people.count[np.isnan(moved.log_loss[[0, -1]]).any(axis=0)].sum()),
            outside=_outside(people, moved, boxes),
            pairs=_largest(people, moved, examples),
            examples=examples,
        )

    @property
    def rows(self) -> float:
        """Rows that were moved."""
        return self.ratios[-1].rows + self.ratios[-1].undefined

    @property
    def off_range(self) -> OffRange:
        """The share of rows that ended outside of the observed range."""
        directions, columns, either, stopped = (float(v) for v in self.outside / self.rows)
        return OffRange(directions=directions, columns=columns, either=either, stopped=stopped)

    def __add__(self, other: Totals) -> Totals:
        """Return the sums over the people of both."""
        return Totals(
            ratios=tuple(a + b for a, b in zip(self.ratios, other.ratios, strict=True)),
            rates=tuple(a + b for a, b in zip(self.rates, other.rates, strict=True)),
            parts={
                name: (ratio + other.parts[name][0], rate + other.parts[name][1])
                for name, (ratio, rate) in self.parts.items()
            },
            lowered=self.lowered + other.lowered,
            silent=self.silent + other.silent,
            outside=self.outside + other.outside,
            pairs=_ranked([*self.pairs, *other.pairs], self.examples),
            examples=self.examples,
        )


def _sums(people: People, moved: Moved, checkpoint: int, count: FloatArray) -> tuple[RatioSums, RateSums]:
    """Return both sums at one checkpoint of those who are counted."""
    used = count > 0
    weight = None if people.weight is None else people.weight[used]
    ratio = RatioSums.of(moved.log_ratio(checkpoint)[used], count[used], weight)
    return ratio, RateSums.of(moved.wrong[checkpoint][used], moved.wrong[0][used], count[used], weight)


def _outside(people: People, moved: Moved, boxes: Sequence[tuple[IntArray, Box]]) -> FloatArray:
    out = np.zeros(4)
    for index, box in boxes:
        end, count = moved.end[index], people.count[index]
        a, b = ~box.inside_directions(end), ~box.inside_columns(end)
        out += [float(count[mark].sum()) for mark in (a, b, a | b, moved.stopped[index])]
    return out


def _largest(people: People, moved: Moved, wanted: int) -> tuple[RankedPair, ...]:
    """Return the people with the largest ratios as pairs of before and after: rows, so only on request."""
    if not wanted:
        return ()
    log_ratio, view = np.nan_to_num(moved.log_ratio(), nan=-np.inf), people.view
    weight = np.ones_like(log_ratio) if people.weight is None else people.weight
    chosen = np.argsort(-log_ratio, kind="stable")[:wanted]
    return tuple(
        RankedPair(
            log_ratio=float(log_ratio[k]),
            person=(*people.rows.X[k].tolist(), float(view.y[k]), float(weight[k])),
            pair=ExamplePair(
                ratio=float(np.exp(min(moved.log_ratio()[k], 700.0))),
                loss_before=float(np.exp(moved.log_loss[0, k])),
                loss_after=float(np.exp(min(moved.log_loss[-1, k], 700.0))),
                outcome=view.labels[int(view.y[k])] if view.labels else float(view.y[k]),
                rows=float(people.count[k]),
                moved=tuple(view.space.movement(people.rows.X[k], moved.end[k])),
            ),
        )
        for k in chosen
    )


def _ranked(pairs: Sequence[RankedPair], wanted: int) -> tuple[RankedPair, ...]:
    """Return the largest of all pairs; whoever was met twice is one person with all rows."""
    met: dict[tuple[float, ...], RankedPair] = {}
    for one in pairs:
        before = met.get(one.person)
        rows = one.pair.rows + (0.0 if before is None else before.pair.rows)
        met[one.person] = replace(one, pair=replace(one.pair, rows=rows))
    return tuple(sorted(met.values(), key=lambda p: p.place)[:wanted])
