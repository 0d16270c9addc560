"""Target: hardware as data. Engines, memories, clocks, energy and support, each figure with its source.

One generic machine, specialised by a TOML file only (`docs/targets.md` describes every key). Nothing in the code
knows a chip by name: what a chip does differently from another must be said by a figure or a list in its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ..core.meaning import Carries
from ..core.target_words import OUR_WORDS, TargetWords
from ..graph.graph import DType, Op
from ..graph.work_families import WorkFamily
from .calibration import Calibration, Judged, Validation
from .figure import Figure as Figure  # noqa: PLC0414 (re-exported: plug-ins look for it here)
from .language_models import LanguageModels
from .surroundings import HostCosts, Pmu, Simulation

ANY = "*"
MOST_UNITS = 64  # of an engine in one core


class Scope(Enum):
    """Who owns one instance of a memory."""

    CORE = "core"
    DEVICE = "device"
    HOST = "host"


class Holds(Enum):
    """What a memory is for."""

    ACTIVATIONS = "activations"  # the home of tensors that ops write
    CONSTANTS = "constants"  # the home of weights
    TILES = "tiles"  # local working memory that engines compute from; activations stay here while they fit


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clock domains, in hertz."""

    core_hz: Figure
    stats_hz: Figure | None = None  # the timer that statistics count in
    integer_hz: Figure | None = None  # of the core while it multiplies integers, where their power leaves it more


@dataclass(frozen=True, slots=True)
class Topology:
    """How many of everything."""

    cores: Figure  # per device
    devices: Figure


CHANNELS = "channels"


@dataclass(frozen=True, slots=True)
class Limit:
    """Which ops of a kind an engine takes, by one attribute."""

    kind: str
    attribute: str  # of the op (`kernel`, `strides`, `dilations`, `groups`), or `input_channels`, `output_channels`
    allowed: tuple[str, ...] = ()  # as `3x3`, one number, or CHANNELS: as many as the input has; empty: any
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.allowed and self.most is None:
            raise ValueError(f"limit of {self.kind} {self.attribute} says nothing; expected `allowed` or `most`")


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """One way to use an array of multipliers in a cycle: so many rows (pixels) of so many channels each."""

    rows: Figure
    channels: Figure
    work: tuple[str, ...] = ()  # families of work that use it; empty: all


@dataclass(frozen=True, slots=True)
class Engine:
    """One execution unit of a core. The first engine of the file that takes an op gets it."""

    name: str
    ops: tuple[str, ...]  # kinds or families it runs; "*" for all
    accelerator: bool  # False: the general-purpose processor that everything falls back to
    threads: int = 1
    units: int = 1  # of them in a core, alike and each on its own: tiles go to them in turn; rates are of one
    memory: str = ""  # name of its private memory, to and from which operands are moved; empty: the local one
    macs_per_cycle: Mapping[str, Figure] = field(default_factory=dict)  # by data type; "*" for any
    element_ops_per_cycle: Mapping[str, Figure] = field(default_factory=dict)  # by data type; "*" for any
    efficiency: Figure | None = None  # share of the peak that is reached while busy
    launch_cycles: Figure | None = None  # per op, before work starts
    command_cycles: Figure | None = None  # of any command, whatever it does: where nothing finer is published
    weight_bytes_per_cycle: Figure | None = None  # weights cannot enter it faster, however few rows they meet
    widens_weights: bool = False  # weights of few bits become what it multiplies as they enter: no work of its own
    vector_bytes_per_cycle: Figure | None = None  # read and written at the most by work that multiplies nothing
    reached: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)
    """Share of its peak that a family of work (`graph.work_families`) reaches, by data type: of `macs_per_cycle` for
    families that multiply, of `vector_bytes_per_cycle` for the others. Others reach `efficiency`. A kind of op may have
    a share of its own."""
    output_elements_per_cycle: Mapping[str, Figure] = field(default_factory=dict)  # that leave it beside its MACs
    results_apart: bool = False  # they leave after its MACs: a processor that does one thing at a time
    lookup_elements_per_cycle: Figure | None = None  # that leave it through a table of a fused activation
    tile_extent: Figure | None = None  # reduced and produced extents are padded to a multiple of this
    row_extent: Figure | None = None  # rows of a product are padded to a multiple of this
    tap_extent: Figure | None = None  # taps of a step of a convolution, with a tile of channels each
    array_shapes: tuple[
        ArrayShape, ...
    ] = ()  # of a step: work is padded to whole ones, of the shape that pads it least
    output_blocks: tuple[ArrayShape, ...] = ()
    """Blocks of a product's result, of which a unit makes one at a time: in waves over all units, the last part filled
    (`estimate/kernels.py`)."""
    operand_bytes_per_cycle: Figure | None = None  # that enter a unit for the block it makes
    reduction_parts: Figure | None = None  # that a reduction may be cut into at the most, where blocks are few
    dispatch_seconds: Figure | None = None  # of a host that starts its ops one by one, while earlier ones still run
    shared_work: tuple[str, ...] = ()  # families of work that its units share; empty: all; others run on the first
    commands: Mapping[str, Figure] = field(default_factory=dict)  # that an op of a kind takes; 1 for the others
    taps_apart: bool = False  # channels are padded for each tap of a convolution, unless several taps fit a tile
    taps_whole: bool = False  # a step takes `tap_extent` taps, however few a kernel has; never more channels instead
    produced_extent: Figure | None = None  # produced extents are padded to a multiple of this, not of `tile_extent`
    limits: tuple[Limit, ...] = ()  # ops of its kinds that it does not take
    kernels: Mapping[str, Figure] = field(default_factory=dict)  # cycles per KB of output, by op kind
    picojoules_per_mac: Mapping[str, Figure] = field(default_factory=dict)  # by data type; "*" for any
    picojoules_per_element_op: Mapping[str, Figure] = field(default_factory=dict)
    busy_watts: Figure | None = None  # drawn above idle while it works, where nothing finer is known

    def __post_init__(self) -> None:
        if not 1 <= self.units <= MOST_UNITS:
            raise ValueError(f"engine {self.name!r} has {self.units} units; expected 1 to {MOST_UNITS}")
        for family, table in self.reached.items():
            if any(share.largest > 1 for share in table.values()):
                raise ValueError(f"engine {self.name!r} reaches more than its peak for {family}; expected at most 1")

    def units_for(self, family: WorkFamily | None) -> int:
        """How many of its units take part in an op of a family of work."""
        shared = not self.shared_work or (family is not None and family.value in self.shared_work)
        return self.units if shared else 1

    def takes(self, op: Op) -> bool:
        return ANY in self.ops or any(word in self.ops for word in op.called)

    def rate(self, table: Mapping[str, Figure], dtype: DType) -> Figure | None:
        return table.get(dtype.label, table.get(ANY))

    def rate_of(self, family: WorkFamily | None, dtype: DType, kind: str = "") -> tuple[Figure, Figure] | None:
        """Peak of a family of work and the share of it that is reached, where the file has them."""
        words = () if family is None else (kind, family.value, family.general.value)
        table = next((self.reached[word] for word in words if word in self.reached), None)
        if family is None or table is None:
            return None
        peak = self.rate(self.macs_per_cycle, dtype) if family.multiplies else self.vector_bytes_per_cycle
        share = self.rate(table, dtype)
        return None if peak is None or share is None else (peak, share)


@dataclass(frozen=True, slots=True)
class Burst:
    """Bytes travel in bursts, and every burst has beats that carry none."""

    beats: Figure  # with data
    overhead_beats: Figure

    @property
    def share(self) -> float:
        """Share of the beats that carry data: 16 of 20 with 4 beats of overhead are 0.8."""
        return self.beats.value / (self.beats.value + self.overhead_beats.value)


@dataclass(frozen=True, slots=True)
class Memory:
    """One kind of memory. A bandwidth is given per second or per core-clock cycle, never both."""

    name: str
    scope: Scope
    bytes: Figure
    holds: tuple[Holds, ...]
    bytes_per_second: Figure | None = None
    bytes_per_cycle: Figure | None = None
    efficiency: Figure | None = None
    picojoules_per_byte: Figure | None = None
    burst: Burst | None = None
    write_efficiency: Figure | None = None  # share of that which writes reach, where they are slower than reads
    burst_bytes: Figure | None = None  # of one access: of an input with fewer bytes in a pixel, the rest is lost
    op_share: Figure | None = None  # of its bytes, that the operands of one op may take: larger ones stream through it
    core_bytes_per_second: Figure | None = None
    """That one core moves through it at the most: few cores do not fill its bandwidth. Where routes serve it, each of
    them reaches this; else reads and writes do together."""
    resident_share: Figure | None = None
    """Of what activations leave of it, that weights fill and stay in from one inference to the next, op by op; those of
    the first op that does not fit and of all behind it are streamed in every inference."""

    def __post_init__(self) -> None:
        if self.resident_share is not None and self.resident_share.largest > 1:
            raise ValueError(f"memory {self.name!r} keeps more than all of it; expected resident_share of at most 1")
        if self.bytes_per_second is not None and self.bytes_per_cycle is not None:
            raise ValueError(f"memory {self.name!r} has both bytes_per_second and bytes_per_cycle; expected one")

    def peak(self, clock_hz: float) -> float | None:
        """Bytes per core cycle of one instance, reads and writes together, before losses; None: not known."""
        if self.bytes_per_cycle is not None:
            return self.bytes_per_cycle.value
        return self.bytes_per_second.value / clock_hz if self.bytes_per_second is not None else None

    @property
    def reached(self) -> float:
        """Share of the peak bandwidth that is reached."""
        return _reached(self.efficiency, self.burst)

    @property
    def is_outer(self) -> bool:
        """Beyond the cores: their own memories are local."""
        return self.scope is not Scope.CORE


@dataclass(frozen=True, slots=True)
class Route:
    """A way for bytes to move without an engine: a DMA queue per core on something that all cores share."""

    name: str
    carries: Carries
    bytes_per_second: Figure | None = None  # what everybody shares
    efficiency: Figure | None = None
    issue_cycles: Figure | None = None  # of the thread that starts a transfer
    latency_seconds: Figure | None = None  # from the arrival of the last byte until the receiver knows of it
    bytes_per_cycle: Figure | None = None  # of the core clock, where the route runs on it
    burst: Burst | None = None
    memory: str = ""  # name of the memory that it serves; empty: as `Target.memory_of` says

    def __post_init__(self) -> None:
        if (self.bytes_per_second is None) == (self.bytes_per_cycle is None):
            found = "neither" if self.bytes_per_second is None else "both"
            raise ValueError(f"route {self.name!r} has {found} of bytes_per_second and bytes_per_cycle; expected one")

    def peak(self, clock_hz: float) -> float:
        """Bytes per core cycle that everybody shares, before losses."""
        if self.bytes_per_cycle is not None:
            return self.bytes_per_cycle.value
        return self.bytes_per_second.value / clock_hz if self.bytes_per_second is not None else 0.0

    @property
    def reached(self) -> float:
        """Share of the peak that is reached."""
        return _reached(self.efficiency, self.burst)


def _reached(efficiency: Figure | None, burst: Burst | None) -> float:
    return (1.0 if efficiency is None else efficiency.value) * (1.0 if burst is None else burst.share)


@dataclass(frozen=True, slots=True)
class Sequencer:
    """One unit per core that starts everything, in the order of the program: it waits for what a command needs and
    for the engine or the route itself to be free, starts it, and goes on."""

    name: str
    start_cycles: Figure
    awaits_transfers: bool = False  # it goes on when a transfer has arrived, not when it has begun
    descriptor_bytes: Figure | None = None  # read before every start of an engine: what it is to do
    block_bytes: Figure | None = None  # of its own program, which is read block by block while it runs
    block_commands: Figure | None = None  # starts, transfers and waits in a block


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of elements that one engine needs, and what it costs to change it."""

    name: str  # of the tiled order
    engines: tuple[str, ...]  # they read and write tiled
    keeps: tuple[str, ...]  # kinds or families that work in either order
    to_tiled: Figure  # cycles per KB
    from_tiled: Figure
    weights_to_tiled: Figure  # an activation used as the second operand


@dataclass(frozen=True, slots=True)
class Tiling:
    """How work is cut: pieces small enough to overlap, large enough to be worth starting."""

    weight_bytes: Figure
    activation_bytes: Figure
    buffers: Figure  # weight tiles held at once: one in use, the others on their way
    keeps_constants: bool = True  # those that fit stay in local memory between inferences
    whole_weights: bool = False  # weights are read whole where they fit, else in as few tiles as fit, one at a time
    depth_first: bool = False  # neighbours that do not fit run slice by slice of rows, one behind the other


@dataclass(frozen=True, slots=True)
class Compression:
    """Weights of products are stored and travel compressed, up to the engine that they enter."""

    ratio: Figure  # bytes of weights for each byte that is stored
    decoded_bytes_per_cycle: Figure | None = None  # of weights, that leave the decoder of a core at the most

    def __post_init__(self) -> None:
        if self.ratio.smallest <= 0:
            raise ValueError(f"compression has a ratio of {self.ratio.smallest:g}; expected a number above 0")


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the software on the chip adds to memory, and what it can do in place."""

    name: str = ""
    source: str = ""
    network: str = "network"  # what its tools call a compiled network in file names and traces
    bytes: Figure | None = None  # fixed structures
    im2col_columns: Figure | None = None  # convolution scratch: columns of kernel × input channels kept at once
    im2col_element_bytes: Figure | None = None
    in_place: tuple[str, ...] = ("reshape", "identity")  # kinds that write over their first input
    fuses: tuple[str, ...] = ()  # kinds that disappear into the op before them
    fuses_chains: bool = False  # elementwise ops one behind the other run as one, their values never leaving it
    joins_in_place: bool = False  # makers of the operands of a concatenation write them side by side
    rescales_joins: bool = False  # operands of a concatenation of integers get its scale: once for each that reads them
    channels_last: bool = False  # its own order: a transposition to or from it only renames bytes
    reorders: tuple[str, ...] = ()  # families of work whose operands, weights and results are each put in order apart
    rescales: tuple[str, ...] = ()  # kinds with inputs at scales of their own: rescales before them disappear
    floats: tuple[str, ...] = ()  # kinds that are computed in float even between quantised tensors
    interpreter: str = ""  # of a plug-in, which knows what it runs and how it takes memory; empty: none
    kernels: str = ""  # that it is built with, and `instructions` of the core that they use, in its words
    instructions: str = ""
    alignment: int = 1  # of buffers in the arena, in bytes
    planes: tuple[str, ...] = ()  # kinds that work on one plane per channel: what others make is transposed for them
    pieces_outside: bool = False  # images are joined and cut in outer memory, by transfers, and not by an engine
    scale_bytes: Figure | None = None  # of every channel that a product of integers makes, beside its bias
    strides_apart: bool = False  # what a window with strides reads is put in order by a pass of its own
    tile: tuple[int, ...] = ()  # rows and columns of the tiles that tensors lie in, all of them whole; empty: none

    def __post_init__(self) -> None:
        if len(self.tile) not in (0, 2) or any(extent < 1 for extent in self.tile):
            raise ValueError(f"runtime has tiles of {list(self.tile)}; expected rows and columns above 0, as [32, 32]")


@dataclass(frozen=True, slots=True)
class Support:
    """What the target runs at all; empty means everything."""

    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A chip, or a card of several, as one generic machine."""

    schema: str
    name: str
    title: str
    sources: Mapping[str, str]
    clocks: Clocks
    topology: Topology
    engines: tuple[Engine, ...]
    memories: tuple[Memory, ...]
    runtime: Runtime = Runtime()
    support: Support = Support()
    routes: tuple[Route, ...] = ()
    layout: Layout | None = None
    tiling: Tiling | None = None
    compression: Compression | None = None
    sequencer: Sequencer | None = None
    transfer_thread: str = "Transfers"  # name of the thread of a core that starts them, where no sequencer does
    host: HostCosts | None = None
    simulation: Simulation | None = None
    pmu: Pmu | None = None
    commands: Mapping[str, str] = field(default_factory=dict)  # kind → name the vendor's tools print for it
    words: TargetWords = OUR_WORDS
    precision: Mapping[str, str] = field(default_factory=dict)  # data type in the model → data type it runs as
    idle_watts: Figure | None = None
    model_error: Figure | None = None  # factor on simulated times that their figures do not explain: 1, from and to
    call_seconds: Mapping[str, Figure] = field(default_factory=dict)
    """Of each inference, whatever the network, from the call until work starts; by data type of the inputs."""
    call_bytes_per_second: Figure | None = None  # at which inputs are handed over and outputs are handed back
    calibration: Calibration | None = None
    validation: Validation | None = None
    energy: Judged = field(default_factory=Judged)
    ram: Judged = field(default_factory=Judged)
    language_models: LanguageModels | None = None

    def __post_init__(self) -> None:
        if not self.engines:
            raise ValueError("a target needs at least one engine")
        for wanted in (Holds.ACTIVATIONS, Holds.CONSTANTS):
            if not any(wanted in memory.holds for memory in self.memories):
                raise ValueError(f"no memory holds {wanted.value}; expected one whose `holds` lists it")
        names = [memory.name for memory in self.memories]
        for engine in self.engines:
            if engine.memory and engine.memory not in names:
                raise ValueError(f"engine {engine.name!r} works in {engine.memory!r}; expected one of {names}")
        for route in self.routes:
            if route.memory and route.memory not in names:
                raise ValueError(f"route {route.name!r} serves {route.memory!r}; expected one of {names}")

    def home(self, what: Holds) -> Memory:
        """The memory that holds activations or constants when nothing else is said: the first one listed."""
        return next(memory for memory in self.memories if what in memory.holds)

    @property
    def stores(self) -> tuple[Memory, ...]:
        """Memories that hold constants, in the order in which they are filled."""
        return tuple(memory for memory in self.memories if Holds.CONSTANTS in memory.holds)

    @property
    def local(self) -> Memory | None:
        """The working memory beside the engines, where the chip has one."""
        return next((memory for memory in self.memories if Holds.TILES in memory.holds), None)

    def memory_of(self, route: Route) -> str:
        """The memory that a route serves: the one it names, else the outer one, an engine's own, or the local one."""
        if route.memory:
            return route.memory
        if route.carries in (Carries.READ, Carries.WRITE):
            return self.home(Holds.CONSTANTS).name
        if route.carries in (Carries.BRING, Carries.FETCH):
            return next((engine.memory for engine in self.engines if engine.memory), "")
        return "" if route.carries is Carries.HOST or self.local is None else self.local.name

    def core_rate(self, route: Route) -> Figure | None:
        """Bytes per second that one core's queue reaches at the most; None: as many as the route has."""
        served = self.memory_of(route)
        return next((memory.core_bytes_per_second for memory in self.memories if memory.name == served), None)

    @property
    def is_compilable(self) -> bool:
        """The file says what a compiler and a simulated device need."""
        whole = self.tiling is not None and self.local is not None and self.clocks.stats_hz is not None
        return whole and bool(self.routes)

    def instances(self, memory: Memory, *, devices: int, cores: int) -> int:
        """How many of a memory there are on so many devices and cores."""
        if memory.scope is Scope.HOST:
            return 1
        return devices * cores if memory.scope is Scope.CORE else devices

    def supports(self, op: Op) -> bool:
        listed = self.support.ops
        return not listed or any(word in listed for word in (*op.called, op.type))
