"""Tests of all subgroups at once: one metric in every subgroup against the rest."""
