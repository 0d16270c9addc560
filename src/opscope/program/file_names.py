"""Names of the files that compiling and running leave: one set per program, activation and inference, so that none is
overwritten.

They are those of one vendor's runtime and tools, whatever the target: scripts look for these names, and `opstats` tells
by them which buffers belong together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .program import Program

PROGRAM_FILE = "programqpc.bin"
RUN_FILES = "aic-profiling-program-"  # what names of all files of a run begin with; the number of the program follows
STATS_END = "-aiccyclecounts"  # of a stats buffer, before its suffix


def plain_name(network: str) -> str:
    """A name from a model as file names spell it: without characters that mean something to a file system."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", network)[:100].lstrip(".") or "network"


def raw_name(program: Program, activation: int, inference: int, device: int, *, number: int = 0) -> str:
    """Name of the stats buffer of one device; `number` is that of the program in its run."""
    return f"{_stem(activation, number)}-inf-{inference}-{network_name(program, device)}{STATS_END}.bin"


def stats_name(activation: int, inference: int, *, number: int = 0) -> str:
    return f"{_stem(activation, number)}-inf-{inference}.txt"


def trace_name(*, number: int = 0) -> str:
    """Name of the timeline of all activations of a program."""
    return f"{RUN_FILES}{number}-trace.json"


def latency_name(activation: int, *, number: int = 0) -> str:
    return f"{_stem(activation, number)}-latency.txt"


def output_names(outputs: list[str]) -> list[str]:
    """A file name per output of the model; names that come out the same are numbered."""
    names: list[str] = []
    for output in outputs:
        name = f"output-{plain_name(output)}"
        names.append(f"{name}.npy" if f"{name}.npy" not in names else f"{name}-{len(names)}.npy")
    return names


def network_name(program: Program, device: int) -> str:
    """Name of the network in file names; with the device, where the program runs on several."""
    name = plain_name(program.name)
    return name if program.devices == 1 else f"{name}_slice{device:02d}"


def _stem(activation: int, number: int) -> str:
    return f"{RUN_FILES}{number}-activation-{activation}"
