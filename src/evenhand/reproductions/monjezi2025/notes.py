"""What is known of the paper's print, and what was chosen here."""

from __future__ import annotations

NOTES = (
    "The digits of the paper's text are lost in the copy that was used: every number in tables I to VII and most in "
    "the prose, and no replication package is public. Lost are the cells of tables I and III to VII, all thresholds, "
    "locations, scales and shapes of section II, kmax, the generators' sample size and timeout, epochs, batch size "
    "and learning rate, and all counts of section V but those that table IV's words give. Such claims are judged as "
    "statements: a direction, a comparison, a test. Three shares of the abstract are known: valid tails in 95 %, "
    "ECD-Fair improves the tail in 90 %, MiniMax-Fairness worsens it in 30 %.",
    "Words are not lost, and table IV ends each of its 80 rows with one: 62 tails are type III (finite, linear), 14 "
    "type I (log, skewed) and 4 type II (infinite, heavy). 76 of 80 is the 95 % of the abstract.",
    "Data: Adult (race: White and Black; sex), German credit, Bank (age under 25), COMPAS (ProPublica's filter), "
    "Default, Heart (Cleveland), MEPS15 (the 4,870 rows of HC-181 that could be had), MEPS16 (Panel 21), Student "
    "(both files). The network has layers 64-32-16-8-4-2, ten epochs and at least 300 steps; one that dies (one score"
    " for everybody) is trained again. The support vector machine learns from at most 3,000 rows. Audited are all "
    "rows of a data set; models learn from 70 % of them.",
    "Two things are run on every tail of table IV: our audit (calibrated test, 50 to 200 excesses, steps refused, "
    "generated rows only as a suggestion), and Algorithm 1 as printed, which is the audit's option "
    'generate="printed": kmax = 50; while the test fails, rows from TVAE are added to the group\'s own, ten rounds at '
    "most; all of them are fitted, steps too. TVAE learns for 300 epochs from at most 1,000 rows of the group, "
    "without a limit of time, so that the same seed gives the same rows on every machine. The test is run in both "
    "readings: the coefficient of variation of the k largest values, as the text says, and of their excesses over the"
    " k-th, as the method does that it builds on.",
    "Groups are compared at one horizon of 1,000 decisions. Print compares locations that depend on each group's "
    "number of rows.",
    "The other seeds of table IV draw other rows to train on and another start of the training; the audited people "
    "are the same. The settings list the seeds of each model: three, and two for the forests, because the run was "
    "stopped there.",
    "How shares are judged was settled after results were seen. Valid tails are judged by their spread over splits "
    "and seeds, added up over the models; earlier forms of this rule (binomial error for a model with one run, "
    "complete runs only) gave the printed algorithm the same answers, and one of them was so wide that it also let "
    "our audit reach 95 %. Few runs give a rough spread, so a yes there is weak. The shares of RQ4 are judged by a "
    "distance of ten points, because three binomial errors of twenty cells would have let none of twenty pass for 30 "
    "%.",
    '"ECD finds what CVaR misses" is counted for the unprivileged group only, as print says, and both measures are '
    'judged by their 95 % intervals. "ECD larger than ACD" is judged by intervals that do not meet. The limit of 0.05'
    " is ours.",
    "Table I of print shows exponentiated gradient. The score of its mixture can be read in two ways: as the expected"
    " decision, which is what repeated and averaged queries give and what print does, or as the mean of its members' "
    "probabilities. Expected decisions come in steps, to which no law of extremes can be fitted; their levels are "
    "counted.",
    "The quantile plots are not printed as a figure; table IV names their verdicts (linear, skewed). Figure 3 places "
    "rows by classical multidimensional scaling; print does not say which kind it uses. Numbers are in units of the "
    "real rows' range, after a first look in which units of their deviation let random rows fill the plane; in that "
    "look CTGAN's rows lay nearer to the real ones than TVAE's.",
    "Table III: rows of a generator are compared with the 1,000 rows it learned from. Random rows are drawn from the "
    "range or the categories of each column. The F1 loss compares logistic regressions trained on real and on "
    "generated rows.",
    "Tables V to VII: each repetition draws other rows to train and to test on and another seed. All measures are "
    "taken on the test rows: AOD, EOD and SPD as absolute values, DI as its distance below one (smaller group's rate "
    "over the larger's), ECD as the absolute difference of the two groups' levels, counted at the longest horizon "
    "that the smaller group's test rows reach, 10 to 50 decisions. That horizon is short because the test rows are "
    "few; print extrapolates instead. A randomised method counts with its chances. Exponentiated gradient is read by "
    "its expected decision, since the paper repeats its queries, MiniMax-Fairness by its mean probability. "
    "Repetitions on overlapping rows are not independent, which Scott-Knott does not know and our paired tests do.",
    "The methods of RQ3 and of RQ4 are ranked apart, as print does in its tables. This was settled after a first look"
    " at the ranking of all six together, whose counts are given beside. Rows, rounds, trials and repetitions were "
    "made small to keep the run short; print searches an hour for each.",
    "Stored results of tables V to VII were computed by an earlier script with the same functions and settings; those"
    " of two cells that were computed anew agree in all six digits that are stored, for every method. Table III was "
    "computed by the same functions before they moved here. The seconds told for table III are those of the clock on "
    "a busy machine, for tables V to VII those of fitting alone.",
)
