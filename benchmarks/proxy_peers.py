"""Peers of the proxy audit: which features go with the group, and which move a model. Called by `peers.py`."""

from __future__ import annotations

import contextlib
import io
import tempfile
from typing import Any

import numpy as np
from group import seconds

import evenhand as eh


def people(rows: int, numbers: int) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return ten features, so many of them numbers of 41 values; three go with the group, two with the outcome."""
    rng = np.random.default_rng(0)
    group = (rng.random(rows) < 0.4).astype(np.int64)
    columns = {f"x{j}": (rng.normal(size=rows) + 0.3 * (j % 4 == 0) * group).round(1).clip(-2, 2) for j in range(10)}
    columns |= {f"x{j}": (columns[f"x{j}"] > 0.5).astype(float) for j in range(numbers, 10)}
    return columns, group, (rng.random(rows) < 1 / (1 + np.exp(-columns["x0"] - columns["x5"]))).astype(np.int64)


def proxies(peer: str, numbers: int) -> dict[str, Any]:
    """Ask which features go with the group; ours says which carry its gap, with intervals."""
    columns, group, decision = people(10_000, numbers)
    data = eh.AuditData.from_arrays(decision=decision, groups={"g": group}, features=columns)
    names = list(columns)

    def screen() -> object:
        import pandas as pd
        from vfairness.preprocessing.bias_detection.proxy import identify_proxy_variables

        frame = pd.DataFrame({**columns, "g": group})
        return identify_proxy_variables(frame, ["g"], feature_columns=names)

    def detect() -> object:
        import polars as pl
        from insurance_fairness.proxy_detection import detect_proxies

        return detect_proxies(pl.DataFrame({**columns, "g": group}), "g", names)

    work, how = {
        "vfairness identify_proxy_variables": (screen, "correlations and mutual information with the group"),
        "insurance-fairness detect_proxies": (detect, "boosting, mutual information and partial correlations"),
    }[peer]
    return {
        "what": f"proxies among 10 features, {numbers} of them numbers, 10,000 rows: ours the part of a gap of each, "
        f"with intervals, theirs {how}",
        "peer": peer,
        "ours": seconds(lambda: eh.audit_proxy(data, measure="sp", rng=0), 5),
        "theirs": seconds(work, 5),
        "asked": 1,
    }


def gradient_feature_audit() -> dict[str, Any]:
    """Take each feature's trace out of all others and ask the model again; one step of repair, ten by default."""
    from BlackBoxAuditing.GradientFeatureAuditor import GradientFeatureAuditor
    from sklearn.linear_model import LogisticRegression

    columns, group, outcome = people(10_000, 5)
    X = np.column_stack(list(columns.values()))
    model = LogisticRegression().fit(X, outcome)
    rows = [[*map(float, x), str(y)] for x, y in zip(X, outcome, strict=True)]

    class Asked:
        def test(self, rows: list[list[Any]], test_name: str = "") -> list[tuple[str, str]]:
            found = model.predict(np.array([row[:-1] for row in rows]))
            return [(row[-1], str(guess)) for row, guess in zip(rows, found, strict=True)]

    def theirs() -> object:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            return GradientFeatureAuditor(
                Asked(), [*columns, "y"], rows[:1], rows, False, repair_steps=1, features_to_ignore=[10],
                output_dir=f"{folder}/out",
            ).audit()  # fmt: skip

    data = eh.AuditData.from_arrays(decision=model.predict(X), groups={"g": group}, features=columns)
    return {
        "what": "influence of 10 features on a model, 10,000 rows: ours with intervals, theirs a tenth of its repair",
        "peer": "BlackBoxAuditing GradientFeatureAuditor",
        "ours": seconds(lambda: eh.audit_proxy(data, model=model, measure="sp", rng=0)),
        "theirs": seconds(theirs, 1),
        "asked": 1,
    }
