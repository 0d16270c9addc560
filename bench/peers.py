"""The tools opscope is compared with, each in a virtual environment of its own under `.cache/`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from measure import CACHE, progress

INSTALL_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Peer:
    """A package on PyPI, with what has to be added to make it start."""

    name: str
    requirements: tuple[str, ...]
    check: str  # must import without an error

    def tool(self, name: str) -> str | None:
        """A program of the peer's environment, installed on first use; None, and a message, when it cannot be."""
        folder = CACHE / f"bench-venv-{self.name}"
        ready = folder / "ready"
        if not ready.exists() and not self._install(folder):
            return None
        ready.touch()
        return str(folder / "bin" / name)

    def _install(self, folder: Path) -> bool:
        progress(f"installing {self.name} into {folder}")
        python = str(folder / "bin" / "python")
        steps = (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.requirements],
            [python, "-c", self.check],
        )
        for step in steps:
            try:
                subprocess.run(step, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
            except (OSError, subprocess.SubprocessError) as error:
                lines = str(getattr(error, "stderr", None) or error).strip().splitlines()
                progress(f"{self.name} is left out, it cannot be installed: {lines[-1] if lines else error}")
                rmtree(folder, ignore_errors=True)
                return False
        return True


ONNX_TOOL = Peer("onnx-tool", ("onnx-tool",), "import onnx_tool")
VELA = Peer("ethos-u-vela", ("ethos-u-vela",), "import ethosu.vela.vela")
ZIGZAG = Peer("zigzag-dse", ("zigzag-dse", "six"), "import zigzag.api")  # imports six without asking for it
# Turns an array of one element into an int, which numpy 2.4 refuses.
SCALESIM = Peer("scalesim", ("scalesim", "numpy<2.4"), "import scalesim.scale_sim")
HTA = Peer("hta", ("HolisticTraceAnalysis",), "import hta.trace_analysis")
