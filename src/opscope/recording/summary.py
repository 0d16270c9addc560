"""Summary: totals of one profile – per op kind, thread, lane, op, route, memory – and the tables behind them.

Ticks are of the statistics timer, pcycles of the core clock. None is unknown, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.meaning import Carries, Does, Party
from ..core.provenance import Provenance
from ..core.target_words import OUR_WORDS, TargetWords
from .language_model import LanguageModel

KB = 1024

# What the wall time is by who is at work: some engine computes; else bytes of the network are in flight; else those of
# the statistics; else nothing.
OCCUPANCY = ("compute", "transfer only", "statistics only", "nothing moves")


@dataclass(frozen=True, slots=True)
class KindRow:
    """All commands of one core that have kind, thread group, memory and operand types in common; or its waits."""

    core: int
    kind: str  # of waits: "sync" for other commands, "barrier" of threads for each other
    group: str
    memory: str
    types: str  # "float16, i8"
    ucycles: int
    pcycles: int | None
    count: int
    out_bytes: int | None
    deviation: float | None  # of the commands' pcycles per KB of output
    is_wait: bool = False

    @property
    def out_kb(self) -> float | None:
        return None if self.out_bytes is None else self.out_bytes / KB

    @property
    def ucycles_per_kb(self) -> float | None:
        return self.ucycles / self.out_kb if self.out_kb else None

    @property
    def pcycles_per_kb(self) -> float | None:
        return self.pcycles / self.out_kb if self.out_kb and self.pcycles is not None else None


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """One thread of one core over a whole inference."""

    core: int
    thread: int
    group: str
    start: int  # ticks
    end: int
    pcycles: int
    busy_pcycles: int | None  # at work on commands; None: the stats level does not record it
    activate: int | None  # ticks of set-up before the inference

    @property
    def ucycles(self) -> int:
        return self.end - self.start

    @property
    def utilization(self) -> float | None:
        return None if self.busy_pcycles is None or not self.pcycles else self.busy_pcycles / self.pcycles


@dataclass(frozen=True, slots=True)
class PortRow:
    """Ticks that a thread waited for a doorbell of the host."""

    core: int
    thread: int
    port: int
    wait: int
    is_input: bool


@dataclass(frozen=True, slots=True)
class DoorbellRow:
    """One ring of the doorbell of an input, in ticks."""

    core: int
    port: int
    time: int


@dataclass(frozen=True, slots=True)
class PmuRow:
    """One counter of the performance monitoring unit on one thread."""

    core: int
    thread: int
    event: int
    name: str
    value: int | None  # None: not simulated


@dataclass(frozen=True, slots=True)
class OpPmuRow:
    """One counter, summed over the commands of one kind on one core."""

    core: int
    event: int
    name: str
    kind: str
    value: int
    commands: int


@dataclass(frozen=True, slots=True)
class ActiveRow:
    """Share of the cycles of an inference in which one block of a core was at work, by its counters."""

    core: int
    block: str  # an engine, or the transfers
    share: float


@dataclass(frozen=True, slots=True)
class DdrRow:
    """Outer-memory traffic of one core."""

    core: int
    memory: str  # its name
    read_bytes: int
    write_bytes: int
    ticks: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Time of one inference on the device; None: not known."""

    value_ns: int | None
    low_ns: int | None
    high_ns: int | None
    provenance: Provenance

    @property
    def known_ns(self) -> int:
        """The time, where it cannot be unknown."""
        if self.value_ns is None:
            raise ValueError("the latency is not known")
        return self.value_ns


@dataclass(frozen=True, slots=True)
class Energy:
    """What one inference takes."""

    value_j: float
    low_j: float | None
    high_j: float | None
    provenance: Provenance
    note: str = ""  # what it leaves out


@dataclass(frozen=True, slots=True)
class LaneTotal:
    """One thread group of one core: busy + wait + idle = wall. Waits that are not recorded are in idle."""

    device: int
    core: int
    name: str
    busy_ns: int
    wait_ns: int | None
    idle_ns: int
    barrier_ns: int | None = None  # of busy: what its threads waited for each other, on average
    engine: str = ""  # whose thread, queue or stream it is: lanes of one engine are counted together; empty: not told

    @property
    def wall_ns(self) -> int:
        return self.busy_ns + (self.wait_ns or 0) + self.idle_ns

    @property
    def utilization(self) -> float:
        return self.busy_ns / self.wall_ns if self.wall_ns else 0.0


NO_OP_NAME = "(no op)"  # how work that belongs to no op of the graph is shown; what says so is that `op` is None


@dataclass(frozen=True, slots=True)
class OpTotal:
    """One graph op, or all ops of one layer, over all cores."""

    name: str
    type: str
    wall_ns: int | None  # time in which at least one command of it is at work or in flight
    busy_ns: int | None  # of all lanes together
    wait_ns: int | None  # of lanes, before its commands
    share: float | None  # of the busy time of all ops
    commands: int | None
    out_bytes: int | None
    moved_bytes: int | None
    macs: int | None
    engine: str  # the group that computes most of it, or where it only moves data, that issues it; empty: unknown
    placed: str  # local, or the outer memory that one of its operands lies in; empty: unknown
    reason: str = ""  # why it runs where it runs, where someone said so
    energy_j: float | None = None
    op: int | None = None  # position in Run.ops; None: of no one op, or not known
    does: str = Does.UNKNOWN.label  # of meaning.Does
    on_cpu: bool = False  # on the processor that everything falls back to
    carries: str = Carries.UNKNOWN.value  # of an op that moves bytes: one of meaning.Carries
    kernel: str = ""  # the routine that did most of it
    shape: str = ""  # of what it reads and what it makes, for people
    covers: tuple[str, ...] = ()  # other ops of the model that it does the work of
    vector_bytes: int | None = None  # that pass through vector units for it, at the least
    threads: int | None = None  # of its engine, that it used
    engine_threads: int | None = None  # that its engine has


@dataclass(frozen=True, slots=True)
class HostStage:
    """One stage of an inference as the application sees it: a part of its latency."""

    name: str  # one of host_times.STAGES, or the word of the tool that wrote it down
    ns: int
    party: Party = Party.UNKNOWN
    does: str = Does.UNKNOWN.label


@dataclass(frozen=True, slots=True)
class RouteTotal:
    """Transfers of one route on one core; core None: of all cores of the device."""

    device: int
    core: int | None
    route: str
    transfers: int
    bytes: int
    busy_ns: int  # at least one transfer in flight
    most_in_flight: int

    @property
    def gigabytes_per_s(self) -> float | None:
        return self.bytes / self.busy_ns if self.busy_ns else None


@dataclass(frozen=True, slots=True)
class WaitTotal:
    """What lanes of one group waited for, as in the findings: an engine, a transfer, another core, the host, …"""

    group: str  # who waited
    cause: str
    wait_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class ProducerTotal:
    """One producer that was waited for."""

    op: str
    kind: str
    group: str
    device: int
    core: int
    wait_ns: int
    count: int


@dataclass(frozen=True, slots=True)
class MemoryTotal:
    """One memory of one core or device."""

    name: str
    device: int
    core: int | None
    peak_bytes: int | None
    mean_bytes: float | None
    capacity_bytes: int | None
    read_bytes: int | None
    write_bytes: int | None


@dataclass(frozen=True, slots=True)
class CoreBalance:
    """Work of one core against the mean of its device, without the flush of the statistics at the end."""

    device: int
    core: int
    busy_pcycles: int
    ratio: float  # to the mean of the cores
    end_ns: int  # of its last command, from the start of the inference


@dataclass(frozen=True, slots=True)
class Placement:
    """Time that commands of one kind spent with all operands in local memory, and with one in outer memory."""

    kind: str
    group: str
    local_count: int
    local_ns: int
    outer_count: int
    outer_ns: int
    outer_memory: str


@dataclass(frozen=True, slots=True)
class Bucket:
    """Commands that took at least `low_ns` and less than `high_ns`."""

    low_ns: int
    high_ns: int
    count: int
    busy_ns: int


@dataclass(frozen=True, slots=True)
class Share:
    """A disjoint part of the wall time."""

    cause: str
    ns: float
    share: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals of one inference over everything it ran on."""

    latency: Latency
    throughput_per_s: float | None
    batch: int | None
    lanes: tuple[LaneTotal, ...] = ()
    memory: tuple[MemoryTotal, ...] = ()
    breakdown: tuple[
        Share, ...
    ] = ()  # of the wall time, by what holds its end back: as in the findings, by their BOUNDS
    occupancy: tuple[Share, ...] = ()  # of the wall time of the device, by OCCUPANCY; mean over cores
    op_types: tuple[OpTotal, ...] = ()
    ops: tuple[OpTotal, ...] = ()
    layers: tuple[OpTotal, ...] = ()
    blocks: tuple[OpTotal, ...] = ()
    routes: tuple[RouteTotal, ...] = ()
    waits: tuple[WaitTotal, ...] = ()
    producers: tuple[ProducerTotal, ...] = ()
    balance: tuple[CoreBalance, ...] = ()
    placement: tuple[Placement, ...] = ()
    histogram: tuple[Bucket, ...] = ()
    energy: Energy | None = None
    host: tuple[HostStage, ...] = ()  # of one inference, in order; together what the application sees
    samples_ns: tuple[int, ...] = ()  # latency of every inference, in order, where there were several
    language_model: LanguageModel | None = None  # None: tokens are nothing that this run tells of


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """The tables of one inference on one device, as the stats buffer gives them."""

    network: str
    device: int | None
    inference: int | None
    level: int | None
    batch_size: int
    stats_hz: float
    kinds: tuple[KindRow, ...]
    threads: tuple[ThreadRow, ...]
    ports: tuple[PortRow, ...] = ()
    doorbells: tuple[DoorbellRow, ...] = ()
    ddr: tuple[DdrRow, ...] = ()
    pmu: tuple[PmuRow, ...] = ()
    active: tuple[ActiveRow, ...] = ()
    op_pmu: tuple[OpPmuRow, ...] = ()
    inference_pcycles: tuple[int, ...] = ()  # per core, from its first start to its last end
    lost: int = 0  # command records that did not fit the buffer
    totals: Summary | None = None
    notes: tuple[str, ...] = field(default=())  # what the stats level lacks, and how to get it
    words: TargetWords = OUR_WORDS  # of the target

    @property
    def cores(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(row.core for row in self.threads))

    def threads_of(self, core: int) -> tuple[ThreadRow, ...]:
        return tuple(row for row in self.threads if row.core == core)

    def core_ucycles(self, core: int) -> int:
        """Of the thread that took longest: what percentages of a core's table divide by."""
        return max(row.ucycles for row in self.threads_of(core))

    def core_pcycles(self, core: int) -> int:
        return max(row.pcycles for row in self.threads_of(core))

    def effective_hz(self, core: int) -> float | None:
        ucycles = self.core_ucycles(core)
        return self.core_pcycles(core) / ucycles * self.stats_hz if ucycles else None

    @property
    def window(self) -> tuple[int, int]:
        """First start and last end of any thread, in ticks."""
        return min(row.start for row in self.threads), max(row.end for row in self.threads)

    @property
    def seconds(self) -> float:
        start, end = self.window
        return (end - start) / self.stats_hz

    def longest_wait(self, *, inputs: bool) -> int | None:
        waits = [row.wait for row in self.ports if row.is_input is inputs]
        return max(waits) if waits else None
