"""Outcomes in the authors' public repository, https://github.com/smaityumich/individual-fairness-testing.

``adult/mean-table.txt`` (commit 11d8b23) holds table 1 as printed. ``adult/test2.txt`` (commit dee9baf) holds mean
ratios of the first 200 test rows after different numbers of steps; here those of SenSR on the split with seeds 98539
and 77708, steps of .005. ``compas_sensetive/all_summary.out`` (commit 04b37c1) holds COMPAS outcomes for several
step sizes, one line per classifier, split and step size; here T_n (`lb`) and the average odds difference by sex of the
lines in its first 32,000 characters.
"""

from __future__ import annotations

#: Mean loss ratio of SenSR on Adult by number of steps.
SENSR_RATIO_BY_STEPS = {
    10: 1.0090792,
    20: 1.0098763,
    40: 1.0114434,
    80: 1.0145936,
    160: 1.0208408,
    320: 1.0334015,
    640: 1.0585743,
    1280: 1.1083213,
    2560: 1.2035193,
}

#: COMPAS with steps of .005: classifier and measure, values on those of the authors' splits that were read.
COMPAS_OUTCOMES: dict[tuple[str, str], tuple[float, ...]] = {
    ("Baseline", "T_n"): (2.0128931, 2.4928102, 2.5673796, 2.2165404, 2.5897789),
    ("Baseline", "AOD sex"): (0.2220516, 0.2014057, 0.2759741, 0.2051175, 0.2129069, 0.2084509),
    ("Project", "T_n"): (1.0857987, 1.4790648, 1.0431143, 1.0907448),
    ("Project", "AOD sex"): (0.0735251, 0.0490370, 0.0253447, 0.0575852, 0.0560285, 0.0816652),
    ("SenSR", "T_n"): (1.0985474, 1.0482239, 1.2023941),
    ("SenSR", "AOD sex"): (0.0105890, 0.0701094, 0.0801869, 0.0791777),
}
#: The same for T_n of Baseline with steps of .01; with steps of .025 and .03 the file has nan throughout.
COMPAS_BASELINE_LONGER_STEPS = (3.3886892, 4.5632820, 5.0657280, 4.0431019, 5.0976666)
