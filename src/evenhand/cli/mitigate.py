"""``evenhand mitigate FILE``: repair a model, and certify the repair on people it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evenhand.cli.audit import check_folder
from evenhand.cli.output import keep, progress, write, write_page
from evenhand.cli.reading import data_options, listed, open_data, said_of_data
from evenhand.cli.wording import spoken
from evenhand.errors import MissingDependencyError, UsageError
from evenhand.report import compose
from evenhand.results import printable

_LEARNERS = ("logistic", "forest", "boosting", "network")


@click.command("mitigate")
@click.argument("file")
@data_options
@click.option("--learner", type=click.Choice(_LEARNERS), help="What is fitted, without --model.  [default: logistic]")
@click.option("--methods", help="Methods, separated by commas; see the docs.  [default: all]")
@click.option("--metric", default="fnr", show_default=True, help="What must be alike; several separated by commas.")
@click.option("--margin", default="0.05", show_default=True, help="How alike: 0.05, ratio:0.9 or four-fifths.")
@click.option(
    "--performance",
    type=click.Choice(["accuracy", "balanced_accuracy"]),
    default="accuracy",
    show_default=True,
    help="What the best model has most of.",
)
@click.option("--most-loss", type=float, default=0.05, show_default=True, help="Performance a repair may cost.")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Error rate of the certificate.")
@click.option("--parts", default="0.5,0.25,0.25", show_default=True, help="Shares to train, choose and certify on.")
@click.option("--no-audits", is_flag=True, help="Do not audit both models at the end.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("evenhand-mitigation"),
    show_default=True,
    help="Folder for the results.",
)
@click.option("--fail-on", type=click.Choice(["inconclusive"]), help="Exit code 3 when no model is certified.")
@click.option("--quiet", is_flag=True, help="No progress, no table.")
def mitigate_command(file: str, **words: Any) -> int:
    """Repair a model and certify the repair on people it has not seen."""
    check_folder(words["out"])
    try:
        from evenhand.repair import mitigate
        from evenhand.report.mitigation import compose_mitigation
    except ImportError as error:
        raise MissingDependencyError(
            f"Mitigation needs packages that are not installed ({error.name}): pip install evenhand[mitigation]."
        ) from error
    if words["model"] and words["learner"]:
        raise UsageError("Give `--model` or `--learner`, not both.")
    data, model = open_data([file], said_of_data(words), words)
    with progress(words["quiet"]) as tell:
        result = mitigate(
            data,
            model if model is not None else _learner(words["learner"] or "logistic", data.features, words["seed"]),
            methods=listed(words["methods"]) or None,
            metric=listed(words["metric"]),
            margin=words["margin"],
            performance=words["performance"],
            most_loss=words["most_loss"],
            alpha=words["alpha"],
            parts=_shares(words["parts"]),
            audits=not words["no_audits"],
            rng=words["seed"],
            progress=tell,
        )
    out = words["out"]
    result.save(out)
    for name, run in (("before", result.before), ("after", result.after)):
        if run is not None:
            keep(run, out / name)
            write(compose(run, title=f"Audit {name} the repair"), out / name)
    if not words["quiet"]:
        for line in (*str(result).splitlines(), "", *result.notes):
            click.echo(printable(spoken(line)))
    write_page(compose_mitigation(result), out, beside=("mitigation.json", "card.md"))
    return 3 if words["fail_on"] and result.model is None else 0


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in listed(text)]
    except ValueError:
        raise UsageError(f"`--parts {text}` is not understood. Write three numbers separated by commas.") from None


def _learner(word: str, features: Any, seed: int) -> Any:
    """Return an unfitted learner; None is the default, a logistic regression."""
    if word == "logistic":
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

    from evenhand.mitigation.estimator import to_numbers
    from evenhand.models.input_space import as_frame

    last: Any = {
        "forest": RandomForestClassifier(200, min_samples_leaf=5, random_state=seed),
        "boosting": HistGradientBoostingClassifier(random_state=seed),
        "network": MLPClassifier((50,), early_stopping=True, random_state=seed),
    }[word]
    return make_pipeline(to_numbers(as_frame({name: column[:5] for name, column in features.items()})), last)
