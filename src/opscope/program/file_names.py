"""Names of the files that a run leaves: one set per program, activation and inference, so that none is overwritten."""

from __future__ import annotations

import re

from .program import Program

PROGRAM_NUMBER = 0  # a run executes one program

_MOST_CHARACTERS = 100


def raw_name(program: Program, activation: int, inference: int, device: int) -> str:
    """The stats buffer of one device."""
    return f"{_stem(activation)}-inf-{inference}-{network_name(program, device)}-aiccyclecounts.bin"


def stats_name(activation: int, inference: int) -> str:
    return f"{_stem(activation)}-inf-{inference}.txt"


def trace_name(activation: int) -> str:
    return f"{_stem(activation)}-trace.json"


def latency_name(activation: int) -> str:
    return f"{_stem(activation)}-latency.txt"


def output_names(outputs: list[str]) -> list[str]:
    """One file per output of the model; names that come out the same are numbered."""
    names: list[str] = []
    for output in outputs:
        name = f"output-{_plain(output)}"
        names.append(f"{name}.npy" if f"{name}.npy" not in names else f"{name}-{len(names)}.npy")
    return names


def network_name(program: Program, device: int) -> str:
    """A program on several devices leaves one part per device."""
    name = _plain(program.name)
    return name if program.devices == 1 else f"{name}_slice{device:02d}"


def _stem(activation: int) -> str:
    return f"aic-profiling-program-{PROGRAM_NUMBER}-activation-{activation}"


def _plain(name: str) -> str:
    """A name from a file, with nothing in it that means something to a file system."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:_MOST_CHARACTERS].lstrip(".") or "network"
