"""Si, Murthy, Blanchet and Nguyen: Testing Group Fairness via Optimal Transport Projections, ICML 2021."""

from __future__ import annotations

from evenhand.reproductions.paper import Item, Paper
from evenhand.reproductions.si2021 import appendix, figure, tables
from evenhand.reproductions.si2021.notes import NOTES

_TITLES = {
    "table-1": "How often equal opportunity is rejected, by projection",
    "table-2": "How often equalized odds are rejected, by projection",
    "table-3": "How often equal opportunity is rejected, by Welch's test",
}

PAPER = Paper(
    key="si2021",
    title="Testing Group Fairness via Optimal Transport Projections (Si, Murthy, Blanchet, Nguyen, ICML 2021)",
    items=(
        *(
            Item(
                name=name,
                title=title,
                run=tables.run_table(name),
                settings=tables.SETTINGS,
                short=tables.SHORT,
                minutes=8,
                data=("arrhythmia", "compas", "drug"),
                packages=("sklearn",),
                claims=tables.claim_table(name),
                figures=tables.draw_table(name),
            )
            for name, title in _TITLES.items()
        ),
        Item(
            name="figure-1",
            title="Statistic, threshold and accuracy as the penalty of a classifier grows",
            run=figure.run_figure,
            settings=figure.SETTINGS,
            short=figure.SHORT,
            minutes=1,
            data=("compas", "drug"),
            packages=("sklearn",),
            claims=figure.claim_figure,
            figures=figure.draw_figure,
        ),
        Item(
            name="appendix-b1",
            title="The statistic of a fair classifier against its limit law",
            run=appendix.run_appendix,
            settings=appendix.SETTINGS,
            short=appendix.SHORT,
            minutes=1,
            claims=appendix.claim_appendix,
            figures=appendix.draw_appendix,
        ),
    ),
    notes=NOTES,
)
