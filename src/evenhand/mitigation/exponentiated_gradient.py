"""Exponentiated gradient: the best mixture of learners whose rates differ between groups by no more than a bound.

Learning under a constraint on rates becomes a game: a learner is fitted again and again on rows whose labels and
weights say how much each constraint is violated so far, and the answer is a mixture of those learners. (Agarwal,
Beygelzimer, Dudik, Langford and Wallach, "A reductions approach to fair classification", ICML 2018; the game is played
by fairlearn.)

Where it fails: the bound holds for the randomised mixture on the rows of training. On other people the difference is
larger, the more so for small groups and learners that fit closely (fairlearn's users report .021 in training against
.083 in test). A decision without the draw keeps the bound only by luck. Drawn decisions treat equal people unequally.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from evenhand.arrays import IntArray
from evenhand.errors import MissingDependencyError, UsageError
from evenhand.kernels.shared.seeds import seed_of, stream
from evenhand.mitigation.estimator import About, Mitigator, Training, require_weights
from evenhand.mitigation.front import join, split_learner
from evenhand.mitigation.mixture import FORMS, Mixture

#: Each constraint by its word, and what fairlearn calls it.
CONSTRAINTS = {
    "demographic_parity": "DemographicParity",
    "equalized_odds": "EqualizedOdds",
    "tpr_parity": "TruePositiveRateParity",
}
#: Rows are repeated by their weights up to this many times their number; beyond it they are drawn.
_MOST_COPIES = 4


class ExponentiatedGradient(Mitigator):
    """The most accurate mixture of learners whose rates differ from the overall rate by at most `eps`.

    Parameters
    ----------
    estimator : estimator, optional
        A learner whose `fit` takes weights, alone or as the last step of a pipeline; a logistic regression by default.
        The steps before it are fitted once, on the true labels.
    constraint : {"equalized_odds", "demographic_parity", "tpr_parity"}
        What shall be alike: the rates of decision 1 among true ones and among true zeros, the rate of decision 1, or
        the rate of decision 1 among true ones.
    eps : float
        How far a group's rate may be from the rate of all, in training.
    max_iter : int
        Rounds of the game; each fits the learner a few times.
    form : {"randomised", "decision", "probability"}
        How the mixture decides, see `Mixture`. Only the randomised form keeps the bound.
    random_state : int
        Seed of the draws.

    Attributes
    ----------
    decides_as_ : Mixture, or a pipeline that ends with it
        The fitted mixture.
    gap_ : float
        How far the game was from its solution when it ended, in units of the error rate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 400)
    >>> X = rng.normal(size=(400, 2)) + (group == "a")[:, None]
    >>> y = (X[:, 0] + rng.normal(size=400) > 0.5).astype(int)
    >>> model = ExponentiatedGradient(constraint="demographic_parity", eps=0.02)
    >>> rate = model.fit(X, y, sensitive_features=group).predict_proba(X)[:, 1]
    >>> bool(abs(rate[group == "a"].mean() - rate[group == "b"].mean()) < 0.06)
    True
    """

    about: ClassVar[About] = About(
        stage="in",
        needs="a learner that takes weights; the package fairlearn",
        changes="labels and weights of many fits, which become a mixture",
        cost="30 to 150 fits",
        grid=({"eps": 0.05}, {"eps": 0.01}),
    )

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: str = "equalized_odds",
        eps: float = 0.01,
        max_iter: int = 50,
        form: str = "randomised",
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.eps = eps
        self.max_iter = max_iter
        self.form = form
        self.random_state = random_state

    def _fit(self, rows: Training) -> None:
        if self.constraint not in CONSTRAINTS:
            allowed = ", ".join(f"`{word}`" for word in CONSTRAINTS)
            raise UsageError(f"`constraint` is `{self.constraint}`; allowed: {allowed}.")
        if self.form not in FORMS:
            raise UsageError(f"`form` is `{self.form}`; allowed: {', '.join(f'`{word}`' for word in FORMS)}.")
        if not 0 < self.eps < 1:
            raise UsageError(f"`eps` must lie between 0 and 1; got {self.eps}.")
        reductions = _reductions()
        front, last, behind = split_learner(self.estimator, rows, numbers=False)
        require_weights(last)
        if rows.weight is not None:
            behind = behind.take(_copies(rows, seed_of(self.random_state)))
        moment = getattr(reductions, CONSTRAINTS[self.constraint])(difference_bound=self.eps)
        # In fairlearn `eps` is no longer the allowed violation but bounds the multipliers; both are set alike, as in
        # the paper.
        game = reductions.ExponentiatedGradient(last, moment, eps=self.eps, max_iter=self.max_iter)
        with warnings.catch_warnings():
            for kind in (DeprecationWarning, FutureWarning):  # about fairlearn's own use of pandas
                warnings.filterwarnings("ignore", category=kind, module="fairlearn")
            game.fit(behind.X, behind.y, sensitive_features=behind.group)
        self.gap_ = float(game.best_gap_)
        weights = game.weights_.sort_index().to_numpy(dtype=np.float64)
        used = np.flatnonzero(weights > 0)
        mixture = Mixture(
            [game.predictors_[k] for k in used], weights[used], form=self.form, random_state=self.random_state
        )
        self.decides_as_ = join(front, "mixture", mixture)


def _reductions() -> Any:
    """Import fairlearn's reductions, or say how to install them."""
    try:
        import fairlearn.reductions
    except ImportError as error:
        raise MissingDependencyError(
            "ExponentiatedGradient needs fairlearn. Install it with `pip install 'evenhand[mitigation]'`."
        ) from error
    return fairlearn.reductions


def _copies(rows: Training, seed: int) -> IntArray:
    """Return rows repeated by their weights: fairlearn's game knows no weights.

    Whole weights give so many copies. Other weights are scaled to a mean of one and each row is taken the whole number
    below or above its weight times, so that the expected number of copies is the weight.
    """
    weight = rows.weights
    whole = bool((weight == np.rint(weight)).all()) and weight.sum() <= _MOST_COPIES * weight.size
    if not whole:
        ends = np.cumsum(weight * (weight.size / weight.sum()))
        start = stream(seed, "exponentiated_gradient/copies").random()
        weight = np.diff(np.floor(np.append(0.0, ends) + start))
    return np.repeat(np.arange(weight.size), weight.astype(np.int64))
