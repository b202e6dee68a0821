"""DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal (2020): permutation tests of fairness."""

from evenhand.reproductions.diciccio2020.correlations import claims_of_table_1, figures_of_table_1, run_table_1
from evenhand.reproductions.diciccio2020.false_negatives import (
    claims_of_figure_1,
    claims_of_section_3_3,
    claims_of_section_4_2,
    figures_of_figure_1,
    figures_of_section_3_3,
    run_figure_1,
    run_section_3_3,
    run_section_4_2,
)
from evenhand.reproductions.diciccio2020.thresholds import (
    SETS,
    claims_of_figure_2,
    claims_of_figure_3,
    figures_of_figure_2,
    figures_of_figure_3,
    run_figure_2,
    run_figure_3,
)
from evenhand.reproductions.paper import Item, Paper

_NOTES = (
    "Algorithm 1, lines 12 and 16, count the wrong tail and lack the division by the number of permutations. Here the "
    "two-sided p-value is one plus the number of permuted statistics at least as large in size, over one plus their "
    "number.",
    "Section 3.3 prints the unpooled variance. With few positives in the small group it rejects a true null far too "
    "often (item section-3.3), and the printed .0486 of section 4.2 belongs to the variance restricted to the null. "
    "`audit_group` offers both; the one of the null is its choice.",
    "Section 3.2.1 prints the variance of the AUC with its coefficients swapped. In 7.4 the off-diagonal term is "
    "p+ pFN (1 - p+) and the last sign is plus.",
    "Table 1 says that errors are divided by x squared. Both printed values of the uncorrelated design are nearer to "
    "what errors divided by x give; both designs are computed.",
    "Section 5 divides the observed difference by a bootstrap deviation and the permuted ones by one constant. That "
    "is no studentised permutation test, and Evenhand does not offer it: figures 2 and 3 use the audit's own test.",
    "Table 1 shuffles the data sets of a batch of fifty alike, with fresh shuffles for each batch, which is what makes "
    "10,000 simulations possible in minutes. Every single p-value is that of a permutation test with fresh shuffles; "
    "fifty of them share theirs. The statistic is the function behind `correlation_test`.",
    "The fixed penalty, the split and, for COMPAS, the columns of the models in figures 2 and 3 are ours, because the "
    "paper gives none. The basic bootstrap of section 4.2 is a small function of the reproduction: the product has "
    "none of this kind.",
)

PAPER = Paper(
    key="diciccio2020",
    title="C. DiCiccio, S. Vasudevan, K. Basu, K. Kenthapadi, D. Agarwal: Evaluating fairness using permutation tests",
    items=(
        Item(
            name="table-1",
            title="Correlation of an attribute with the error: Algorithm 1 and FairTest",
            run=run_table_1,
            settings={"simulations": 10_000, "n_resamples": 999, "rows": 2000},
            short={"simulations": 100, "n_resamples": 199, "rows": 2000},
            minutes=7,
            claims=claims_of_table_1,
            figures=figures_of_table_1,
        ),
        Item(
            name="section-3.3",
            title="The printed variance of a rate when the small group has few positives",
            run=run_section_3_3,
            settings={"simulations": 3000, "n_resamples": 999, "positives": [4, 10, 20, 40]},
            short={"simulations": 200, "n_resamples": 199, "positives": [4, 40]},
            minutes=2,
            claims=claims_of_section_3_3,
            figures=figures_of_section_3_3,
        ),
        Item(
            name="section-4.2",
            title="Equal false negative rates, unequal base rates: how often each test rejects",
            run=run_section_4_2,
            settings={"simulations": 10_000, "n_resamples": 999},
            short={"simulations": 300, "n_resamples": 199},
            minutes=4,
            claims=claims_of_section_4_2,
        ),
        Item(
            name="figure-1",
            title="Histograms of the p-values of section 4.2, and the laws behind them",
            run=run_figure_1,
            settings={"simulations": 10_000, "n_resamples": 999, "permuted": 500},
            short={"simulations": 300, "n_resamples": 199, "permuted": 50},
            minutes=3,
            claims=claims_of_figure_1,
            figures=figures_of_figure_1,
        ),
        Item(
            name="figure-2",
            title="Recall and false positive rate of men and women at every threshold",
            run=run_figure_2,
            settings={"thresholds": 41, "n_resamples": 999},
            short={"thresholds": 11, "n_resamples": 199},
            minutes=1,
            data=SETS,
            claims=claims_of_figure_2,
            figures=figures_of_figure_2,
        ),
        Item(
            name="figure-3",
            title="The smallest difference that is shown, by sample size",
            run=run_figure_3,
            settings={"thresholds": 41, "sizes": [950, 1500, 2250, 3000, 3750, 4500], "repeats": 20},
            short={"thresholds": 11, "sizes": [950, 3000], "repeats": 3},
            minutes=2,
            data=SETS,
            claims=claims_of_figure_3,
            figures=figures_of_figure_3,
        ),
    ),
    notes=_NOTES,
)
