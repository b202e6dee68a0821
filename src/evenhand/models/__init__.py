"""Models: anything that decides becomes `Model`: a score, a decision, how far a person is from the other one."""

from evenhand.models.distances import BoundaryDistance, boundary_distance
from evenhand.models.files import load_model
from evenhand.models.model import Model, as_model, check_columns

__all__ = ["BoundaryDistance", "Model", "as_model", "boundary_distance", "check_columns", "load_model"]
