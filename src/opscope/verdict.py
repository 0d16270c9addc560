"""Verdict: pass or fail of a gate, with reasons."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One limit and what was found. `reason` is one line that a user can act on."""

    name: str
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of a gate."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)
