"""Tests, intervals, multiplicity: arrays in, numbers out."""
