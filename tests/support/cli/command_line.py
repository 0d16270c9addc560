"""Verbs called in this process, as a user sees what comes of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from opscope.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def one_line(self) -> str:
        """The error as a user reads it: one line, no traceback, exit 2."""
        assert (self.code, self.out) == (2, "")
        assert self.err.count("\n") == 1
        assert "Traceback" not in self.err
        return self.err


def ended(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    """What `opscope` with these words prints on stdout and stderr, where it ends as expected."""
    found = called(capsys, *words)
    assert found.code == code, found.err
    assert "Traceback" not in found.err
    return found.out, found.err


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    """`opscope` with these words."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:  # argparse
        code = int(stop.code or 0)
    found = capsys.readouterr()
    return Outcome(code, found.out, found.err)
