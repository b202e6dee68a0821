"""Monjezi, Kreinovich, Trivedi and Tizpaz-Niari (2025): fairness testing through extreme value theory."""

from evenhand.reproductions.monjezi2025 import (
    census,
    generated,
    mitigator_claims,
    mitigators,
    section_2,
    tail_claims,
    tail_figures,
    tails,
)
from evenhand.reproductions.monjezi2025.notes import NOTES
from evenhand.reproductions.monjezi2025.settings import DATA
from evenhand.reproductions.paper import Item, Paper

_LEARNED = ("sklearn", "pandas", "torch")

PAPER = Paper(
    key="monjezi2025",
    title="V. Monjezi, V. Kreinovich, A. Trivedi, S. Tizpaz-Niari: Fairness testing through extreme value theory",
    items=(
        *(
            Item(
                name=name,
                title=title,
                run=run,
                settings=census.SETTINGS,
                short=census.SHORT,
                minutes=minutes,
                packages=(*_LEARNED, "fairlearn"),
                claims=claims,
                figures=figures,
            )
            for name, title, minutes, run, claims, figures in (
                (
                    "table-i",
                    "Return levels of the network on Adult by race, as trained and mitigated",
                    2,
                    section_2.run_table_i,
                    section_2.claims_of_table_i,
                    section_2.figures_of_table_i,
                ),
                (
                    "figure-1",
                    "Changes of score of White and Black people, with thresholds",
                    2,
                    section_2.run_figure_1,
                    section_2.claims_of_figure_1,
                    section_2.figures_of_figure_1,
                ),
                (
                    "figure-2",
                    "Densities of the laws of extremes",
                    2,
                    section_2.run_figure_2,
                    section_2.claims_of_figure_2,
                    section_2.figures_of_figure_2,
                ),
                (
                    "quantile-plots",
                    "Observed against fitted quantiles, with the verdict on each fit",
                    2,
                    section_2.run_quantile_plots,
                    section_2.claims_of_quantile_plots,
                    section_2.figures_of_quantile_plots,
                ),
            )
        ),
        Item(
            name="table-iii",
            title="How real generated rows look",
            run=generated.run_table_iii,
            settings=generated.SETTINGS,
            short=generated.SHORT,
            minutes=15,
            data=tuple(name for name in DATA if name != "adult"),
            packages=("torch",),
            claims=generated.claims_of_table_iii,
            figures=generated.figures_of_table_iii,
        ),
        Item(
            name="figure-3",
            title="Real and generated rows of COMPAS in a plane",
            run=generated.run_figure_3,
            settings=generated.FIGURE_SETTINGS,
            short=generated.FIGURE_SHORT,
            minutes=2,
            data=("compas",),
            packages=("torch",),
            claims=generated.claims_of_figure_3,
            figures=generated.figures_of_figure_3,
        ),
        Item(
            name="table-iv",
            title="ACD, CVaR and ECD of 40 data sets and models of table II, and the types of 80 tails",
            run=tails.run_table_iv,
            settings=tails.SETTINGS,
            short=tails.SHORT,
            minutes=20,
            data=tuple(name for name in DATA if name != "adult"),
            packages=_LEARNED,
            claims=tail_claims.claims_of_table_iv,
            figures=tail_figures.figures_of_table_iv,
        ),
        Item(
            name="tables-v-vii",
            title="Six mitigators against the plain model, on average and in the tail",
            run=mitigators.run_tables,
            settings=mitigators.SETTINGS,
            short=mitigators.SHORT,
            minutes=20,
            data=tuple(name for name in DATA if name != "adult"),
            packages=(*_LEARNED, "fairlearn"),
            claims=mitigator_claims.claims_of_tables,
            figures=mitigator_claims.figures_of_tables,
        ),
    ),
    notes=NOTES,
)
