"""The rule that translates one operation into an op kind of graph.py; modules named after dialects hold the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .site import Attributes, Describe, Site, no_attributes


@dataclass(frozen=True, slots=True)
class Rule:
    """The kind, the rule for its attributes, and which tensor operands count (not zero points or shapes)."""

    kind: str
    describe: Describe = no_attributes
    operands: int | None = None  # so many from the front; None: all
    order: tuple[int, ...] = ()  # their places, where they are not in the order of graph.py

    def chosen(self, operands: tuple[int, ...]) -> tuple[int, ...]:
        """Return the operands that count, in canonical order."""
        if self.order:
            return tuple(operands[place] for place in self.order if place < len(operands))
        return operands[: self.operands]


CUSTOM = Rule("custom")


def rules(kinds: Mapping[str, str], operands: int | None = None) -> dict[str, Rule]:
    """Return a table of operations that need no attributes, from a row of names per kind."""
    return {name: Rule(kind, operands=operands) for kind, names in kinds.items() for name in names.split()}


def contraction(left: str, right: str, out: str) -> Rule:
    """Return the rule of a product whose operands have a letter per axis: matmul if it is one, else einsum.

    "ac", "cb", "ab": one reduced letter, last in the left operand; the right operand is "cb" (plain) or "bc"
    (transposed), perhaps behind batch axes.
    """
    reduced = [letter for letter in left if letter not in out]
    if len(reduced) == 1 and left[-1:] == reduced[0] and len(right) >= 2 and out[:-1] == left[:-1]:
        pair = right[-2:]
        if pair in (reduced[0] + out[-1:], out[-1:] + reduced[0]) and right[:-2] == out[: len(right) - 2]:
            return Rule("matmul", lambda site: matmul_extents(site, transposed=pair[1] == reduced[0]))
    equation = f"{left},{right}->{out}"
    return Rule("einsum", lambda _site: {"equation": equation})


def matmul_extents(site: Site, *, transposed: bool) -> Attributes:
    """Return k and n of a product with a matrix on its right."""
    right = site.input(1) or ()
    if len(right) < 2:
        return {}
    return {"k": right[-1], "n": right[-2]} if transposed else {"k": right[-2], "n": right[-1]}
