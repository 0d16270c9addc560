"""Options of a session: ours, and the vendor's names for them, from keywords or from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import UsageError, printable
from ...options import Shapes
from ...program.program import OP_LEVEL

VENDOR_NAMES = {  # what they call it → what we call it
    "aic_num_cores": "cores",
    "num_cores": "cores",
    "num_activations": "activations",
    "aic_pmu_recipe": "pmu_recipe",
    "aic_pmu_events": "pmu_events",
    "batch_size": "batch",
    "num_iters": "num_iter",
}
_IGNORED = ("dev_id", "device_id", "aic_hw", "aic_hw_version", "compile_only")  # the device is simulated
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session compiles, and what it runs; fields mean what they mean in CompileOptions and RunOptions."""

    cores: int | None = None
    devices: int = 1
    batch: int | None = None
    shapes: Shapes | None = None
    precision: str | None = None
    kv_cache: str = "as-is"
    retained_state: bool = False
    stats_level: int = OP_LEVEL
    ddr_stats: bool = False
    pmu_recipe: str | None = None
    pmu_events: str | None = None
    stats_batchsize: int | None = None
    activations: int = 1  # these and what follows: of benchmarks
    set_size: int = 10
    num_iter: int = 40
    seed: int = 0


def our_names(given: Mapping[str, object]) -> dict[str, object]:
    """Options under our names; one that is given under two names is an error."""
    found: dict[str, object] = {}
    for name, value in given.items():
        if name in _IGNORED:
            continue
        own = VENDOR_NAMES.get(name, name)
        if own in found:
            raise UsageError(f"option {printable(name)}: {own} is given twice; expected one of the names")
        found[own] = _events(value) if own == "pmu_events" else value
    return found


def _events(value: object) -> object:
    """Events as text; a list has numbers, or text with hexadecimal ones."""
    if not isinstance(value, list | tuple):
        return value
    return ",".join(f"{event:X}" if isinstance(event, int) else str(event) for event in value)


def read_options(path: Path) -> dict[str, object]:
    """The options of a file with a line `name: value` each: the part of YAML that the vendor's files use."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({printable(str(error))}); expected lines `name: value`") from error
    found: dict[str, object] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split(" #")[0].strip()
        if not content or content.startswith(("#", "---")):
            continue
        name, colon, value = content.partition(":")
        if not colon or line[:1].isspace() or not value.strip():
            raise UsageError(f"{path}: line {number}: {printable(content)!r}; expected `name: value`")
        found[name.strip().lstrip("-").replace("-", "_")] = _value(value.strip())
    return found


def _value(text: str) -> object:
    words = {"true": True, "false": False, "null": None, "~": None}
    if text.lower() in words:
        return words[text.lower()]
    bare = text.strip("\"'")
    return int(text) if text.isascii() and text.isdecimal() else bare
