"""A comparison as GitHub workflow commands: annotations on the run, then the text for its log."""

from __future__ import annotations

from io import StringIO
from typing import TextIO

from ...core.errors import printable
from ...gate.comparison import Comparison
from ...gate.verdict import Check
from .compare_text import CompareText


class CompareGithub:
    """`::error` for every limit that is broken or cannot be judged, `::warning` for what the samples do not confirm."""

    suffix = ".txt"

    def __init__(self, *, by: str = "op", top: int = 15) -> None:
        self.text = CompareText(by=by, top=top)

    def render(self, comparison: Comparison, out: TextIO) -> None:
        lines = [_command(check) for check in comparison.verdict.checks if not check.passed or check.warning]
        text = StringIO()
        self.text.render(comparison, text)
        # A name may look like a command of its own: whatever starts with two colons is moved to the right.
        body = [f" {line}" if line.lstrip().startswith("::") else line for line in text.getvalue().splitlines()]
        out.write("\n".join([*lines, "::group::opscope compare", *body, "::endgroup::", ""]))


def _command(check: Check) -> str:
    word = "warning" if check.passed else "error"
    title = _escape(f"opscope: {printable(check.name)}").replace(":", "%3A").replace(",", "%2C")
    return f"::{word} title={title}::{_escape(printable(check.reason, 1000))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
