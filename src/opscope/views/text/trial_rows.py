"""Changes that were tried, for a terminal: what each comes to, as a bar against the run as it is."""

from __future__ import annotations

from ...core.units import format_ns
from ...recording.finding import Findings
from .columns import bar, columns

_BAR_WIDTH = 12
_LEAST_NAME = 16  # columns of a change, however narrow the screen


def tried_again(findings: Findings) -> str:
    """What was done with each change."""
    return f"{findings.provenance} again with one thing changed"


def trial_rows(findings: Findings, *, width: int) -> list[str]:
    """One line each, the bar as long as the time that is left."""
    rows = [
        (
            trial.change,
            format_ns(trial.latency_ns),
            f"{trial.speedup:.2f} × as fast",
            bar(min(1.0, 1 / trial.speedup), _BAR_WIDTH),
        )
        for trial in findings.trials
    ]
    header = ("change", "latency", "", "time left")
    rest = columns(header[1:], [row[1:] for row in rows], align=">><", limits={})[1]  # its rule
    limits = {0: max(width - len(rest) - 2, _LEAST_NAME)}
    return columns(header, rows, align="<>><", limits=limits)
