"""Groups that are missing or only guessed: what the data allow, and what an assumption adds."""
