"""A comparison as JUnit XML: one test case per limit, for whatever shows test results."""

from __future__ import annotations

from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from ...core.errors import printable
from ...gate.comparison import Comparison
from ...gate.verdict import Check


class CompareJunit:
    """A limit that is broken is a failure; one that cannot be judged is an error."""

    suffix = ".xml"

    def render(self, comparison: Comparison, out: TextIO) -> None:
        checks = comparison.verdict.checks
        failures, errors = (sum(check.word == word for check in checks) for word in ("fail", "unknown"))
        counts = f'tests="{len(checks)}" failures="{failures}" errors="{errors}"'
        name = quoteattr(printable(f"opscope compare {comparison.base.label} {comparison.new.label}", 300))
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {counts}>",
            f"  <testsuite name={name} {counts}>",
            *(line for check in checks for line in _case(check, comparison)),
            "  </testsuite>",
            "</testsuites>",
        ]
        out.write("\n".join(lines) + "\n")


def _case(check: Check, comparison: Comparison) -> list[str]:
    name = quoteattr(printable(check.name, 300))
    suite = quoteattr(printable(f"opscope.{comparison.new.model}.{comparison.new.target}", 300))
    head = f"    <testcase name={name} classname={suite}"
    reason = printable(check.reason, 1000)
    if check.passed:
        return [f"{head}>", f"      <system-out>{escape(reason)}</system-out>", "    </testcase>"]
    tag = "failure" if check.known else "error"
    return [f"{head}>", f"      <{tag} message={quoteattr(reason)}/>", "    </testcase>"]
