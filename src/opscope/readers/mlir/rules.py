"""How one operation is translated into the vocabulary of graph.py; tables of rules by dialect are beside this."""

from __future__ import annotations

from dataclasses import dataclass

from .site import Describe, nothing


@dataclass(frozen=True, slots=True)
class Rule:
    """The kind, its attributes, and how many of the tensor operands count: zero points and shapes behind do not."""

    kind: str
    describe: Describe = nothing
    operands: int | None = None  # None: all


CUSTOM = Rule("custom")
