"""Compatibility: what of a model a target cannot take, and what to use instead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorIssue:
    operator: str
    layers: tuple[int, ...]
    alternative: str | None
    severity: str


@dataclass(frozen=True, slots=True)
class MemoryIssue:
    id: str
    text: str
    severity: str


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Everything that stands between a model and a target."""

    operators: tuple[OperatorIssue, ...]
    types: tuple[str, ...]  # data types that the target does not have
    memory: tuple[MemoryIssue, ...]

    @property
    def compatible(self) -> bool:
        return not self.operators and not self.types and not self.memory
