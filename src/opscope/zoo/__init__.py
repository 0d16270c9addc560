"""The model zoo: sample models generated locally, with the right shapes, random weights and no download."""

from .catalogue import EVERYWHERE, Entry, Recipe, make, names
from .network import Option

__all__ = ["EVERYWHERE", "Entry", "Option", "Recipe", "make", "names"]
