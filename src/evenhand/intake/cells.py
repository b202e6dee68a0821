"""Records that agree in every key merged into cells, attributes crossed, and the name of the content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray, IntArray
from evenhand.intake.fingerprint import Fingerprint
from evenhand.intake.options import Options
from evenhand.intake.parts import Attribute
from evenhand.intake.records import MISSING_LABEL, Records, ScoreBins
from evenhand.intake.summed_values import VALUES, value_names

Sums = tuple[FloatArray, FloatArray, FloatArray]


def merge_cells(records: Records, options: Options) -> Records:
    """Merge records that agree in every key into cells, in an order that does not depend on the engine."""
    if records.score is not None and records.bins is None:
        records = _bin_rows(records, options.score_bins)
    cell, first = _cells(records)
    weights, constant = records.weights, records.weights.constant

    def add(values: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(cell, weights=values, minlength=len(first))

    total = None if weights.total is None else steady(add(weights.total))
    count = np.zeros(len(first), dtype=np.int64)
    np.add.at(count, cell, weights.count)
    outcome = None if records.outcome is None else records.outcome[first]
    if records.outcome is not None and records.outcome_kind == "numeric":
        scale = weights.count if weights.total is None else weights.total
        outcome = steady(add(records.outcome * scale) / add(scale))
    merged = replace(
        records,
        outcome=outcome,
        decision=None if records.decision is None else records.decision[first],
        score=None if records.score is None else records.score[first],
        attributes=tuple(replace(a, codes=a.codes[first]) for a in records.attributes),
        features={},
        design=records.design.take(first),
        weights=replace(
            weights, count=count, total=total, square=None if weights.square is None else steady(add(weights.square))
        ),
        moments={
            name: steady_sums(add(a) / constant, add(b) / constant**2, add(c) / constant**2, count)
            for name, (a, b, c) in records.moments.items()
        },
    )
    if options.features and options.rows != "batches":
        note = "Features are not collected, because rows were added up to cells; use `rows='keep'` to keep them."
        merged = replace(merged, notes=(*merged.notes, note))
    return merged


def intersect(names: Sequence[str], attributes: Sequence[Attribute]) -> Attribute:
    """Cross several attributes into one; only combinations that occur become groups.

    Examples
    --------
    >>> sex = Attribute(name="sex", labels=("F", "M"), codes=np.array([0, 1, 1]))
    >>> old = Attribute(name="old", labels=("n", "y"), codes=np.array([1, 0, 0]))
    >>> both = intersect(["sex", "old"], [sex, old])
    >>> both.name, both.labels, both.codes.tolist()
    ('sex × old', ('F & y', 'M & n'), [0, 1, 1])
    """
    by_name = {a.name: a for a in attributes}
    parts = [by_name[n] for n in names]
    if any(part.unknown is not None for part in parts):
        return _intersect_known(names, parts)
    joint, combinations = joint_codes([(a.codes, len(a.labels)) for a in parts])
    first = first_places(joint, len(combinations))
    labels = [" & ".join(a.labels[a.codes[i]] for a in parts) for i in first]
    order = sorted(range(len(labels)), key=labels.__getitem__)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Attribute(name=" × ".join(names), labels=tuple(labels[i] for i in order), codes=place[joint])


def _intersect_known(names: Sequence[str], parts: Sequence[Attribute]) -> Attribute:
    """Cross attributes of which some are unknown for some people: these are unknown in the crossing too."""
    unknown = np.any([part.codes == part.unknown for part in parts if part.unknown is not None], axis=0)
    known = [replace(part, codes=part.codes[~unknown], unknown=None) for part in parts]
    crossed = intersect(names, known)
    codes = np.full(unknown.shape, len(crossed.labels), dtype=np.int64)
    codes[~unknown] = crossed.codes
    labels = (*crossed.labels, MISSING_LABEL)
    return Attribute(name=crossed.name, labels=labels, codes=codes, unknown=len(crossed.labels))


def _bin_rows(records: Records, bins: int) -> Records:
    score = records.score
    assert score is not None
    cuts = ScoreBins.over(float(score.min()), float(score.max()), bins)
    weights = records.weights
    weight = np.ones(len(score)) if weights.total is None else weights.total / weights.count
    outcome = np.zeros(len(score)) if records.outcome is None else records.outcome
    values = {n: VALUES[n].array(outcome, score) for n in value_names(records.outcome_kind, records.score_kind)}
    once, twice = weights.count * weight, weights.count * weight**2
    return replace(
        records,
        score=cuts.place(score).astype(np.float64),
        bins=cuts,
        moments={n: (once * v, twice * v, twice * v**2) for n, v in values.items()},
        weights=replace(weights, constant=1.0),
    )


def _cells(records: Records) -> tuple[IntArray, IntArray]:
    keys: list[tuple[IntArray, int]] = [(a.codes, len(a.labels)) for a in records.attributes]
    if records.outcome is not None and records.outcome_kind == "binary":
        keys.append((records.outcome.astype(np.int64), 2))
    if records.decision is not None:
        keys.append((records.decision.astype(np.int64), 2))
    if records.score is not None and records.bins is not None:
        keys.append((records.score.astype(np.int64), records.bins.bins))
    cell, used_codes = joint_codes([*keys, *records.design.keys()])
    return cell, first_places(cell, len(used_codes))


def joint_codes(keys: Sequence[tuple[IntArray, int]]) -> tuple[IntArray, IntArray]:
    """Return each record's place among the combinations of codes that occur, and one number for each of these."""
    # Mixed radix; compressed before it could overflow.
    joint = np.zeros(len(keys[0][0]), dtype=np.int64)
    size = 1
    for codes, levels in keys:
        if size * levels >= 2**62:
            used_codes, joint = np.unique(joint, return_inverse=True)
            size = len(used_codes)
        joint = joint * levels + codes
        size *= levels
    if size <= 2**22:
        used = np.bincount(joint, minlength=size) > 0
        return (np.cumsum(used) - 1)[joint], np.flatnonzero(used)
    used_codes, joint = np.unique(joint, return_inverse=True)
    return joint.astype(np.int64), used_codes


def first_places(cell: IntArray, cells: int) -> IntArray:
    """Return the first record of each cell."""
    first = np.empty(cells, dtype=np.int64)
    first[cell[::-1]] = np.arange(len(cell) - 1, -1, -1)
    return first


def steady_sums(wv: FloatArray, wwv: FloatArray, wwvv: FloatArray, count: IntArray) -> Sums:
    """Round the three sums of a value so that they do not depend on the order of adding."""
    # A sum that cancels is rounded at the scale of its terms (Cauchy-Schwarz), not at its own.
    return steady(wv, np.sqrt(wwvv * count)), steady(wwv, np.maximum(np.abs(wwv), wwvv)), steady(wwvv)


def steady(values: FloatArray, scale: FloatArray | None = None) -> FloatArray:
    """Round sums to twelve digits, of their own size or of a given one."""
    # Engines add in whatever order their threads finish. Twelve digits are the same on every run and
    # are far below the noise of any sample.
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(values) if scale is None else scale
        digits = np.where(size == 0, 0, np.floor(np.log10(size)))
        unit = 10.0 ** np.clip(11 - digits, -290, 290)
        rounded: FloatArray = np.round(values * unit) / unit
    return np.where(np.isfinite(rounded), rounded, values)


def fingerprint_of(records: Records, cells: bool) -> str:
    """Return the fingerprint of the records' content; in cells, without what depends on the order of adding."""
    weights = records.weights
    mark = Fingerprint(weights.count)
    design = records.design
    for name, values in (("outcome", records.outcome), ("decision", records.decision), ("score", records.score)):
        # In cells a numeric outcome is a mean, whose last digits depend on the order of adding.
        if values is not None and not (cells and name == "outcome" and records.outcome_kind == "numeric"):
            mark.numbers(name, values)
    for attribute in records.attributes:
        mark.labels(f"group:{attribute.name}", attribute.codes, attribute.labels)
    for name, values in records.continuous.items():
        mark.numbers(f"continuous:{name}", values)
    for stratum in design.strata:
        mark.labels(f"stratum:{stratum.name}", stratum.codes, stratum.labels)
    for name, codes in (("cluster", design.cluster), ("survey_strata", design.survey_strata)):
        if codes is not None:
            mark.numbers(name, codes.astype(np.float64))
    for guess in design.probabilities:
        for label, values in zip(guess.labels, guess.values.T, strict=True):
            mark.numbers(f"probability:{guess.name}:{label}", values)
    for name, column in records.features.items():
        if column.kind == "label":
            mark.labels(f"feature:{name}", column.values, column.labels)
        else:
            mark.numbers(f"feature:{name}", column.values)
    if records.bins is not None:
        mark.note(f"bins:{records.bins}")
    if weights.total is not None:
        if cells:
            mark.note(f"weight:{weights.total.sum():.8e}")
        else:
            mark.numbers("weight", weights.total)
    return mark.hex()
