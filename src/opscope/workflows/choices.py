"""What a user may choose about a profile of our own: on the simulated device, or by estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import __version__
from ..backends.registry import BackendState
from ..core.errors import UsageError
from ..core.manifest import Option, Value
from ..machine import catalogue as targets
from ..machine.target import Target
from ..program.program import OP_LEVEL

SIMULATE, ESTIMATE = "sim", "estimate"
_OF_BOTH = (
    Option("cores", "cores to use per device (default: all)", is_number=True, metavar="N"),
    Option("devices", "devices to use (default 1)", is_number=True, metavar="N"),
    Option("batch", "leading dimension of every input", is_number=True, metavar="N"),
)
OWN: dict[str, tuple[Option, ...]] = {  # backends that need a target and no runtime of a vendor
    SIMULATE: (
        *_OF_BOTH,
        Option("precision", "run float tensors as this type: f16, i8 (default: as the target says)", metavar="P"),
        Option("parallel", "how devices share the work (default tensor)", choices=("tensor", "pipeline")),
        Option("stats-level", "70 (default: every operator) or 100 (their PMU)", is_number=True, metavar="N"),
        Option("pmu-recipe", "count a named set of PMU events", metavar="R"),
        Option("num-iter", "inferences to run (default 10)", is_number=True, metavar="N"),
        Option("num-samples", "inferences to profile in full (default 1)", is_number=True, metavar="N"),
        Option("activations", "instances of the program at once (default 1)", is_number=True, metavar="N"),
        Option("set-size", "inferences on their way at once (default 1)", is_number=True, metavar="N"),
        Option("threads", "host threads per instance (default 4)", is_number=True, metavar="N"),
        Option("seed", "of everything that varies (default 0)", is_number=True, metavar="N"),
    ),
    ESTIMATE: _OF_BOTH,
}


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user may choose about a profile on the simulated device."""

    cores: int | None = None  # per device; None: all
    devices: int = 1
    batch: int | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    precision: str | None = None
    parallel: str = "tensor"
    stats_level: int = OP_LEVEL
    ddr_stats: bool = True
    pmu_recipe: str | None = None
    num_iter: int = 10
    activations: int = 1
    set_size: int = 1  # one inference at a time: the host's stages stand one behind the other
    threads: int = 4
    num_samples: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.stats_level < OP_LEVEL:
            raise UsageError(f"stats level {self.stats_level}: has no operators; expected 70 or 100 to profile")

    @property
    def of_compiler(self) -> dict[str, object]:
        """The part of them that the program depends on."""
        host = ("num_iter", "activations", "set_size", "threads", "num_samples", "seed")
        return {name: value for name, value in asdict(self).items() if name not in host}


def own_backend(target: Target) -> str:
    """Simulated where the target's file says enough for it, else estimated."""
    return SIMULATE if target.is_compilable else ESTIMATE


def own_states() -> tuple[BackendState, ...]:
    """The backends that need nothing but the package itself."""
    known = [targets.load(name) for name in targets.catalogue()]
    simulated = sum(target.is_compilable for target in known)
    return (
        BackendState(SIMULATE, "the simulated device", True, __version__, f"for {simulated} of {len(known)} targets"),
        BackendState(ESTIMATE, "estimate by formulas", True, __version__, f"for all {len(known)} targets"),
    )


def choices_from(options: Mapping[str, Value], shapes: Mapping[str, tuple[int, ...]] | None) -> Choices:
    """Options by name, as the command line has them, to what they mean; what is None keeps its default."""
    known = {option.name for option in OWN[SIMULATE]}
    for name in options:
        if name not in known:
            raise UsageError(f"option {name!r}: not known here; expected one of {', '.join(sorted(known))}")
    given = {name.replace("-", "_"): value for name, value in options.items() if value is not None}
    return Choices(**given, shapes=dict(shapes or {}))  # type: ignore[arg-type]


def load_target(target: str | Path | Target | None) -> tuple[Target, str]:
    """The target, and the file it came from where it is not of the catalogue."""
    if target is None:
        wanted = "--target NAME (see `opscope targets`), or --backend of a runtime (see `opscope doctor`)"
        raise UsageError(f"profile: no target; expected {wanted}")
    if isinstance(target, Target):
        return target, ""
    place = Path(target)
    return targets.load(str(target)), str(place.resolve()) if place.suffix == ".toml" else ""
