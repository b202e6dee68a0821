"""The counterfactual population: weights that score new rows, and what the population looks like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.arrays import FloatArray
from evenhand.audits.proxy.evidence import Counterfactual, CounterfactualMean, GapPath, LeastGap
from evenhand.audits.proxy.fits import Cut, Fits, Scorer, log_odds, sample_of
from evenhand.audits.proxy.options import ProxySetting
from evenhand.audits.proxy.sample import Pair
from evenhand.errors import DataError, UsageError
from evenhand.intake.data import AuditData
from evenhand.kernels.influence.attainable import Attainable, attainable
from evenhand.kernels.influence.descent import Pace, Path, descend
from evenhand.kernels.influence.design import Design
from evenhand.kernels.influence.functionals import Centre, centre, psi, value
from evenhand.kernels.influence.nuisance import Learned
from evenhand.kernels.shared.seeds import RngLike, seed_of, stream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CounterfactualWeights:
    """Weights under which a group shows no gap, as a function of a person's features.

    Call it with rows of the group: ``weights(features)`` gives each row's weight, with mean 1 over the
    audited group. `for_data` gives one weight per row of any data, 1 outside the group: a reweighing
    for training a new model. `influence` and `correction` say of each row how the gap moves with people like it.
    All of them are about single people, so nothing is computed before they are called.

    Parameters
    ----------
    attribute, label, reference : str
        The attribute, the group's label and the reference's.
    path : Path
        The descent.
    design : Design
        How features are coded.
    outcome, member : Learned or None
        Nuisance models.
    surrogate : Learned, Cut or None
        Learned from the scores when there was no model.
    scorer : callable or None
        The model.
    log_prior : float
        Log of the ratio of the reference's to the group's size.
    at : Centre
        The means that the influence function is centred at.
    scale : float
        Standard deviation of the influence over the audited group, with the gap's sign.
    attainable : Attainable or None
        How close any weights can bring the group to the reference.
    """

    attribute: str
    label: str
    reference: str
    path: Path
    design: Design
    outcome: Learned | None
    member: Learned | None
    surrogate: Learned | Cut | None
    scorer: Scorer | None
    log_prior: float
    at: Centre
    scale: float
    attainable: Attainable | None

    def __call__(self, features: Any, *, score: ArrayLike | None = None) -> FloatArray:
        """Return the weight of rows of the group.

        Parameters
        ----------
        features : mapping, data frame or AuditData
            Columns by name.
        score : array_like, optional
            The audited model's predictions for these rows; by default the model is asked, or the
            surrogate that was learned from the audited scores.

        Returns
        -------
        ndarray, shape (rows,)
        """
        return self.path.multiplier(*self._predicted(features, score))

    def influence(self, features: Any, *, score: ArrayLike | None = None) -> FloatArray:
        """Return psi(x) of rows of the group: how the signed gap changes as the group gets more people like each.

        Adding a small share of people like x changes the gap, group minus reference, by that share times psi(x).
        [wang2019] eq. (8) to (12); for a combination of measures the combination of their influences.

        Parameters
        ----------
        features, score
            As in calling.

        Returns
        -------
        ndarray, shape (rows,)
            Mean 0 over the audited group, but for the models: the means come from cross-fitted outcome models, and a
            row's own value from their average, which knows new rows too.

        Examples
        --------
        >>> import numpy as np
        >>> from evenhand import AuditData, audit_proxy
        >>> x, group = np.repeat([0.0, 1.0], 200), np.tile(["a", "a", "b", "a"], 100)
        >>> group[250:] = "b"
        >>> p = 0.2 + 0.4 * x
        >>> data = AuditData.from_arrays(score=p, groups={"g": group}, features={"x": x})
        >>> weights = audit_proxy(data, measure="sp", reference="a").weights["g=b"]
        >>> weights.influence({"x": [0.0, 1.0]}, score=[0.2, 0.6]).round(3).tolist()
        [-0.306, 0.094]
        """
        return psi(self.at, *self._predicted(features, score))

    def correction(self, features: Any, *, score: ArrayLike | None = None) -> FloatArray:
        """Return phi(x) of rows of the group: the change of the group's distribution that lowers the gap fastest.

        [wang2019] eq. (6) and (7): minus the influence over its standard deviation. Print lowers the signed gap;
        this lowers its size, so that a negative gap turns the sign.

        Parameters
        ----------
        features, score
            As in calling.

        Returns
        -------
        ndarray, shape (rows,)
            Mean 0 and standard deviation 1 over the audited group, with the same reserve; NaN where nobody has any
            influence.
        """
        values = self.influence(features, score=score)
        return -values / self.scale if self.scale else np.full_like(values, np.nan)

    def _predicted(self, features: Any, score: ArrayLike | None) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return prediction, outcome probability and log ratio of the two densities for rows of the group."""
        columns = self._columns(features)
        X = self.design.encode(columns)
        if score is not None:
            h = np.asarray(score, dtype=np.float64)
        elif self.scorer is not None:
            h = self.scorer(columns)
        elif self.surrogate is not None:
            h = self.surrogate.whole(X)
        else:
            raise UsageError("These weights have no model to ask. Pass the predictions as `score=`.")
        if h.shape != (len(X),):
            raise DataError(f"`score=` must hold one number per row; got shape {h.shape} for {len(X)} rows.")
        eta = np.zeros(len(X)) if self.outcome is None else self.outcome.whole(X)
        ratio = None
        if self.member is not None:
            p = np.clip(self.member.whole(X), 1e-12, 1 - 1e-12)
            ratio = log_odds(p) + self.log_prior
        return h, eta, ratio

    def for_data(self, data: AuditData) -> FloatArray:
        """Return one weight per record of a data set: c(x) for the group, 1 for everybody else."""
        for attribute in data.attributes:
            if attribute.name == self.attribute and self.label in attribute.labels:
                inside = attribute.codes == attribute.labels.index(self.label)
                out = np.ones(len(inside))
                columns = {k: np.asarray(v)[inside] for k, v in data.features.items()}
                out[inside] = self(columns)
                return out
        raise DataError(f"The data have no group `{self.attribute}={self.label}`.")

    def resample(
        self, features: Any, size: int, *, score: ArrayLike | None = None, rng: RngLike = 0
    ) -> NDArray[np.int64]:
        """Draw row numbers with these weights, with replacement.

        Parameters
        ----------
        features, score
            As in calling.
        size : int
            Rows drawn.
        rng : int, Generator or None
            Seed.

        Returns
        -------
        ndarray of int, shape (size,)
        """
        w = self(features, score=score)
        generator = stream(seed_of(rng), "proxy/resample")
        return generator.choice(len(w), size=size, p=w / w.sum()).astype(np.int64)

    def _columns(self, features: Any) -> Mapping[str, NDArray[Any]]:
        if isinstance(features, AuditData):
            features = features.features
        needed = [c.name for c in self.design.columns]
        names = list(features.keys()) if isinstance(features, Mapping) else list(getattr(features, "columns", []))
        missing = [n for n in needed if n not in names]
        if missing:
            raise DataError(f"Features {', '.join(f'`{m}`' for m in missing)} are missing. Needed: {needed}.")
        return {str(n): np.asarray(features[n]) for n in names}


def find_weights(
    pair: Pair, fits: Fits, setting: ProxySetting, scorer: Scorer | None, names: tuple[str, str, str]
) -> CounterfactualWeights:
    """Run the descent: influence on all folds but the first, progress judged on the first.

    Parameters
    ----------
    pair, fits
        The sample, and what was learned on it.
    setting : ProxySetting
        What is measured, how long the steps are and when to stop.
    scorer : callable or None
        The model.
    names : tuple of str
        Attribute, the group's label and the reference's.

    Returns
    -------
    CounterfactualWeights
    """
    form = setting.form
    pace = Pace(step=setting.step, max_steps=setting.max_steps, tolerance=setting.tolerance, patience=setting.patience)
    held, whole = pair.fold == 0, sample_of(pair, fits, form)
    at = centre(form, whole)
    influence = psi(at, whole.h, whole.eta, whole.log_ratio)
    deviation = float(np.sqrt(whole.weight @ influence**2 / whole.weight.sum()))
    path = descend(form, sample_of(pair, fits, form, ~held), sample_of(pair, fits, form, held), pace)
    return CounterfactualWeights(
        attribute=names[0],
        label=names[1],
        reference=names[2],
        path=path,
        design=pair.design,
        outcome=fits.sources.eta,
        member=fits.sources.member,
        surrogate=fits.sources.h if isinstance(fits.sources.h, Learned | Cut) else None,
        scorer=scorer,
        log_prior=fits.sources.log_prior,
        at=at,
        scale=float(np.copysign(deviation, value(form, whole))),
        attainable=attainable(form, whole),
    )


def describe(
    pair: Pair, fits: Fits, weights: CounterfactualWeights, features: Mapping[str, NDArray[Any]]
) -> Counterfactual:
    """Say what the counterfactual population looks like. [wang2019] table 2.

    Parameters
    ----------
    pair, fits : Pair, Fits
        The sample and what was learned on it.
    weights : CounterfactualWeights
        What the descent ended with.
    features : mapping
        Raw columns of all rows.

    Returns
    -------
    Counterfactual
    """
    g, path, least = pair.inside, weights.path, weights.attainable
    weight = pair.weight
    ratio = None if fits.log_ratio is None else fits.log_ratio[g]
    c = path.multiplier(pair.h[g], fits.eta[g], ratio)
    moved = weight[g] * c
    rows = []
    for column in pair.design.columns:
        raw = np.asarray(features[column.name])[pair.origin]
        if column.kind == "category":
            coded = column.encode(raw)
            first = 1 - coded.sum(axis=1, keepdims=True)
            series = list(zip(column.categories, np.concatenate([first, coded], axis=1).T, strict=True))
        else:
            series = [("", raw.astype(np.float64))]
        for label, values in series:
            seen = ~np.isnan(values)
            rows.append(
                CounterfactualMean(
                    feature=column.name,
                    level=label,
                    group=_mean(values[g & seen], weight[g & seen]),
                    counterfactual=_mean(values[g & seen], moved[seen[g]]),
                    reference=_mean(values[~g & seen], weight[~g & seen]),
                )
            )
    effective = float(moved.sum() ** 2 / (moved**2 / np.maximum(pair.count[g], 1)).sum())
    return Counterfactual(
        means=tuple(rows),
        path=GapPath(
            gap=tuple(path.values),
            held_out=tuple(path.held_out),
            effective_rows=tuple(path.effective),
            steps=tuple(s.size for s in path.steps),
        ),
        effective_rows=effective,
        rows=int(pair.count[g].sum()),
        stopped=path.stopped,
        attainable=None if least is None else LeastGap(**asdict(least)),
    )


def _mean(values: FloatArray, weight: FloatArray) -> float:
    total = float(weight.sum())
    return float(weight @ values / total) if total > 0 else float("nan")
