"""The model zoo: sample models generated locally, with the right shapes, random weights and no download."""

from .catalogue import Entry, Recipe, make, names
from .network import Option

__all__ = ["Entry", "Option", "Recipe", "make", "names"]
