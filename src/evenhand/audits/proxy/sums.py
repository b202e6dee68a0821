"""What is added up over all rows of a group and its reference, where the rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.arrays import BoolArray, FloatArray, IntArray
from evenhand.audits.proxy.features import shift_blocks
from evenhand.audits.proxy.fits import Along, Fits, Scorer, log_odds
from evenhand.audits.proxy.gap import GapMoments
from evenhand.audits.proxy.sample import Pair
from evenhand.audits.proxy.stated import words_of
from evenhand.intake import AuditData
from evenhand.kernels.influence.design import Block, Design
from evenhand.kernels.influence.functionals import Functional
from evenhand.kernels.influence.nuisance import Learned, LogisticFolds
from evenhand.kernels.influence.row_moments import Population, RowMoments
from evenhand.kernels.shared.row_hash import WordArray

# Rows coded at once: their columns stay in the cache, and memory does not grow with batches.
_CHUNK = 16384


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learnt:
    """What new rows of two groups need to be added up: how they are coded, and the probabilities learned elsewhere."""

    attribute: str
    code: int  # of the group
    base: int  # of its reference
    form: Functional
    design: Design
    blocks: tuple[Block, ...]  # whose shares are counted
    own: tuple[int, ...]  # matrix columns of the group itself
    outcome: Learned | None
    reference: Learned | None  # of the reference's outcome, where more than its mean enters
    member: Learned | None
    log_prior: float

    @classmethod
    def of(cls, pair: Pair, fits: Fits, form: Functional, place: tuple[str, int, int]) -> Learnt:
        """Keep of a pair and its fits what new rows need."""
        return cls(
            attribute=place[0],
            code=place[1],
            base=place[2],
            form=form,
            design=pair.design,
            blocks=shift_blocks(pair, form),
            own=tuple(pair.own_columns),
            outcome=fits.sources.eta,
            reference=fits.reference,
            member=fits.sources.member,
            log_prior=fits.sources.log_prior,
        )

    def moments(self, *, squares: bool) -> RowMoments:
        """Return sums of nothing yet."""
        products: tuple[tuple[int, int], ...] = ()
        coefficients = None
        if isinstance(self.outcome, LogisticFolds):
            products = self.outcome.products
            coefficients = 1 + self.design.width + len(products)
        return RowMoments(self.form, self.blocks, coefficients, products, squares=squares)


class PairSums:
    """Sums over new rows of a group and its reference: a monoid with `add` and `merge`.

    Parameters
    ----------
    learnt : Learnt
        How the rows are coded, and the fits that have not seen them.
    """

    def __init__(self, learnt: Learnt) -> None:
        self.learnt = learnt
        self.moments = learnt.moments(squares=True)
        self.gap = GapMoments(learnt.form)
        # (2,): rows of the group and of the reference with outcome 1, and with a value that the fits have not seen.
        self.outcome_1 = np.zeros(2, dtype=np.int64)
        self.strange = np.zeros(2, dtype=np.int64)

    def add(self, batch: AuditData, rows: IntArray, h: FloatArray) -> None:
        """Add some rows of a batch, given their predictions; those of one group together are added fastest."""
        for start in range(0, len(rows), _CHUNK):
            some = slice(start, start + _CHUNK)
            self._add(batch, rows[some], h[some])

    def _add(self, batch: AuditData, rows: IntArray, h: FloatArray) -> None:
        learnt, count = self.learnt, batch.count[rows]
        inside = batch.attribute(learnt.attribute).codes[rows] == learnt.code
        columns = {c.name: np.asarray(batch.features[c.name])[rows] for c in learnt.design.columns}
        X, unseen = learnt.design.encode_new(columns)
        y = np.full(len(rows), np.nan)
        if batch.outcome is not None and batch.outcome_kind == "binary":
            y = batch.outcome[rows]
        people = Population(
            X=X,
            inside=inside,
            count=count,
            unit=np.ones(len(rows)) if batch.weight is None else batch.weight[rows],
            h=h,
            eta=self._eta(X, y, inside),
        )
        self.moments.add(people, {b.name: unseen[b.name] for b in learnt.blocks if b.name in unseen})
        self.gap.add(people, y, self._log_ratio(X))
        strange = np.any([*unseen.values()], axis=0) if unseen else np.zeros(len(rows), dtype=bool)
        for k, side in enumerate((inside, ~inside)):
            self.outcome_1[k] += int(count[side & (y == 1)].sum())
            self.strange[k] += int(count[side & strange].sum())

    def merge(self, other: PairSums) -> None:
        """Add the sums of other rows."""
        self.moments.merge(other.moments)
        self.gap.merge(other.gap)
        self.outcome_1 += other.outcome_1
        self.strange += other.strange

    def _eta(self, X: FloatArray, y: FloatArray, inside: BoolArray) -> FloatArray:
        """Return the outcome's probability: the fit of all rows of the sample, which these rows are not in."""
        eta, learnt = np.zeros(len(X)), self.learnt
        if learnt.outcome is None:
            return eta
        for side, learned in ((inside, learnt.outcome), (~inside, learnt.reference)):
            # The outcome itself has the same mean as its probability, which is all that is asked of the reference.
            if learned is None:
                eta[side] = y[side]
            elif side.any():
                eta[side] = learned.whole(X if side.all() else X[side])
        return eta

    def _log_ratio(self, X: FloatArray) -> FloatArray | None:
        if self.learnt.member is None:
            return None
        X = X.copy()
        X[:, list(self.learnt.own)] = 0.0
        return log_odds(np.clip(self.learnt.member.whole(X), 1e-12, 1 - 1e-12)) + self.learnt.log_prior


def moments_of(learnt: Learnt, pair: Pair, fits: Fits, rest: PairSums | None) -> RowMoments:
    """Add up the rows at hand and those that were added up elsewhere."""
    sums = learnt.moments(squares=False)
    sums.add(replace(pair, eta=fits.eta))
    if rest is not None:
        sums.merge(rest.moments)
    return sums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictor:
    """Where predictions come from: a model that is asked, or a column of the data."""

    scorer: Scorer | None  # the model as a function of columns
    along: Along | None = None  # its predictions along whole columns, where there is a quicker way to them
    column: str = ""  # "score" or "decision", without a model or where it holds what the model said

    def of(self, data: AuditData) -> FloatArray:
        """Return the prediction for each row."""
        if self.column or self.scorer is None:
            return np.asarray(getattr(data, self.column))
        return self.scorer(data.features)


class RestSums:
    """Sums over the rows that are not at hand, for several pairs of groups at once: a monoid with `add` and `merge`.

    Parameters
    ----------
    learnt : sequence of Learnt
        One for each pair.
    limits : mapping of str to ndarray
        Where each group's sample ends; see `AtHand`.
    predictor : Predictor
        Where predictions come from.
    """

    def __init__(self, learnt: Sequence[Learnt], limits: Mapping[str, WordArray], predictor: Predictor) -> None:
        self.pairs = [PairSums(one) for one in learnt]
        self.limits = limits
        self.predictor = predictor

    def add(self, batch: AuditData) -> None:
        """Take the rows of one batch that are not in the sample."""
        words, h = words_of(batch), self.predictor.of(batch)
        for sums in self.pairs:
            codes, learnt = batch.attribute(sums.learnt.attribute).codes, sums.learnt
            left = words >= self.limits[learnt.attribute][codes]
            for code in (learnt.code, learnt.base):
                rows = np.flatnonzero(left & (codes == code))
                sums.add(batch, rows, h[rows])

    def merge(self, other: RestSums) -> None:
        """Take what others have taken."""
        for mine, theirs in zip(self.pairs, other.pairs, strict=True):
            mine.merge(theirs)
