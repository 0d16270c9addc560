"""What users may choose, once: from these classes come flags of the command line, keywords of the api and its checks.

An option is a line in every class that offers it: name, type, default, and metadata that says the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .core.errors import UsageError, did_you_mean, printable
from .core.random_arrays import RANDOM_INPUTS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_ACTIVATIONS = 4096
MOST_INFERENCES = 10_000_000  # a row of all times each: more would not fit in memory
DEFAULT_ITERATIONS = 40
DEFAULT_OVERLAP_PARTS = 4  # what the best published compilations cut their ops into
MOST_SAMPLES = 100_000  # that a copy is calibrated with
MOST_TOKENS = 1 << 23  # of a prompt or a context, and users at once
MOST_POINTS = 4096  # of a language model
KV_CACHES = ("as-is", "mxint8")
PROFILES = ("stats", "trace", "latency", "raw_device_stats")
LEAST_LEVEL_TO_PROFILE = 70  # statistics of every operator

_OPTION = "option"  # key of the metadata of a field

Shapes = Mapping[str, tuple[int, ...]]  # graph input name → shape
Options = TypeVar("Options", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class Option:
    """What a user is told of an option, and how it is written on a command line."""

    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()  # of a bool: the words for no and yes
    least: int | None = None  # of a whole number
    flags: tuple[str, ...] = ()  # where they are not the name of the field
    group: str = ""  # heading in the help
    bare: str = ""  # what the flag means without a value; empty: it needs one


def _shown(
    words: str,
    metavar: str | None = None,
    *,
    choices: tuple[str, ...] = (),
    least: int | None = None,
    flags: tuple[str, ...] = (),
    group: str = "",
    bare: str = "",
) -> Mapping[str, Option]:
    """The metadata of a field that is an option."""
    return {_OPTION: Option(words, metavar, choices, least, flags, group, bare)}


def options_of(kind: type[DataclassInstance]) -> dict[str, Option]:
    """Every field that a command line offers, in order."""
    return {each.name: each.metadata[_OPTION] for each in fields(kind) if _OPTION in each.metadata}


def chosen(kind: type[Options], options: Options | None, named: Mapping[str, object]) -> Options:
    """The options given, or the default ones, with those that are given by name."""
    known = [each.name for each in fields(kind)]
    for name in named:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"option {printable(name)!r}: not known; {hint}expected one of {', '.join(known)}")
    if options is not None and not isinstance(options, kind):
        raise UsageError(f"options {printable(repr(options))}: expected {kind.__name__}")
    return replace(kind() if options is None else options, **named)


def part_of(kind: type[Options], whole: DataclassInstance) -> Options:
    """The options of one kind, with the values that another kind has under the same names."""
    have = {each.name for each in fields(whole)}
    shared = {each.name: getattr(whole, each.name) for each in fields(kind) if each.name in have}
    return replace(kind(), **shared)


def _check_words(options: DataclassInstance) -> None:
    """Of options that are one of several words, or several of them, each word is known."""
    for name, option in options_of(type(options)).items():
        value = getattr(options, name)
        if not option.choices or isinstance(value, bool):
            continue
        for word in value if isinstance(value, tuple) else (value,):
            if word not in option.choices:
                two = len(option.choices) == 2
                known = " or ".join(option.choices) if two else f"one of {', '.join(option.choices)}"
                raise UsageError(f"{name.replace('_', ' ')} {printable(str(word))!r}: not known; expected {known}")


_CORES = _shown("cores to use per device (default: all)", "N", least=1)
_DEVICES = _shown("devices to use (default 1)", "N", least=1)
_BATCH = _shown("leading dimension of every input", "N", least=1)
_SHAPES = _shown(
    "shape of an input, or size of a named dimension (height=320); may be repeated",
    "NAME=1x3x224x224",
    flags=("--shape",),
)
_SHAPES_FROM_RUN = _shown(
    "run the model once in its reference runtime and take the shapes, branches and trips that only data decide; inputs "
    "are random or those of the file",
    "INPUTS.npz",
    bare=RANDOM_INPUTS,
)
_PRECISION = _shown(
    "the model as a quantiser leaves it: f16, w8a8 (= i8), w8a16, w4a16, mxfp6 (weights only), as the target has them "
    "(default: as it is)",
    "P",
)
_KV_CACHE = _shown("how a cache of keys and values is stored (default as-is)", choices=KV_CACHES)
_PARALLEL = _shown(
    "how devices share the work: each op, stages of the network, or what is faster (default auto)",
    choices=("auto", "tensor", "pipeline"),
)
_PLANNER = _shown("what another planner of the arena would save: best, or the name of an interpreter: tflm", "P")
_PMU_RECIPE = _shown("count a named set of PMU events", "R", group="statistics")


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What to estimate."""

    shapes: Shapes | None = field(default=None, metadata=_SHAPES)
    shapes_from_run: str | None = field(default=None, metadata=_SHAPES_FROM_RUN)
    batch: int | None = field(default=None, metadata=_BATCH)
    cores: int | None = field(default=None, metadata=_CORES)
    devices: int = field(default=1, metadata=_DEVICES)
    precision: str | None = field(default=None, metadata=_PRECISION)
    kv_cache: str = field(default=KV_CACHES[0], metadata=_KV_CACHE)
    advise: bool = field(default=True, metadata=_shown("skip the what-if suggestions", flags=("--no-advice",)))
    planner: str | None = field(default=None, metadata=_PLANNER)
    battery: str | None = field(
        default=None, metadata=_shown("how long it lasts, at --duty: 220mAh@3V or 1.2Wh", "B", group="battery")
    )
    duty: str | None = field(
        default=None, metadata=_shown("how often it runs: 1/s, 4/min, 1/10s", "N/T", group="battery")
    )
    sleep: str | None = field(
        default=None,
        metadata=_shown("power between inferences: 5uW (default: the target's)", "P", group="battery"),
    )
    fingerprint: bool = True  # put the SHA-256 of the model file into the report, which means reading all of it

    def __post_init__(self) -> None:
        _check_words(self)
        if (self.battery is None) != (self.duty is None) or (self.sleep and self.battery is None):
            raise UsageError("--battery, --duty: one without the other; expected both, and --sleep only with them")


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How to compile a model for the simulated device."""

    cores: int | None = field(default=None, metadata=_CORES)
    devices: int = field(default=1, metadata=_DEVICES)
    parallel: str = field(default="auto", metadata=_PARALLEL)
    batch: int | None = field(default=None, metadata=_BATCH)
    shapes: Shapes | None = field(default=None, metadata=_SHAPES)
    shapes_from_run: str | None = field(default=None, metadata=_SHAPES_FROM_RUN)
    precision: str | None = field(default=None, metadata=_PRECISION)
    kv_cache: str = field(default=KV_CACHES[0], metadata=_KV_CACHE)
    retained_state: bool = field(
        default=False, metadata=_shown("keep state on the device between inferences: caches of keys and values")
    )
    channel_parts: int | None = field(
        default=None,
        metadata=_shown(
            "most parts that cores of a device cut channels of a product into (default: all)", "N", least=1
        ),
    )
    overlap_parts: int = field(
        default=DEFAULT_OVERLAP_PARTS,
        metadata=_shown("most pieces that an op is cut into so that engines overlap (default 4)", "N", least=1),
    )
    stats_level: int = field(
        default=40,
        metadata=_shown(
            "0, 40 or more (default), 50 or more (ports), 70 or more (every operator), 100 or more (their PMU)",
            "N",
            group="statistics",
        ),
    )
    ddr_stats: bool = field(default=False, metadata=_shown("count DDR traffic per core", group="statistics"))
    pmu_recipe: str | None = field(default=None, metadata=_PMU_RECIPE)
    pmu_events: str | None = field(
        default=None, metadata=_shown("count these PMU events, at most 8: 3F,70,200", "HEX,…", group="statistics")
    )
    stats_batchsize: int | None = field(
        default=None, metadata=_shown("inferences in one batch (default: batch)", "N", least=1, group="statistics")
    )
    network: str | None = None  # its name in file names and traces; None: as the target says

    def __post_init__(self) -> None:
        _check_words(self)
        for word, parts in (("channel parts", self.channel_parts), ("overlap parts", self.overlap_parts)):
            if parts is not None and parts < 1:
                raise UsageError(f"{word} {parts}: expected 1 or more")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How much work, how much of it at once, which part of it is profiled, and what is written."""

    save_outputs: bool = field(default=False, metadata=_shown("run the original model, write outputs as .npy or .npz"))
    num_iter: int | None = field(default=None, metadata=_shown("inferences per activation (default 40)", "N", least=1))
    time: float | None = field(
        default=None, metadata=_shown("enqueue inferences for this many seconds of simulated time", "S")
    )
    activations: int = field(default=1, metadata=_shown("instances of the program at once (default 1)", "N", least=1))
    set_size: int = field(default=10, metadata=_shown("inferences in flight per activation (default 10)", "N", least=1))
    threads: int = field(default=4, metadata=_shown("host threads per activation (default 4)", "N", least=1))
    seed: int = field(default=0, metadata=_shown("seed of random inputs and of varied times (default 0)", "N", least=0))
    profile: tuple[str, ...] = field(
        default=(),
        metadata=_shown(
            "stats: text with host stages; trace: Chrome JSON with host stages; latency: CSV; raw_device_stats: "
            "stats buffers for `opscope opstats`; may be repeated",
            choices=PROFILES,
            group="profiling",
        ),
    )
    out_dir: Path = field(
        default=Path(),
        metadata=_shown("folder, must exist (default: here)", "DIR", flags=("-o", "--out-dir"), group="profiling"),
    )
    num_samples: int = field(
        default=1,
        metadata=_shown("inferences of each activation to profile (default 1)", "N", least=1, group="profiling"),
    )
    start_iter: int = field(
        default=0, metadata=_shown("first inference to profile (default 0)", "N", least=0, group="profiling")
    )
    start_delay: float = field(
        default=0.0, metadata=_shown("milliseconds of simulated time before profiling starts", "MS", group="profiling")
    )

    def __post_init__(self) -> None:
        """Check ranges and combinations; sequences and paths may come in any form."""
        object.__setattr__(self, "profile", tuple(self.profile))
        object.__setattr__(self, "out_dir", Path(self.out_dir))
        _check_words(self)
        self._check_ranges()
        if self.time is not None and not (isfinite(self.time) and self.time > 0):
            raise UsageError(f"time {self.time}: expected a positive number of seconds")
        if not (isfinite(self.start_delay) and self.start_delay >= 0):
            raise UsageError(f"start-delay {self.start_delay}: expected 0 or more milliseconds")
        if self.limit * self.activations > MOST_INFERENCES and self.time is None:
            raise UsageError(
                f"num-iter {self.limit} × activations {self.activations}: expected at most {MOST_INFERENCES} inferences"
            )

    def _check_ranges(self) -> None:
        for word, value, low, high in (
            ("num-iter", self.limit, 1, MOST_INFERENCES),
            ("activations", self.activations, 1, MOST_ACTIVATIONS),
            ("set-size", self.set_size, 1, 1_000_000),
            ("threads", self.threads, 1, 1024),
            ("num-samples", self.num_samples, 1, MOST_INFERENCES),
            ("start-iter", self.start_iter, 0, MOST_INFERENCES),
            ("seed", self.seed, 0, 2**64 - 1),
        ):
            if not low <= value <= high:
                raise UsageError(f"{word} {value}: out of range; expected {low} to {high}")

    @property
    def limit(self) -> int:
        """Inferences per activation that are never exceeded."""
        if self.num_iter is not None:
            return self.num_iter
        return DEFAULT_ITERATIONS if self.time is None else MOST_INFERENCES

    @property
    def end_ns(self) -> float:
        """Nothing is enqueued from then on."""
        return float("inf") if self.time is None else self.time * 1e9


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """How to profile a model on the simulated device, or by estimate."""

    cores: int | None = field(default=None, metadata=_CORES)
    devices: int = field(default=1, metadata=_DEVICES)
    batch: int | None = field(default=None, metadata=_BATCH)
    shapes_from_run: str | None = field(default=None, metadata=_SHAPES_FROM_RUN)
    precision: str | None = field(default=None, metadata=_PRECISION)
    kv_cache: str = field(default=KV_CACHES[0], metadata=_KV_CACHE)
    parallel: str = field(default="auto", metadata=_PARALLEL)
    stats_level: int = field(
        default=LEAST_LEVEL_TO_PROFILE,
        metadata=_shown("70 or more (default: every operator), 100 or more (their PMU)", "N", least=1),
    )
    pmu_recipe: str | None = field(default=None, metadata=_PMU_RECIPE)
    num_iter: int = field(default=10, metadata=_shown("inferences to run (default 10)", "N", least=1))
    num_samples: int = field(default=1, metadata=_shown("inferences to profile in full (default 1)", "N", least=1))
    activations: int = field(default=1, metadata=_shown("instances of the program at once (default 1)", "N", least=1))
    set_size: int = field(default=1, metadata=_shown("inferences in flight (default 1)", "N", least=1))
    threads: int = field(default=4, metadata=_shown("host threads per instance (default 4)", "N", least=1))
    seed: int = field(default=0, metadata=_shown("seed of everything that varies (default 0)", "N", least=1))
    shapes: Shapes = field(default_factory=dict)
    ddr_stats: bool = True

    def __post_init__(self) -> None:
        if self.stats_level < LEAST_LEVEL_TO_PROFILE:
            raise UsageError(f"stats level {self.stats_level}: has no operators; expected 70 or more to profile")
        _check_words(self)


@dataclass(frozen=True, slots=True)
class LlmOptions:
    """How a language model is held and served, and the points that are asked for."""

    devices: int = field(default=1, metadata=_DEVICES)
    weights: str = field(default="f16", metadata=_shown("how weights are stored: f16 (default), i8, w4, mxfp6, …", "P"))
    kv: str = field(default="f16", metadata=_shown("how keys and values are stored: f16 (default), i8, mxint8", "P"))
    prompt: tuple[int, ...] = field(
        default=(128, 1024), metadata=_shown("tokens read before the first answer (default 128,1024)", "N,N,…")
    )
    context: tuple[int, ...] | None = field(
        default=None,
        metadata=_shown("tokens in the cache when the next one is made (default: as many as the prompt)", "N,N,…"),
    )
    batch: tuple[int, ...] = field(default=(1,), metadata=_shown("users at once (default 1)", "N,N,…"))
    parallel: str = field(default="auto", metadata=_PARALLEL)
    chunk: int | None = field(
        default=None,
        metadata=_shown("tokens of a prompt read at once (default: as the target's runtime)", "N", least=1),
    )
    simulate: bool = field(
        default=False, metadata=_shown("run the steps on the simulated device, where the target has one (slower)")
    )

    def __post_init__(self) -> None:
        for name in ("prompt", "context", "batch"):
            values = getattr(self, name)
            if values is None and name == "context":
                continue
            found = tuple(dict.fromkeys((values,) if isinstance(values, int) else values))
            object.__setattr__(self, name, found)
            if not found or not all(1 <= value <= MOST_TOKENS for value in found):
                raise UsageError(f"{name} {','.join(map(str, found))}: out of range; expected 1 to {MOST_TOKENS:,}")
        if self.devices < 1:
            raise UsageError(f"devices {self.devices}: out of range; expected at least 1")
        _check_words(self)
        if len(self.points) > MOST_POINTS:
            raise UsageError(
                f"{len(self.points):,} points; expected at most {MOST_POINTS:,}: fewer values in the lists"
            )

    @property
    def points(self) -> tuple[tuple[int, int, int], ...]:
        """Batch, prompt and context of each; a cache that does not hold the prompt is none."""
        pairs = [
            (prompt, context)
            for prompt in self.prompt
            for context in ((prompt,) if self.context is None else self.context)
            if context >= prompt
        ]
        if not pairs:
            least, most = min(self.prompt), max(self.context or (0,))
            raise UsageError(f"context {most}: is shorter than every prompt; expected at least {least}")
        return tuple((batch, *pair) for batch in self.batch for pair in pairs)


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """What copy to make of a model, and with which data."""

    precision: str = field(
        default="w8a8",
        metadata=_shown("weights and activations: w8a8 (default), w8a16, w16a16, w4a8, w4a16; or f16", "P"),
    )
    data: Path | None = field(
        default=None,
        metadata=_shown("calibrate with these: an .npz with an array per input, or a folder of them", "DIR|F.npz"),
    )
    random: int | None = field(
        default=None,
        metadata=_shown("calibrate with N random samples instead: for questions of speed alone", "N", least=1),
    )
    seed: int = field(default=0, metadata=_shown("seed of random samples (default 0)", "N", least=0))
    shapes: Shapes | None = field(default=None, metadata=_SHAPES)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", None if self.data is None else Path(self.data))
        if self.random is not None and not 1 <= self.random <= MOST_SAMPLES:
            raise UsageError(f"random {self.random}: expected 1 to {MOST_SAMPLES} samples")


@dataclass(frozen=True, slots=True)
class OpstatsOptions:
    """What to make of every sample of raw statistics."""

    summary: bool = field(default=False, metadata=_shown("text: op tables, totals, and where the time goes"))
    trace: bool = field(default=False, metadata=_shown("timeline for chrome://tracing and Perfetto"))
    run: Path | None = field(default=None, metadata=_shown("write a run folder for analyze, compare and view", "RUN"))
    trace_format: str = field(
        default="json", metadata=_shown("default: json", choices=("json", "perfetto"), group="trace")
    )
    host_trace: Path | None = field(
        default=None, metadata=_shown("Chrome JSON of host events, shown above", "F", group="trace")
    )
    cores: tuple[int, ...] | None = field(
        default=None, metadata=_shown("default: all", "0,5,1", flags=("-c", "--select-cores"), group="trace")
    )
    devices: tuple[int, ...] | None = field(
        default=None, metadata=_shown("default: all", "0,1", flags=("-d", "--select-devices"), group="trace")
    )
    merge_devices: bool = field(
        default=True,
        metadata=_shown(
            "all devices of a sample in one file (default true)",
            "true|false",
            flags=("--merge-mq-traces",),
            group="trace",
        ),
    )
    merge_thread_groups: bool = field(
        default=True,
        metadata=_shown(
            "one row per thread group instead of one per thread (default true)", "true|false", group="trace"
        ),
    )
    flows: bool = field(
        default=False,
        metadata=_shown("dependency arrows", choices=("none", "full"), flags=("--flow-events",), group="trace"),
    )
    barriers: bool = field(
        default=False,
        metadata=_shown(
            "a row of barriers for every thread of every engine", flags=("--show-barrier-events",), group="trace"
        ),
    )
    workers: int = 1  # processes to decode in; a script that asks for more than one needs the usual `__main__` guard

    def __post_init__(self) -> None:
        for name, kind in (("cores", tuple), ("devices", tuple), ("host_trace", Path), ("run", Path)):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else kind(value))
        _check_words(self)
