"""ECD-Fair: search the learner's own settings for the smallest worst-case discrimination at the accuracy it has.

The learner's hyperparameters are searched by evolution: a setting is taken from the best so far, one or more of its
hyperparameters are drawn anew, the learner is fitted, and its accuracy and its extreme counterfactual discrimination
(ECD) are measured on rows it has not seen. Among the settings whose accuracy is at most `tolerance` below that of the
learner as it was given, the one with the smallest ECD is fitted to all rows. Groups are only measured with, never
trained on.

ECD is what the tail audit means by it: the change of score that one decision in `horizon` exceeds when members of a
group are recorded as the other, of one group less that of the other; its absolute value here, and the largest of all
pairs of groups. Within the rows it is counted, beyond them fitted.

Source: V. Monjezi and others, "Fairness testing through extreme value theory", ICSE 2025, in the manner of Parfait-ML:
S. Tizpaz-Niari, A. Kumar, G. Tan, A. Trivedi, "Fairness-aware configuration of machine learning libraries", ICSE 2022.

Where it fails: the model must see the attribute as a feature; where no feature records it, there is nothing to search
and the learner stays as it is. The smallest of many measured ECDs is smaller than its true value: measure it again on
other rows. A small difference is not a small discrimination, since both groups may be treated equally badly.
Nothing is promised about mean differences.
"""

from __future__ import annotations

import json
import math
import time
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from evenhand.errors import UsageError
from evenhand.files import write_atomic
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.counterfactual_rows import CounterfactualRows, recording_columns
from evenhand.mitigation.estimator import About, Mitigator, Training, default_learner, fit_learner
from evenhand.mitigation.front import split_learner
from evenhand.mitigation.held_out import held_out
from evenhand.mitigation.search_spaces import drawn, plain, space_of

PARENTS = 10  # settings with the smallest ECD from which the next are made
_DRAWS = 100  # attempts to make a setting that was not tried before


class ECDFair(Mitigator):
    """Choose the learner's hyperparameters for the smallest extreme counterfactual discrimination.

    Parameters
    ----------
    estimator : estimator, optional
        Learner; logistic regression by default. In a pipeline the last step is searched.
    attribute : str, int or list, optional
        Column or columns of `X` that record the group (positions for an array). By default the first column with one
        value for each group is taken; where there is none, the learner is fitted as it is and `reason_` says so.
    space : mapping, optional
        Hyperparameters to lists of values or scipy distributions; known for common learners.
    tolerance : float
        How much accuracy may be lost against the learner as it was given, on the validation rows.
    trials : int
        Settings tried, the given one among them.
    seconds : float, optional
        Stop after the trial that passes this time. What is found then depends on the machine.
    validation : float
        Share of the rows on which settings are measured.
    horizon : float, optional
        Decisions of which one exceeds the level; by default what the validation rows of the smaller group reach.
    favourable : {"high", "low"}
        Whether a high or a low score is good for a person.
    checkpoint : path, optional
        JSON file of the trials, written after each; a search that finds its own file goes on from there.
    random_state : int
        Seed of the split, of the search, and of every part of the learner without a seed of its own.

    Attributes
    ----------
    settings_ : dict
        The chosen hyperparameters; empty for the learner as it was given.
    trials_ : list of dict
        All that was tried: `settings`, `accuracy`, `ecd` (None where it cannot be computed) and `problem`.
    horizon_ : float
        See `horizon`.
    reason_ : str
        Why nothing was searched; else empty.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=600)
    >>> X = np.column_stack([rng.normal(size=600), sex])
    >>> y = (X[:, 0] + 0.5 * sex + rng.normal(size=600) > 0).astype(int)
    >>> method = ECDFair(trials=5, attribute=1).fit(X, y, sensitive_features=sex)
    >>> tried = [t["ecd"] for t in method.trials_]
    >>> len(tried), min(tried) <= tried[0]
    (5, True)
    """

    about = About(
        stage="in",
        needs="the group as a feature; a learner with hyperparameters",
        changes="the learner's hyperparameters; the worst counterfactual changes of score become more alike",
        cost="one fit for each trial (20 by default) on part of the rows, and one on all",
        grid=({"trials": 12}, {"trials": 12, "tolerance": 0.03}),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        attribute: str | int | Sequence[str | int] | None = None,
        space: Any = None,
        tolerance: float = 0.01,
        trials: int = 20,
        seconds: float | None = None,
        validation: float = 0.3,
        horizon: float | None = None,
        favourable: str = "high",
        checkpoint: str | Path | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.attribute = attribute
        self.space = space
        self.tolerance = tolerance
        self.trials = trials
        self.seconds = seconds
        self.validation = validation
        self.horizon = horizon
        self.favourable = favourable
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        self._check()
        seed = seed_of(self.random_state)
        learner = _seeded(default_learner(rows.X) if self.estimator is None else clone(self.estimator), seed)
        space = space_of(learner, self.space)
        columns = recording_columns(rows, self.attribute)
        self.settings_: dict[str, Any] = {}
        self.trials_: list[dict[str, Any]] = []
        self.reason_ = ""
        if not columns:
            self.horizon_ = math.nan
            self.reason_ = (
                "No column of `X` records the group. Recording a person as another group then changes no score, so "
                "that ECD is 0 for every setting; the learner was fitted as it is."
            )
        else:
            kept = held_out(rows, self.validation, stream(seed, "ecd_fair/split"))
            search = _Search(self, learner, space, rows.take(~kept))
            self.trials_ = search.run(rows.take(kept & (rows.weights > 0)), columns, seed)
            self.horizon_ = search.tail.horizon
            self.settings_ = best_trial(self.trials_, self.tolerance)["settings"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.decides_as_ = fit_learner(learner.set_params(**self.settings_), rows)

    def _check(self) -> None:
        """Refuse settings that mean nothing."""
        if not self.trials >= 1:
            raise UsageError(f"`trials` is {self.trials!r}; at least 1 is needed.")
        if not 0 < self.validation < 1:
            raise UsageError(f"`validation` is {self.validation!r}; it is a share of the rows, between 0 and 1.")
        if self.horizon is not None and not self.horizon > 1:
            raise UsageError(f"`horizon` is {self.horizon!r}; it is a number of decisions, more than 1.")
        if self.favourable not in ("high", "low"):
            raise UsageError(f"`favourable` is {self.favourable!r}; allowed are `high` and `low`.")


def best_trial(trials: list[dict[str, Any]], tolerance: float) -> dict[str, Any]:
    """Return the trial with the smallest ECD among those whose accuracy is at most so much below the first one's.

    Parameters
    ----------
    trials : list of dict
        The first is the learner as it was given.
    tolerance : float
        Accuracy that may be lost.

    Returns
    -------
    dict
        The first where no ECD can be computed.

    Examples
    --------
    >>> best_trial([{"accuracy": 0.9, "ecd": 0.2}, {"accuracy": 0.8, "ecd": 0.0}], 0.01)["ecd"]
    0.2
    """
    return (_allowed(trials, tolerance) or trials)[0]


def _allowed(trials: list[dict[str, Any]], tolerance: float) -> list[dict[str, Any]]:
    """Return the trials that are accurate enough, by growing ECD, more accurate ones first among equals."""
    least = trials[0]["accuracy"] - tolerance - 1e-12
    enough = [t for t in trials if t["ecd"] is not None and t["accuracy"] >= least]
    return sorted(enough, key=lambda t: (t["ecd"], -t["accuracy"]))


class _Search:
    """Settings made one after another, each measured once and kept in the checkpoint."""

    def __init__(self, asked: ECDFair, learner: Any, space: dict[str, Any], rows: Training) -> None:
        self.asked, self.learner, self.space = asked, learner, space
        # The steps before the last are fitted once, unless they are searched too.
        prefix = f"{learner.steps[-1][0]}__" if isinstance(learner, Pipeline) else ""
        whole = not all(name.startswith(prefix) for name in space)
        front, self.last, self.rows = ([], learner, rows) if whole else split_learner(learner, rows, numbers=False)
        self.prefix = "" if whole else prefix
        self.front = Pipeline(front) if front else None

    def run(self, rows: Training, columns: list[str | int], seed: int) -> list[dict[str, Any]]:
        """Return the trials on these rows: those of the checkpoint, and new ones until the budget is spent."""
        began = time.monotonic()
        self.tail = CounterfactualRows(
            rows,
            columns,
            horizon=self.asked.horizon,
            favourable=self.asked.favourable,
            seed=seed,
            front=self.front,
        )
        place = None if self.asked.checkpoint is None else Path(self.asked.checkpoint)
        what = self._identity(seed)
        trials = [] if place is None else _stored(place, what)
        trials = trials[: self.asked.trials]
        while len(trials) < self.asked.trials:
            if trials and self.asked.seconds is not None and time.monotonic() - began > self.asked.seconds:
                break
            # Each trial has a stream of its own, so that a resumed search goes the way it would have gone.
            settings = self._next(trials, stream(seed, "ecd_fair/trial", len(trials)))
            if settings is None:
                break
            trials.append(self._measured(settings))
            if place is not None:
                write_atomic(place, json.dumps({"search": what, "trials": trials}, indent=1) + "\n")
        return trials

    def _identity(self, seed: int) -> dict[str, Any]:
        """Return what a checkpoint must agree with."""
        labels = np.concatenate([self.rows.y, self.rows.group]).astype(np.int64)
        return {
            "learner": repr(self.learner),
            "parameters": sorted(self.space),
            "seed": seed,
            "tolerance": self.asked.tolerance,
            "horizon": self.tail.horizon,
            "favourable": self.asked.favourable,
            "rows": int(self.rows.y.size),
            "labels": zlib.crc32(labels.tobytes()),
        }

    def _next(self, trials: list[dict[str, Any]], rng: np.random.Generator) -> dict[str, Any] | None:
        """Return settings that were not tried: first none, then changed ones of the best; None when all were tried."""
        if not trials:
            return {}
        tried = [t["settings"] for t in trials]
        start = {n: plain(v) for n, v in self.learner.get_params().items() if n in self.space}
        parents = [start | t["settings"] for t in _allowed(trials, self.asked.tolerance)[:PARENTS]] or [start]
        names = list(self.space)
        for _ in range(_DRAWS):
            child = dict(parents[int(rng.integers(len(parents)))])
            changed = min(int(rng.geometric(0.5)), len(names))
            for name in rng.permutation(len(names))[:changed].tolist():
                child[names[name]] = drawn(self.space[names[name]], rng, child[names[name]])
            if child != start and child not in tried:
                return child
        return None

    def _measured(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Fit the learner with these settings and measure it on the validation rows."""
        record: dict[str, Any] = {"settings": settings, "accuracy": 0.0, "ecd": None, "problem": ""}
        try:
            with warnings.catch_warnings():
                # A setting that does not converge is judged by what it does, like any other.
                warnings.simplefilter("ignore", ConvergenceWarning)
                own = {name.removeprefix(self.prefix): value for name, value in settings.items()}
                fitted = fit_learner(clone(self.last).set_params(**own), self.rows)
        except UsageError:
            raise
        except ValueError as error:
            if not settings:
                raise
            return record | {"problem": str(error)[:200]}
        ecd = self.tail.largest_ecd(fitted)
        return record | {"accuracy": self.tail.accuracy(fitted), "ecd": None if math.isnan(ecd) else ecd}


def _seeded(learner: Any, seed: int) -> Any:
    """Give every part of a learner that draws without a seed one."""
    free = [n for n, v in learner.get_params().items() if n.split("__")[-1] == "random_state" and v is None]
    return learner.set_params(**dict.fromkeys(free, seed % 2**32))


def _stored(place: Path, what: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the trials of a checkpoint; it must be of the same search."""
    if not place.exists():
        return []
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
        same, trials = kept["search"] == json.loads(json.dumps(what)), list(kept["trials"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"The checkpoint {place} cannot be read as one. Remove it or name another file.") from error
    if not same:
        differ = sorted(k for k in what if kept["search"].get(k) != json.loads(json.dumps(what[k])))
        raise UsageError(
            f"The checkpoint {place} belongs to another search: {', '.join(differ)} differ. Remove it or name another "
            "file."
        )
    return trials
