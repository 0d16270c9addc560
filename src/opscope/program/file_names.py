"""Names of the files that a run leaves: one set per program, activation and inference, so that none is overwritten."""

from __future__ import annotations

from .program import Program
from .stats_files import plain_name


def raw_name(program: Program, activation: int, inference: int, device: int, *, number: int = 0) -> str:
    """Name of the stats buffer of one device; `number` is that of the program in its run."""
    return f"{_stem(activation, number)}-inf-{inference}-{network_name(program, device)}-aiccyclecounts.bin"


def stats_name(activation: int, inference: int, *, number: int = 0) -> str:
    return f"{_stem(activation, number)}-inf-{inference}.txt"


def trace_name(*, number: int = 0) -> str:
    """Name of the timeline of all activations of a program."""
    return f"aic-profiling-program-{number}-trace.json"


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
    return f"aic-profiling-program-{number}-activation-{activation}"
