"""Generators: more rows like those of a group, how real they look, and what they suggest about its tail."""

from evenhand.generators.adapter import Generator, make_generator
from evenhand.generators.ctgan import CTGAN
from evenhand.generators.extend import extend_tail
from evenhand.generators.light import IndependentSampler, LightSampler
from evenhand.generators.printed import PrintedFit, printed_algorithm
from evenhand.generators.realism import downstream_f1, realism
from evenhand.generators.tvae import TVAE

__all__ = [
    "CTGAN",
    "TVAE",
    "Generator",
    "IndependentSampler",
    "LightSampler",
    "PrintedFit",
    "downstream_f1",
    "extend_tail",
    "make_generator",
    "printed_algorithm",
    "realism",
]
