"""The model zoo: sample models generated locally, with the right shapes, random weights and no download."""

from .catalogue import EVERYWHERE, ListedNetwork, Recipe, make, names
from .network import Option

__all__ = ["EVERYWHERE", "ListedNetwork", "Option", "Recipe", "make", "names"]
