"""Names that users give → the machine to estimate, compile or simulate for."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import UsageError
from ..machine import catalogue as targets
from ..machine.target import Target
from .price import Machine


def use_machine(target: str | Path | Target, *, cores: int | None = None, devices: int = 1) -> Machine:
    """So many cores and devices of a target."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    have_cores, have_devices = round(chosen.topology.cores.value), round(chosen.topology.devices.value)
    for word, asked, have in (("cores", cores, have_cores), ("devices", devices, have_devices)):
        if asked is not None and not 1 <= asked <= have:
            raise UsageError(f"--{word} {asked}: {chosen.name} has {have}; expected 1 to {have}")
    return Machine(chosen, devices=devices, cores=have_cores if cores is None else cores)
