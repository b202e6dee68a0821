"""``evenhand demo``: real data, two trained models, all six audits, a report on each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np

from evenhand import datasets
from evenhand.audits.registry import AUDITS
from evenhand.cli.output import keep, progress, show, write
from evenhand.datasets.decided import ADULT_CATEGORIES, ADULT_NUMBERS
from evenhand.errors import MissingDependencyError
from evenhand.intake import AuditData
from evenhand.plan import Plan
from evenhand.report import compose
from evenhand.report.library import prepare
from evenhand.results import AuditRun
from evenhand.run import audit

# Both models see sex and race: what they make of them is what the audit is to find.
_CATEGORIES = (*ADULT_CATEGORIES, "sex", "race")


@click.command("demo")
@click.option("--out", type=click.Path(path_type=Path), default=Path("evenhand-report"), show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def demo_command(out: Path, seed: int, quiet: bool) -> None:
    """Train a logistic model and a network on the Adult census data and run all six audits on each."""
    prepare()
    # The network has a process of its own: on two cores the demo takes as long as one of the models.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        network = pool.submit(_audited, "network", seed)
        with progress(quiet) as tell:
            _tell("logistic model", _audited("logistic model", seed, tell), out, quiet)
            if tell is not None:
                tell("demo: waiting for the network")
            _tell("network", network.result(), out / "network", quiet)


def _tell(name: str, run: AuditRun, folder: Path, quiet: bool) -> None:
    keep(run, folder)
    page = compose(run, title=f"Adult census income: a {name}")
    if not quiet:
        click.echo(f"Adult census income, test rows: how does a {name} treat people?")
        show(run, page)
    write(page, folder)


def _audited(name: str, seed: int, tell: Callable[[str], None] | None = None) -> AuditRun:
    """Train a model, let it decide, and run all audits on it."""
    if tell is not None:
        tell(f"demo: training a {name} on Adult")
    data, model = _decided(name, seed)
    run = audit(data, model=model, plan=_plan(), rng=seed, progress=tell)
    return AuditRun.from_dict(run.to_dict())  # plain data, so that it can leave its process


def _plan() -> Plan:
    """Ask for fewer resamples and steps than by default: the demo takes well below a minute."""
    return Plan(
        audits=tuple(AUDITS),
        n_resamples=1999,
        group={"metrics": ["selection_rate", "fnr", "fpr", "auc"]},
        individual={"steps": 100},
        proxy={"attribute": "sex"},
        tail={"attribute": "sex"},
    )


def _decided(name: str, seed: int) -> tuple[AuditData, Any]:
    """Train a model on Adult's training rows and let it decide over the test rows."""
    try:
        import pandas as pd
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler
    except ImportError as error:
        raise MissingDependencyError(
            f"The demo trains models and needs `{error.name}`. Install it with `pip install 'evenhand[models,pandas]'`."
        ) from error
    table = pd.DataFrame(datasets.adult_table()).fillna("unknown")
    train = table["split"] == "train"
    inputs, outcome = table[[*ADULT_NUMBERS, *_CATEGORIES]], (table["income"] == ">50K").astype(int)
    encode = make_column_transformer(
        (StandardScaler(), list(ADULT_NUMBERS)),
        (OneHotEncoder(sparse_output=False), list(_CATEGORIES)),
    )
    network = MLPClassifier((32,), max_iter=12, random_state=seed)
    model = make_pipeline(encode, LogisticRegression(max_iter=1000) if name == "logistic model" else network)
    with warnings.catch_warnings(action="ignore"):  # a network stopped early is good enough to be audited
        model.fit(inputs[train], outcome[train])
    # Six decimals hide the last bits, which depend on the machine's linear algebra.
    score = model.predict_proba(inputs[~train])[:, 1].round(6)
    data = AuditData.from_arrays(
        outcome=outcome[~train],
        decision=(score >= 0.5).astype(np.float64),
        score=score,
        groups=table.loc[~train, ["sex", "race"]],
        features=inputs[~train],
    )
    return data, model
