"""Options that several verbs offer, in the same words."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.converting_options import PRECISION_HELP
from ..core.random_arrays import RANDOM_INPUTS
from ..core.units import parse_seconds, parse_size
from . import KV_CACHES, Option, shown

TIME_LIMIT_S = 600.0  # of what runs in a process of its own


def shapes(of: str = "") -> Mapping[str, Option]:
    """Shapes of inputs; `of` says whose, where that is more than one model."""
    words = ", ".join(filter(None, ("shape of an input, or size of a named dimension (height=320)", of)))
    return shown(f"{words}; may be repeated", "NAME=1x3x224x224", flags=("--shape",))


CORES = shown("cores to use per device (default: all)", "N", least=1)
DEVICES = shown("devices to use (default 1)", "N", least=1)
BATCH = shown("batch size: leading dimension of every input", "N", least=1)
SHAPES = shapes()
SHAPES_FROM_RUN = shown(
    "run the model once in its reference runtime and take the shapes, branches and trips that only data decide; inputs "
    "are random or those of the file",
    "INPUTS.npz",
    bare=RANDOM_INPUTS,
)
PRECISION = shown(PRECISION_HELP, "P")
KV_CACHE = shown("how a cache of keys and values is stored (default as-is)", choices=KV_CACHES)
RETAINED_STATE = shown("keep state on the device between inferences: key and value caches")
PARALLEL = shown(
    "how devices share the work: tensor: each op; pipeline: stages of the network; auto: the faster one (default auto)",
    choices=("auto", "tensor", "pipeline"),
)
ACTIVATIONS = shown("instances of the program that run at once (default 1)", "N", least=1)
THREADS = shown("host threads per activation (default 4)", "N", least=1)
SEED = shown("seed of random inputs and of varied times (default 0)", "N", least=0)
PMU_RECIPE = shown("count a named set of PMU events", "R", group="statistics")
MEMORY_LIMIT = shown(
    "most memory of a process (default: an equal share of the machine's)",
    "SIZE",
    flags=("--memory-limit",),
    read=parse_size,
)


def jobs(what: str = "processes") -> Mapping[str, Option]:
    """How much runs side by side on this machine."""
    return shown(f"{what} at once (default: cores)", "N", least=1)


def time_limit(of: str) -> Mapping[str, Option]:
    """How long one of several may take, as `90s`."""
    words = f"longest time of a {of} (default {TIME_LIMIT_S:g}s)"
    return shown(words, "T", flags=("--time-limit",), read=parse_seconds)


def num_iter(default: int) -> Mapping[str, Option]:
    """How many inferences run."""
    return shown(f"inferences per activation (default {default})", "N", least=1)


def set_size(default: int) -> Mapping[str, Option]:
    """How many inferences are on their way at once."""
    return shown(f"inferences in flight per activation (default {default})", "N", least=1)


def num_samples(group: str = "") -> Mapping[str, Option]:
    """How many inferences are looked at; `group` is the heading in the help."""
    return shown("inferences of each activation to profile in full (default 1)", "N", least=1, group=group)
