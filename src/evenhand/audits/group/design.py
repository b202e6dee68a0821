"""Clustered rows and survey designs in the group audit: records to what each cluster adds to each group's value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.group.evidence import Clusters
from evenhand.audits.group.influence import auc_influence, table_gradient, values_of
from evenhand.errors import DataError
from evenhand.inference.design.clustered import Behind, ClusteredSamples
from evenhand.inference.design.conditional import ConditionalClusters, Rows
from evenhand.inference.design.contributions import Contributions, rounded
from evenhand.inference.samples import Samples
from evenhand.intake import Attribute, AuditData
from evenhand.metrics import Metric
from evenhand.summaries import cells_of, weight_sums

_COMPARED = ("rate", "table", "mean", "auc")
# Other kinds have no influence function that adds up by cluster: a metric that has one, and why they do not.
_LACKING = {
    "calibration": ("mean_residual", "its estimate without bias takes rows of one score bin for independent"),
    "gaps": ("aod", "it takes the tests of its two rates for independent, and rows of a cluster link them"),
    "scoring": ("mean_score", "the median that it compares with is itself made from all clusters"),
    "rows": ("selection_rate", "a function of rows has no known influence of each row"),
}


ROW = "row"  # the name of a cluster where each row is one


def has_design(data: AuditData) -> bool:
    """Whether rows belong together, or a survey was stratified."""
    return data.cluster is not None or data.survey_strata is not None


def check_design_needs(metric: Metric, data: AuditData) -> None:
    """Raise a clear error when a metric cannot be compared by cluster, or the data lack what that takes."""
    if not has_design(data):
        return
    asked = "cluster" if data.cluster is not None else "survey_strata"
    if metric.kind not in _COMPARED:
        other, why = _LACKING.get(metric.kind, _LACKING["rows"])
        raise DataError(
            f"Metric `{metric.name}` cannot be compared with `{asked}`: {why}. Leave it out of `metrics=`, or use "
            f"`{other}`."
        )
    if data.cluster is None and data.moments is not None and (data.weight is not None or metric.kind == "mean"):
        raise DataError(
            f"Metric `{metric.name}` with `survey_strata=` and no `cluster=` needs rows, and these stayed on their "
            "engine. Read the data with `rows='keep'`."
        )


def design_samples(metric: Metric, data: AuditData, attribute: Attribute) -> ClusteredSamples | ConditionalClusters:
    """Make the samples of a metric, checked with `check_design_needs`, whose independent parts are clusters."""
    places = _Clusters.of(data)
    linear = _linear(metric, data, attribute)
    n_groups = len(attribute.labels)
    rate = metric.kind == "rate" and metric.transform == "identity"
    name = data.columns.get("cluster", ROW)
    reason = ["" if value == value else metric.empty for value in linear.value.tolist()]
    share = 1 / places.copies[places.line]  # of a record, in one of the clusters that its line stands for
    used = linear.mass > 0
    if data.survey_strata is None:  # clusters without rows behind the value say nothing about it
        kept, line = np.unique(places.line[used], return_inverse=True)
    else:
        kept, line = np.arange(places.copies.size), places.line[used]
    place = line * n_groups + attribute.codes[used]

    def add(amounts: FloatArray) -> FloatArray:
        sums = np.bincount(place, weights=(share * amounts)[used], minlength=kept.size * n_groups)
        return np.asarray(sums, dtype=np.float64).reshape(kept.size, n_groups)

    parts = Contributions(
        estimate=linear.value,
        mass=add(linear.mass),
        pull=add(linear.pull),
        copies=places.copies[kept],
        stratum=None if places.stratum is None else places.stratum[kept],
    )
    counts = add(np.where(used, data.count, 0).astype(np.float64))

    def total(amounts: FloatArray) -> FloatArray:
        return np.bincount(attribute.codes, weights=amounts, minlength=n_groups).astype(np.float64)

    mass, squares, rows = (total(np.where(used, part, 0.0)) for part in (linear.mass, linear.mass_square, data.count))
    with np.errstate(divide="ignore", invalid="ignore"):
        behind = Behind(
            rows=total(data.count.astype(np.float64)),
            worth=mass**2 / squares,
            variance=total(linear.square) * rows / np.maximum(rows - 1, 1),
            largest=counts.max(axis=0, initial=0.0),
            cluster_size=parts.copies @ counts**2 / rows,
        )
    plain = ClusteredSamples(parts, behind, rate=rate, name=name, reason=reason)
    if data.strata is None:
        return plain
    strata = data.strata
    cells = Attribute(
        name=f"{attribute.name} in {strata.name}",
        labels=tuple(map(str, range(n_groups * len(strata.labels)))),
        codes=attribute.codes * len(strata.labels) + strata.codes,
    )
    inner = _linear(metric, data, cells)
    used = inner.mass > 0
    return ConditionalClusters(
        Rows(
            group=attribute.codes[used],
            stratum=strata.codes[used],
            line=places.line[used],
            copies=places.copies,
            survey=places.stratum,
            count=(share * data.count)[used],
            mass=(share * inner.mass)[used],
            pull=(share * inner.pull)[used],
            square=(share * inner.square)[used],
            value=inner.value.reshape(n_groups, len(strata.labels)),
        ),
        plain,
        rate=rate,
    )


def design_evidence(samples: Samples, members: Sequence[int], names: Sequence[str]) -> dict[str, Any]:
    """Return what the evidence says of the clusters behind a comparison of groups; nothing where there are none."""
    plain = samples.plain if isinstance(samples, ConditionalClusters) else samples
    if not isinstance(plain, ClusteredSamples):
        return {}
    parts, places = plain.parts, list(members)
    clusters = int(parts.copies @ parts.present[:, places].any(axis=1))
    crossing = parts.crossing(places)
    effect, correlation, worth = (
        {name: round(float(values[k]), 6) for k, name in zip(places, names, strict=True)}
        for values in (plain.design_effect, plain.correlation, plain.effective)
    )
    largest = int(plain.behind.largest[places].max())
    sizes = [f"{worth[name]:,.0f} for {name}" for name in names if worth[name] == worth[name]]
    said = f"The rows come in {clusters:,} clusters of `{plain.name}`, of at most {largest:,} rows"
    if plain.name == ROW:
        said = f"{clusters:,} rows"
    said += f", and are worth as much as these many independent ones: {', '.join(sizes)}." if sizes else "."
    known = [value for value in correlation.values() if value == value]
    if known:
        said += f" Rows of one cluster are correlated by {min(known):.2f} to {max(known):.2f}."
    if crossing:
        said += f" {crossing:,} of {clusters:,} clusters have people of more than one group."
    more: dict[str, int] = {}
    if parts.stratum is not None:
        sizes_of = np.bincount(parts.stratum, weights=parts.copies)
        more = {"sampling_strata": int((sizes_of > 0).sum()), "single_cluster_strata": int((sizes_of == 1).sum())}
        said += f" They were drawn from {more['sampling_strata']:,} sampling strata."
        if more["single_cluster_strata"]:
            said += (
                f" {more['single_cluster_strata']:,} of these have one cluster, whose total is compared with the mean "
                "of all clusters."
            )
    evidence = Clusters(
        column=plain.name,
        clusters=clusters,
        crossing=crossing,
        design_effect=effect,
        intraclass_correlation=correlation,
        **more,
    )
    return {"design_note": said, "clusters": evidence}


def cluster_covariance(data: AuditData, influences: Sequence[FloatArray]) -> FloatArray:
    """Return the covariance of several comparisons from each row's influence on them, added up by cluster."""
    places = _Clusters.of(data)
    one_copy = data.count / places.copies[places.line]
    empty = np.empty((0, places.copies.size))
    sums = [np.bincount(places.line, weights=one_copy * psi, minlength=places.copies.size) for psi in influences]
    together = np.stack(sums) if sums else empty  # (comparisons, clusters)
    return np.asarray((together * places.copies) @ together.T)


@dataclass(frozen=True, slots=True, eq=False)
class _Clusters:
    """Which cluster each record is in."""

    line: IntArray  # (R,)
    copies: IntArray  # (L,): without a column of clusters a record stands for as many as it has rows
    stratum: IntArray | None  # (L,): the sampling stratum

    @classmethod
    def of(cls, data: AuditData) -> _Clusters:
        strata = data.survey_strata
        if data.cluster is None:
            return cls(np.arange(data.count.size), data.count, strata)
        if strata is None:
            return cls(data.cluster, np.ones(int(data.cluster.max()) + 1, dtype=np.int64), None)
        # The same number in two sampling strata names two clusters.
        both, line = np.unique(strata * (int(data.cluster.max()) + 1) + data.cluster, return_inverse=True)
        return cls(line.astype(np.int64), np.ones(both.size, dtype=np.int64), both // (int(data.cluster.max()) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Linear:
    """A metric's value in each group, and each record's part in it."""

    value: FloatArray  # (groups,): NaN where a group has none
    mass: FloatArray  # (R,): weight behind the value
    mass_square: FloatArray  # (R,): sum of the squared weights of the record's rows
    pull: FloatArray  # (R,): how much all its rows pull their group's value
    square: FloatArray  # (R,): sum of the squares of its rows' pulls


def _linear(metric: Metric, data: AuditData, attribute: Attribute) -> _Linear:
    w, ww = weight_sums(data)
    codes, n_groups = attribute.codes, len(attribute.labels)
    if metric.kind == "auc":
        value, per_weight = auc_influence(data, attribute, w)
        value = rounded(value)
        return _Linear(value, w, ww, w * per_weight, ww * per_weight**2)
    if metric.kind == "table" or metric.transform == "f1":
        table, gradient = table_gradient(metric, data, attribute)
        cell = cells_of(data)
        slope = gradient[codes, cell]
        inside = np.isin(cell, metric.denominator) if metric.denominator else np.ones(cell.shape, dtype=bool)
        return _Linear(metric(table), inside * w, inside * ww, w * slope, ww * slope**2)
    if metric.kind == "rate":
        cell = cells_of(data)
        inside, ones = np.isin(cell, metric.denominator), np.isin(cell, metric.numerator)
        w, ww = inside * w, inside * ww
        wv, wwv, wwvv = ones * w, ones * ww, ones * ww
    elif data.moments is not None:
        moments = data.moments[metric.value]
        wv, wwv, wwvv = moments.wv, moments.wwv, moments.wwvv
    else:
        values = values_of(metric, data)
        wv, wwv, wwvv = w * values, ww * values, ww * values**2
    whole = np.bincount(codes, weights=w, minlength=n_groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(whole > 0, np.bincount(codes, weights=wv, minlength=n_groups) / whole, np.nan)
    if data.weight is not None or metric.kind == "mean":
        value = rounded(value)
    own, scale = np.nan_to_num(value)[codes], np.where(whole > 0, whole, 1.0)[codes]
    square = np.maximum(wwvv - 2 * own * wwv + own**2 * ww, 0.0) / scale**2
    return _Linear(value, w, ww, (wv - own * w) / scale, square)
