"""`AuditedModel`: the one face in which every audit asks a model.

Scores point towards decision 1 as the data mean it. The model is asked in named columns and gets them as it was fitted
on them: a frame with its types, or a matrix. What decides, and from which score on, is settled here and nowhere else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.arrays import FloatArray
from evenhand.errors import DataError, EvenhandError, first_line
from evenhand.intake.parts import FeatureType
from evenhand.models.gradient import GradientModel
from evenhand.models.input_space import Columns, as_frame, own_values

Ask = Callable[[Any], Any]

_ROUNDING = 1e-9  # of a probability


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """What a model said about some rows."""

    columns: Columns  # the rows
    # The answers; None where it was not asked.
    score: FloatArray | None = None
    decision: FloatArray | None = None


class NotFiniteError(DataError):
    """A model answered with something that is not a finite number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditedModel:
    """A model as the audits ask it.

    Parameters
    ----------
    name : str
        What reports call it.
    source : object
        The model that is asked.
    outer : object
        What the user gave: the same model, or a mitigator that decides as it.
    ask : callable
        From what the model takes to one score per row; larger is closer to decision 1.
    choose : callable or None
        From what the model takes to its own decisions, 0.0 or 1.0; None where the threshold decides.
    halved : bool
        Whether its own decision is 1 where the probability is above one half, but for rounding close to it.
    probability : bool
        Whether the score is a probability.
    threshold : float or None
        Decision 1 from this score on; None when nobody said where.
    inputs : tuple of str or None
        Columns the model says it was fitted on; None when it does not say.
    framed : bool
        Whether it takes a data frame; otherwise a matrix.
    types : mapping of str to FeatureType
        How columns are kept in that frame.
    classes : tuple or None
        Its classes, in its own order.
    one : int or None
        The place of decision 1 among two classes.
    network : GradientModel or None
        Outputs with gradients, where the model is a network.
    problem : str
        Why it has no score towards decision 1; empty when it has one.
    notes : tuple of str
        What was decided on the user's behalf.
    seen : Answers or None
        Its answers about the audited rows, so that it is not asked about all of them twice.
    latest : list of Answers
        Its answers about the batch of rows that is at hand, at most one.
    """

    name: str
    source: Any
    outer: Any
    ask: Ask
    choose: Ask | None = None
    halved: bool = False
    probability: bool = False
    threshold: float | None = None
    inputs: tuple[str, ...] | None = None
    framed: bool = False
    types: Mapping[str, FeatureType] = field(default_factory=dict)
    classes: tuple[Any, ...] | None = None
    one: int | None = None
    network: GradientModel | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    seen: Answers | None = None
    latest: list[Answers] = field(default_factory=list)

    def encode(self, columns: Columns) -> Any:
        """Return columns as the model takes them."""
        if self.framed:
            return self.frame(columns)
        own = [own_values(np.asarray(c), self.types.get(n)) for n, c in columns.items()]
        try:
            # One column after the other in memory: built, and changed in one column, at the speed of copying.
            return np.array([np.asarray(c, dtype=np.float64) for c in own]).T
        except ValueError as error:
            raise DataError(
                f"The model `{self.name}` takes numbers and a feature column holds text. Encode it, or pass a pipeline "
                "that does."
            ) from error

    def frame(self, columns: Columns) -> Any:
        """Return columns as the data frame the model was fitted on."""
        return as_frame({n: columns[n] for n in (self.inputs or columns)}, self.types)

    def score(self, columns: Columns) -> FloatArray:
        """Return one score per row, towards decision 1."""
        for known in self._known(columns):
            if known.score is not None:
                return known.score
        return self._answer(self.ask, self.encode(columns), columns)

    def decide(self, columns: Columns) -> FloatArray:
        """Return decisions, 0.0 or 1.0."""
        for known in self._known(columns):
            if known.decision is not None:
                return known.decision
        if self.choose is None:
            return (self.score(columns) >= self.cut()).astype(np.float64)
        if self.halved:
            return self._above_half(self.choose, columns, self.score(columns))
        return self._answer(self.choose, self.encode(columns), columns)

    def remember(self, columns: Columns) -> Answers:
        """Ask about a batch of rows, and keep the answers until the next one is at hand."""
        self.latest.clear()
        score = self.score(columns)
        self.latest[:] = [Answers(columns=columns, score=score)]
        decision = None if self.threshold is None else self.decide(columns)
        self.latest[:] = [Answers(columns=columns, score=score, decision=decision)]
        return self.latest[0]

    def _above_half(self, choose: Ask, columns: Columns, score: FloatArray) -> FloatArray:
        """Return its own decisions from its scores, and ask it about the rows where rounding could matter only."""
        decision = (score > 0.5).astype(np.float64)
        near = np.flatnonzero(np.abs(score - 0.5) < _ROUNDING)
        if near.size:
            some = {name: np.asarray(column)[near] for name, column in columns.items()}
            decision[near] = self._answer(choose, self.encode(some), some)
        return decision

    def _known(self, columns: Columns) -> list[Answers]:
        return [known for known in (self.seen, *self.latest) if known is not None and known.columns is columns]

    def cut(self) -> float:
        """Return the score from which on the decision is 1, or say that nobody said it."""
        if self.problem:
            raise DataError(self.problem)
        if self.threshold is None:
            raise DataError(
                f"The model `{self.name}` gives numbers that are no probabilities, and from which on the decision is 1 "
                "is not known. Say it with `threshold=`, name a column of decisions, or give a classifier."
            )
        return self.threshold

    def change(self, columns: Columns, flipped: Columns) -> FloatArray:
        """Return the score of the flipped rows minus that of the rows as they are."""
        given = self.encode(columns)
        if not isinstance(given, np.ndarray):
            return self.score(flipped) - self._answer(self.ask, given, columns)
        # Copied: a model may return a part of what it was given, which changes below.
        as_is = self._answer(self.ask, given, columns).copy()
        for j, name in enumerate(columns):
            if flipped[name] is not columns[name]:
                given[:, j] = own_values(np.asarray(flipped[name]), self.types.get(name))
        return self._answer(self.ask, given, columns) - as_is

    def own_cut(self) -> float | None:
        """Return the score from which on the decision is 1, or None where the model decides by its own rule."""
        return None if self.choose is not None else self.cut()

    def class_of_one(self) -> Any:
        """Return the class that is decision 1, or None when the model does not name its classes."""
        return None if self.classes is None or self.one is None else self.classes[self.one]

    def _answer(self, ask: Ask, given: Any, columns: Columns) -> FloatArray:
        if self.problem:
            raise DataError(self.problem)
        n = len(next(iter(columns.values())))
        try:
            values = np.asarray(quietly(ask, given), dtype=float)
        except EvenhandError:
            raise
        except (Exception, SystemExit) as error:  # a stranger's model may raise anything
            shown = ", ".join(list(columns)[:8]) + (", …" if len(columns) > 8 else "")
            text = next((name for name, c in columns.items() if np.asarray(c).dtype.kind not in "biuf"), None)
            hint = (
                ""
                if text is None
                else f" Feature `{text}` holds text: does the model take it? A pipeline can encode it."
            )
            raise DataError(
                f"Model `{self.name}` raised {type(error).__name__} when asked about {n:,} rows of columns {shown}: "
                f"{first_line(error)}. It must take the audit's features, in their order, and give one score per row."
                f"{hint}"
            ) from error
        values = one_per_row(values, n, self.name)
        bad = int((~np.isfinite(values)).sum())
        if bad:
            raise NotFiniteError(
                f"Model `{self.name}` gave {bad:,} of {n:,} scores that are not finite numbers. Look for missing "
                "values in the features, and fill or drop those rows before the audit."
            )
        if self.probability and not in_unit(values):
            raise DataError(
                f"Model `{self.name}` gave scores from {values.min():g} to {values.max():g} where it gave "
                "probabilities before. Return probabilities for all rows, or log-odds for all rows with a `threshold=`."
            )
        return values


def quietly(ask: Ask, given: Any) -> Any:
    """Ask an estimator; one fitted on a frame would warn about plain arrays, whose columns are matched by position."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return ask(given)


def logits_of(network: GradientModel | None, one: int | None, X: FloatArray) -> FloatArray:
    """Return a network's log-odds of decision 1."""
    assert network is not None
    out = network.network.outputs(X)
    if out.shape[1] > 2:
        raise DataError(f"The network has {out.shape[1]} outputs; audits of decisions need 1 or 2.")
    towards_second = out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0]
    return towards_second if one == 1 else -towards_second


def one_per_row(values: Any, n: int, name: str) -> FloatArray:
    """Return a model's answers as one score per row, of two columns the second, or say how many there are."""
    out = np.asarray(values, dtype=float)
    out = (out[:, 1] if out.ndim == 2 and out.shape[1] == 2 else out).reshape(-1)
    if out.shape != (n,):
        raise DataError(f"Model `{name}` gave {out.size} scores for {n} rows; one per row is needed.")
    return out


def in_unit(values: FloatArray) -> bool:
    """Say whether all values lie between 0 and 1, but for rounding."""
    return bool(np.all((values >= -1e-9) & (values <= 1 + 1e-9)))
