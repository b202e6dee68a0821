"""One file per audit, all of one shape, and what they share: comparisons, margins, verdicts."""
