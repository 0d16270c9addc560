"""Measuring on this machine: its CPU by name, and the options of a measurement. Imports nothing heavy."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError, printable
from ..core.manifest import Option, Value
from ..core.measuring_options import REPEATS, SEED, THREADS, WARMUP
from .process import positive


@dataclass(frozen=True, slots=True)
class Measuring:
    """Checked choices of a measurement."""

    warmup: int = WARMUP
    repeats: int = REPEATS
    threads: int = THREADS
    seed: int = SEED
    op_times: bool = True

    @staticmethod
    def of(filled: Mapping[str, Value]) -> Measuring:
        """Check the values of options; more threads than CPUs is an error."""
        chosen = Measuring(
            positive("warmup", filled["warmup"], least=0),
            positive("repeats", filled["repeats"], most=100_000),
            positive("threads", filled["threads"], most=4096),
            positive("seed", filled["seed"], least=0, most=2**32 - 1),
            filled["op-times"] != "off",
        )
        most = len(allowed_cpus())
        if chosen.threads > most:
            raise UsageError(
                f"--threads {chosen.threads}: each gets a CPU of its own, and this process may use {most}; "
                f"expected 1 to {most}"
            )
        return chosen

    def request(self, model: Path, ports: Sequence[object]) -> dict[str, object]:
        """What the process that measures needs to know, whatever the runtime."""
        cpus = allowed_cpus()[: self.threads]
        return {"model": str(model.resolve()), "cpus": cpus, "ports": ports, **self.shown()}

    def shown(self) -> dict[str, int | str]:
        counts = {"warmup": self.warmup, "repeats": self.repeats, "threads": self.threads, "seed": self.seed}
        return {**counts, "op_times": "on" if self.op_times else "off"}


def filled_options(backend: str, options: Sequence[Option], values: Mapping[str, Value]) -> dict[str, Value]:
    """Values by name, defaults where none is given; a name or a choice that does not exist is a mistake."""
    known = {option.name: option for option in options}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"option {name}: not one of the {backend} backend; expected one of {', '.join(known)}")
        choices = known[name].choices
        if choices and value is not None and str(value) not in choices:
            raise UsageError(f"--{name} {printable(str(value))}: not known; expected one of {', '.join(choices)}")
    given = {name: value for name, value in values.items() if value is not None}
    return {name: option.default for name, option in known.items()} | given


def allowed_cpus() -> tuple[int, ...]:
    """Numbers of the CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def cpu_model() -> str:
    """Name of the processor, as the operating system has it."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.lower().startswith(("model name", "cpu model")):
                    return printable(line.partition(":")[2].strip())
    except OSError:
        pass
    return printable(platform.processor() or platform.machine() or "unknown")
