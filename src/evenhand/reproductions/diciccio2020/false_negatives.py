"""Section 4.2, figure 1 and section 3.3: equal false negative rates in groups whose base rates differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy import stats

from evenhand.arrays import FloatArray, IntArray
from evenhand.audits.group import audit_group
from evenhand.inference.count_functions import Rate
from evenhand.intake import AuditData
from evenhand.kernels.counts.permuted_tables import draw_tables
from evenhand.kernels.shared.seeds import stream
from evenhand.report.document import Block
from evenhand.report.figures import Frame, histogram, lines
from evenhand.reproductions.diciccio2020.rejections import ALPHA, own_rate, rate_claim
from evenhand.reproductions.paper import Claim, Parts, Result, Settings

#: What `audit_group` is asked for each of the tests.
_PERMUTED = {"permute": "all", "method": "permutation"}
AUDITS: dict[str, dict[str, object]] = {
    "not studentised": {**_PERMUTED, "variance": "none"},
    "unpooled variance, as printed": {**_PERMUTED, "variance": "unpooled"},
    "null variance": {**_PERMUTED, "variance": "null"},
    "exact in the denominator": {"method": "exact"},
    "mid-p in the denominator": {"method": "exact", "midp": True},
    "default": {},
}
#: The tests of figure 1 that are audits; its third panel is the bootstrap.
PANELS = ("not studentised", "unpooled variance, as printed", "null variance")
BOOTSTRAPS = ("bootstrap, two-sided", "bootstrap, one-sided")
# Cells: true negatives, false positives, false negatives, true positives; 200 rows in each group.
_LAWS = ((0.18, 0.02, 0.08, 0.72), (0.72, 0.08, 0.02, 0.18))
_ROWS, _PART, _BINS = 200, 500, 20
_FNR = Rate((2,), (2, 3))
_EVERYONE = np.zeros(4, dtype=np.int64)  # all rows may swap groups


def sample_table(rng: np.random.Generator) -> IntArray:
    """Draw the counts of both groups, shape (2, 4)."""
    return np.array([rng.multinomial(_ROWS, law) for law in _LAWS], dtype=np.int64)


def audited(table: IntArray) -> AuditData:
    """Return the rows that a table counts."""
    cells = np.concatenate([np.repeat(np.arange(4), counts) for counts in table])
    group = np.repeat(["A", "B"], table.sum(axis=1))
    return AuditData.from_arrays(outcome=cells // 2, decision=cells % 2, groups={"group": group})


def _audit_pvalue(data: AuditData, options: dict[str, object], n_resamples: int, seed: int) -> float:
    result = audit_group(data, "fnr", reference="A", n_resamples=n_resamples, rng=seed, **options)
    return float(result[0].pvalue)


def bootstrap_pvalues(table: IntArray, n_resamples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return the two-sided and the one-sided p-value of the basic bootstrap, which the product does not offer."""
    drawn = np.stack([rng.multinomial(_ROWS, row / row.sum(), size=n_resamples) for row in table], axis=1)
    observed = float(_difference(table[None])[0])
    spread = _difference(drawn) - observed
    either = (np.abs(spread) >= abs(observed) - 1e-12) | np.isnan(spread)
    upper = (spread >= observed - 1e-12) | np.isnan(spread)
    return float((1 + either.sum()) / (n_resamples + 1)), float((1 + upper.sum()) / (n_resamples + 1))


def _difference(tables: IntArray) -> FloatArray:
    return _FNR.statistic(tables.astype(np.float64), "none")


def _simulated(settings: Settings, parts: Parts, tests: Sequence[str]) -> dict[str, list[float]]:
    """Return the p-values of each test and bootstrap over all simulations."""
    pvalues: dict[str, list[float]] = {name: [] for name in (*tests, *BOOTSTRAPS)}
    runs, n_resamples = settings["simulations"], settings["n_resamples"]
    for start in range(0, runs, _PART):
        told = {"n_resamples": n_resamples, "tests": list(tests), "start": start, "stop": min(start + _PART, runs)}
        made = parts.keep(f"simulations from {start}", told, partial(_part, told))
        for name, values in made.items():
            pvalues[name] += values
    return pvalues


def _part(told: Settings) -> dict[str, list[float]]:
    made: dict[str, list[float]] = {name: [] for name in (*told["tests"], *BOOTSTRAPS)}
    for seed in range(told["start"], told["stop"]):
        rng = stream(seed, "section 4.2")
        table = sample_table(rng)
        data = audited(table)
        for name in told["tests"]:
            made[name].append(_audit_pvalue(data, AUDITS[name], told["n_resamples"], seed))
        both = bootstrap_pvalues(table, told["n_resamples"], rng)
        for name, pvalue in zip(BOOTSTRAPS, both, strict=True):
            made[name].append(pvalue)
    return made


def run_section_4_2(settings: Settings, parts: Parts) -> Result:
    """Return how often each test rejects the true null."""
    pvalues = _simulated(settings, parts, tuple(AUDITS))
    return {"rates": {name: float(np.mean(np.asarray(p) <= ALPHA)) for name, p in pvalues.items()}}


def claims_of_section_4_2(result: Result, settings: Settings) -> Sequence[Claim]:
    """Set each rate beside the printed one."""
    rates, runs = result["rates"], settings["simulations"]
    pooled = "The printed figure belongs to the variance restricted to the null."
    one_sided = "The printed figure belongs to a one-sided p-value."
    return [
        rate_claim("Not studentised", 0.1216, rates["not studentised"], runs),
        rate_claim(
            "Studentised, unpooled variance of section 3.3",
            0.0486,
            rates["unpooled variance, as printed"],
            runs,
            pooled,
        ),
        rate_claim("Studentised, variance restricted to the null", 0.0486, rates["null variance"], runs, pooled),
        rate_claim("Bootstrap, two-sided", 0.1078, rates["bootstrap, two-sided"], runs, one_sided),
        rate_claim("Bootstrap, one-sided", 0.1078, rates["bootstrap, one-sided"], runs, one_sided),
        own_rate("The audit's default, an exact unconditional test", rates["default"], runs),
        own_rate("Exact permutation within the denominator", rates["exact in the denominator"], runs),
        own_rate("The same with mid-p", rates["mid-p in the denominator"], runs),
    ]


def run_figure_1(settings: Settings, parts: Parts) -> Result:
    """Return histograms of the p-values, and the laws of the difference that explain them."""
    pvalues = _simulated(settings, parts, PANELS)
    edges = np.linspace(0, 1, _BINS + 1)
    uniform = {name: float(stats.kstest(p, "uniform").statistic) for name, p in pvalues.items()}
    told = {"samples": settings["simulations"], "permuted": settings["permuted"]}
    return {
        "edges": edges.tolist(),
        "counts": {name: np.histogram(p, edges)[0].tolist() for name, p in pvalues.items()},
        "distance": uniform,
        "laws": parts.keep("laws", told, lambda: _laws(**told)),
    }


def _laws(samples: int, permuted: int) -> dict[str, dict[str, list[float]]]:
    """Return densities of the difference over samples, and over permutations of some of the samples."""
    tables = np.stack([sample_table(stream(seed, "section 4.2")) for seed in range(samples)])
    shuffled = np.concatenate(
        [draw_tables(t, _EVERYONE, 200, stream(seed, "figure 1")) for seed, t in enumerate(tables[:permuted])]
    )
    statistics: dict[str, tuple[Callable[[IntArray], FloatArray], float]] = {
        "difference": (_difference, 0.4),
        "studentised difference": (lambda t: _FNR.statistic(t.astype(np.float64), "null"), 4.0),
    }
    laws = {}
    for name, (statistic, reach) in statistics.items():
        edges = np.linspace(-reach, reach, 33)
        density = [
            np.histogram(np.clip(statistic(t), -reach, reach), edges, density=True)[0] for t in (tables, shuffled)
        ]
        middles = (edges[:-1] + edges[1:]) / 2
        laws[name] = {"at": middles.tolist(), "samples": density[0].tolist(), "permutations": density[1].tolist()}
    return laws


def claims_of_figure_1(result: Result, settings: Settings) -> Sequence[Claim]:
    """Judge the statements that the text makes on the histograms."""
    distance = result["distance"]
    plain = distance["not studentised"]
    rule = "largest distance of the p-values' distribution from the uniform one"

    def closer(name: str, than: float, other: str, remark: str = "") -> Claim:
        return Claim(
            claim=f"P-values of the studentised test ({name}) are closer to uniform than those {other}",
            printed="closer",
            ours=f"{distance[name]:.3f} against {than:.3f}",
            reached="yes" if distance[name] < than else "no",
            rule=rule,
            remark=remark,
        )

    return [
        closer("null variance", plain, "not studentised"),
        closer("unpooled variance, as printed", plain, "not studentised"),
        *(closer("null variance", distance[name], f"of the {name}") for name in BOOTSTRAPS),
    ]


def figures_of_figure_1(result: Result) -> Sequence[Block]:
    """Draw the histograms of p-values, and the two laws beside each other."""
    caption = "Simulations by p-value. A right test has bars of one height; the line marks .05."
    drawn: list[Block] = [
        histogram(f"P-values: {name}", caption, result["edges"], counts, observed=ALPHA, x="p-value", y="simulations")
        for name, counts in result["counts"].items()
    ]
    for name, law in result["laws"].items():
        rows = [
            {"x": x, "y": y, "series": series}
            for series in ("samples", "permutations")
            for x, y in zip(law["at"], law[series], strict=True)
        ]
        words = (
            "Density over samples, and over permutations of all rows. The test is right where the two agree: the "
            "permuted groups have nearly equal base rates and the sampled ones have not."
        )
        drawn.append(lines(f"The law of the {name}", words, rows, Frame(x=name, y="density")))
    return drawn


def run_section_3_3(settings: Settings, parts: Parts) -> Result:
    """Return how often the printed variance and the one of the null reject a true null, by positives in a group."""
    rates = []
    for positives in settings["positives"]:
        told = {**settings, "positives": positives}
        rates.append(parts.keep(f"{positives} positives", told, partial(_few, told)))
    return {"rates": rates}


def _few(told: Settings) -> dict[str, float]:
    rejected = dict.fromkeys(PANELS[1:], 0)
    for seed in range(told["simulations"]):
        rng = stream(seed, "section 3.3", told["positives"])
        table = np.array([_fixed_positives(160, rng), _fixed_positives(told["positives"], rng)])
        data = audited(table)
        for name in rejected:
            rejected[name] += _audit_pvalue(data, AUDITS[name], told["n_resamples"], seed) <= ALPHA
    return {"positives": told["positives"], **{name: n / told["simulations"] for name, n in rejected.items()}}


def _fixed_positives(positives: int, rng: np.random.Generator) -> list[int]:
    """Draw one group's cells given its number of positives; both error rates are .1."""
    wrong = rng.binomial([_ROWS - positives, positives], 0.1)
    return [_ROWS - positives - wrong[0], wrong[0], wrong[1], positives - wrong[1]]


def claims_of_section_3_3(result: Result, settings: Settings) -> Sequence[Claim]:
    """State the rates; the paper prints none."""
    remark = "The variance that section 3.3 prints is 0 when no positive of the small group is missed."
    return [
        own_rate(
            f"{row['positives']} positives in the small group, {name}",
            row[name],
            settings["simulations"],
            remark if name == PANELS[1] else "",
        )
        for row in result["rates"]
        for name in PANELS[1:]
    ]


def figures_of_section_3_3(result: Result) -> Sequence[Block]:
    """Draw the rates against the number of positives."""
    rows = [{"x": row["positives"], "y": row[name], "series": name} for name in PANELS[1:] for row in result["rates"]]
    caption = "Rejections of a true null at .05 (dashed) by the number of positives in the small group."
    frame = Frame(x="positives in the small group", y="rejection probability", dashed=[ALPHA], points=True)
    return [lines("The printed variance with few positives", caption, rows, frame)]
