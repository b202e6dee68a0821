"""Two rates and more: the unconditional and the conditional test of equality, equivalence, and the interval."""
