"""Verdict: pass or fail of a gate, with reasons."""

from __future__ import annotations

from dataclasses import dataclass

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """One limit and what was found. `reason` is one line that a user can act on."""

    name: str
    passed: bool
    reason: str
    known: bool = True  # False: there is no number to judge; such a check does not pass
    withheld: bool = False  # of those: there is a part of the number, which an op of unknown cost keeps from being it
    limit: str = ""  # as the user wrote it
    metric: str = ""  # what the limit is on
    warning: bool = False  # passed, but a user should know the reason

    @property
    def word(self) -> str:
        return PASS if self.passed else FAIL if self.known else UNKNOWN


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of a gate."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def word(self) -> str:
        """A limit that is broken counts before one that cannot be judged."""
        words = {check.word for check in self.checks}
        return FAIL if FAIL in words else UNKNOWN if UNKNOWN in words else PASS
