"""Choices of the vela backend, and the machines that Arm's configuration file describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...backends.measuring import filled_options
from ...backends.process import positive
from ...core.errors import UsageError, printable
from ...core.manifest import Value
from ...machine.target import Figure
from .manifest import ACCELERATORS, BACKEND, MODES

PACKAGE = "ethos-u-vela"
INSTALL = "pip install 'opscope[vela]'"
MACS_PER_CYCLE = {  # accelerator → int8 multiply-accumulates per cycle: the number in its name
    name: int(name.rsplit("-", 1)[1]) for name in ACCELERATORS
}
SYSTEMS = (  # of Arm/vela.ini in ethos-u-vela 5.2.0; the first of a family is what the compiler would assume for it
    "Ethos_U55_High_End_Embedded",
    "Ethos_U55_Deep_Embedded",
    "Ethos_U65_Client_Server",
    "Ethos_U65_High_End",
    "Ethos_U65_Mid_End",
    "Ethos_U65_Embedded",
    "Ethos_U85_SYS_DRAM_Mid",
    "Ethos_U85_SYS_DRAM_Low",
    "Ethos_U85_SYS_DRAM_High",
    "Ethos_U85_SYS_Flash_Low",
    "Ethos_U85_SYS_Flash_High",
)
ARM_CONFIG = "Arm/vela.ini"
_FLASH_SYSTEMS = ("Embedded", "Flash")  # their second memory is read-only: an arena cannot lie in it


@dataclass(frozen=True, slots=True)
class Accelerator:
    """What is known of a part without its compiler."""

    macs_per_cycle: Mapping[str, Figure]
    sources: Mapping[str, str] = field(
        default_factory=lambda: {"name": "Arm's name of the configuration, which ends with its 8-bit MACs per cycle"}
    )


def figures_of(accelerator: str) -> Accelerator:
    """Of one of the accelerators."""
    return Accelerator({"i8": Figure(MACS_PER_CYCLE[accelerator], "name")})


@dataclass(frozen=True, slots=True)
class VelaOptions:
    """Checked choices; nothing is left for the compiler to assume."""

    accelerator: str
    system: str
    memory_mode: str
    optimise: str = "performance"
    arena_bytes: int | None = None
    config: str = ARM_CONFIG
    tool: str | None = None  # another compiler than the package beside us

    @staticmethod
    def of(values: Mapping[str, Value]) -> VelaOptions:
        """Fill in defaults that depend on other options, and check that the choices go together."""
        filled = filled_options(BACKEND.name, BACKEND.options, values)
        own = filled["vela-config"]
        accelerator = str(filled["accelerator"])
        arena = filled["arena-cache-size"]
        system = str(filled["system-config"] or _default_system(accelerator))
        mode = str(filled["memory-mode"] or _default_mode(system))
        if own is None:
            _check_known("system-config", system, SYSTEMS)
            _check_known("memory-mode", mode, MODES)
            _check_goes_together(accelerator, system, mode)
        elif not Path(str(own)).is_file():
            raise UsageError(f"--vela-config {printable(str(own))}: no such file; expected a configuration of Vela's")
        elif not filled["system-config"] or not filled["memory-mode"]:
            raise UsageError("--vela-config: expected --system-config and --memory-mode too, each of a section in it")
        return VelaOptions(
            accelerator,
            system,
            mode,
            str(filled["optimise"]),
            None if arena is None else positive("arena-cache-size", arena, most=2**40),
            ARM_CONFIG if own is None else str(Path(str(own)).resolve()),
            None if filled["tool"] is None else str(filled["tool"]),
        )

    @property
    def macs_per_cycle(self) -> int:
        return MACS_PER_CYCLE[self.accelerator]

    def words(self) -> list[str]:
        """For the command line."""
        arena = [] if self.arena_bytes is None else ["--arena-cache-size", str(self.arena_bytes)]
        return [
            "--accelerator-config",
            self.accelerator,
            "--config",
            self.config,
            "--system-config",
            self.system,
            "--memory-mode",
            self.memory_mode,
            "--optimise",
            self.optimise.capitalize(),
            *arena,
        ]

    def shown(self) -> dict[str, str | int | bool | None]:
        return {
            "accelerator": self.accelerator,
            "system_config": self.system,
            "memory_mode": self.memory_mode,
            "optimise": self.optimise,
            "arena_cache_size": self.arena_bytes,
        }


def _family(name: str) -> str:
    """`ethos-u55-128` and `Ethos_U55_Deep_Embedded` are both of u55."""
    return name.lower().replace("_", "-").split("-")[1]


def _default_system(accelerator: str) -> str:
    return next(system for system in SYSTEMS if _family(system) == _family(accelerator))


def _has_flash(system: str) -> bool:
    return any(word in system for word in _FLASH_SYSTEMS)


def _default_mode(system: str) -> str:
    return "Shared_Sram" if _has_flash(system) else "Dedicated_Sram_384KB"


def _check_known(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(
            f"--{name} {printable(value)}: not in Arm's file; expected one of {', '.join(known)}, or --vela-config"
        )


def _check_goes_together(accelerator: str, system: str, mode: str) -> None:
    """The compiler takes the system of another family without a word, and its clock and memories with it."""
    if _family(system) != _family(accelerator):
        known = [name for name in SYSTEMS if _family(name) == _family(accelerator)]
        raise UsageError(f"--system-config {system}: not a system of {accelerator}; expected one of {', '.join(known)}")
    if _has_flash(system) and mode.startswith("Dedicated"):
        raise UsageError(
            f"--memory-mode {mode}: {system} has flash behind its SRAM, and an arena cannot lie in flash; "
            "expected Shared_Sram or Sram_Only"
        )
