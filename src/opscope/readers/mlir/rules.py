"""The rule that translates one operation into an op kind of graph.py; `tosa` and `linalg` hold the tables."""

from __future__ import annotations

from dataclasses import dataclass

from .site import Describe, no_attributes


@dataclass(frozen=True, slots=True)
class Rule:
    """The kind, the rule for its attributes, and how many leading tensor operands count (not zero points or shapes)."""

    kind: str
    describe: Describe = no_attributes
    operands: int | None = None  # None: all


CUSTOM = Rule("custom")
