"""Who says how long a candidate takes: any backend or target, asked in a process of its own.

Formulas are worked out here, one candidate after the other: that takes less time than to start a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

import msgspec

from ..backends import registry as backends
from ..backends.process import run_worker, work_folder
from ..core.errors import ProfilerError, printable
from ..core.files import sha256_of
from ..core.keys import code_of, digest_of
from ..core.manifest import Value
from ..core.provenance import Provenance
from ..gate.bootstrap import ratio_interval, spread_of
from ..options import Shapes
from ..workflows import own_backends

LEAST_GAIN = 0.001  # of a time that comes out the same every time; less is no reason to change a model
_ONE_AT_A_TIME = Lock()
_WORKER = f"{__package__}.trial_worker"
JUDGES = (  # code that a time comes from
    *("core", "options", "graph", "machine", "program", "recording", "readers", "estimate", "simulation", "compiler"),
    *("device", "decode", "analysis", "changes", "quantization", "conversion", "workflows", "backends", "importers"),
    "plugins",
)


class OpCost(msgspec.Struct, frozen=True):
    """What an op takes: of the critical path, and in all."""

    path_ns: int
    wall_ns: int


class Judged(msgspec.Struct, frozen=True):
    """What a candidate came to, or why the judge cannot say."""

    latency_ns: int | None = None  # None: not known
    low_ns: int | None = None
    high_ns: int | None = None
    provenance: Provenance | None = None
    obtained: str = ""  # the same in words, with what it rests on
    known_ns: int = 0  # of the ops whose cost is known, where the whole is not
    unknown_ops: int = 0  # ops that no time holds, as those that a vendor's model of its accelerator leaves out
    samples_ns: tuple[int, ...] = ()
    ops: Mapping[str, OpCost] = {}
    problem: str = ""  # why there is no time; empty: there is

    @property
    def time_ns(self) -> int:
        """What is compared: the latency, or the known part of it."""
        return self.known_ns if self.latency_ns is None else self.latency_ns

    @property
    def is_repeatable(self) -> bool:
        """Whether asking again gives the same number."""
        return self.provenance is not Provenance.MEASURED

    def cost(self, names: tuple[str, ...]) -> tuple[int, int]:
        """Of these ops together, to put changes in order: of the critical path, then in all."""
        known = [self.ops[name] for name in dict.fromkeys(names) if name in self.ops]
        return sum(op.path_ns for op in known), sum(op.wall_ns for op in known)


def change_ns(before: Judged, after: Judged) -> int:
    """How much longer the second takes; below 0 it is faster."""
    return after.time_ns - before.time_ns


def speedup(before: Judged | None, after: Judged | None) -> float | None:
    """Time before ÷ time after; None: not known, or not of the same, as where ops of unknown cost came or went."""
    if before is None or after is None or before.unknown_ops != after.unknown_ops:
        return None
    return before.latency_ns / after.latency_ns if before.latency_ns and after.latency_ns else None


def helps(before: Judged, after: Judged) -> bool:
    """Whether the second is better by more than noise: fewer ops of unknown cost, or a shorter time."""
    if after.problem or after.unknown_ops != before.unknown_ops:
        return not after.problem and after.unknown_ops < before.unknown_ops
    if before.is_repeatable:
        return after.time_ns < before.time_ns * (1 - LEAST_GAIN)
    if before.samples_ns and after.samples_ns:
        interval = ratio_interval(spread_of(before.samples_ns), spread_of(after.samples_ns), seed=0)
        if interval is not None:
            return interval.high < -LEAST_GAIN
    return after.high_ns is not None and before.low_ns is not None and after.high_ns < before.low_ns


def is_slower(before: Judged, after: Judged) -> bool:
    """Whether the second is worse by more than noise."""
    return bool(after.problem) or helps(after, before)


def joined(one: Judged, other: Judged) -> Judged:
    """Two measurements of the same file as one."""
    samples = (*one.samples_ns, *other.samples_ns)
    ordered = sorted(samples)
    tenth = len(ordered) // 10
    return msgspec.structs.replace(
        one,
        samples_ns=samples,
        latency_ns=ordered[(len(ordered) - 1) // 2],
        low_ns=ordered[tenth],
        high_ns=ordered[-1 - tenth],
    )


@dataclass(frozen=True)
class Judge:
    """A backend with its choices, as `opscope profile` takes them."""

    backend: str
    target: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)

    @cached_property
    def key(self) -> str:
        """Of all that an answer depends on but the model."""
        own = self.backend in own_backends.OWN
        version = "" if own else backends.load(self.backend).state().version
        target = self.target or ""
        target += sha256_of(Path(target)) if target and Path(target).is_file() else ""
        asked = msgspec.json.encode([dict(self.options), dict(self.shapes)], order="deterministic").decode()
        reads = sha256_of(Path(__file__).with_name("trial_worker.py"))
        return digest_of(self.backend, version, target, asked, code_of(*JUDGES), reads)

    @property
    def told(self) -> str:
        """In words: who, about what."""
        part = next((str(value) for name, value in self.options.items() if value and name == self._part), "")
        return " of ".join(filter(None, (self.backend, self.target or part)))

    @property
    def _part(self) -> str:
        return "" if self.backend in own_backends.OWN else backends.find(self.backend).part

    def ask(self, model: Path, *, longest_s: float) -> Judged:
        """Profile a file in a process of its own; one that is refused, crashes or takes too long has a problem."""
        request: dict[str, object] = {
            "model": str(model.resolve()),
            "backend": self.backend,
            "target": self.target,
            "options": dict(self.options),
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
        }
        if self.backend == own_backends.ESTIMATE:
            return _estimated(request)
        with work_folder("optimize") as folder:
            answer, ended = run_worker(_WORKER, request, folder, longest_s=longest_s)
        if answer is None:
            return Judged(problem=f"{self.backend} {ended.how}; it says: {ended.last_words}")
        if not answer["ok"]:
            return _refused(str(answer["problem"]), model)
        return msgspec.convert(answer["judged"], Judged)


def _estimated(request: Mapping[str, object]) -> Judged:
    from .trial_worker import judged

    with _ONE_AT_A_TIME:
        try:
            return judged(request)
        except ProfilerError as error:
            return _refused(str(error), Path(str(request["model"])))


def _refused(words: str, model: Path) -> Judged:
    return Judged(problem=printable(words.replace(f"{model.resolve()}: ", ""), 600))
