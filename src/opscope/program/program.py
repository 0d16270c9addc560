"""Program: compiled commands, each mapped back to the graph op it does a part of.

Commands stand in columns, sorted by lane: a lane is one thread group of one core of one device, and runs its
commands in order. A command starts when its lane is free and everything it depends on is done. A command with a
route starts a transfer: the lane goes on after the issue, the command is done when the bytes have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.meaning import Carries, Direction
from ..core.target_words import TargetWords
from .bounds import Bounds

NO_OP = -1
NO_ROUTE = -1
NO_MEMORY = -1
NO_COMMAND = -1
START_KIND = "start"  # what a sequencer's commands that start another group's are called

COMMAND = np.dtype(
    [
        ("device", "<u2"),
        ("core", "<u2"),
        ("group", "<u1"),  # position in Program.groups
        ("route", "<i1"),  # position in Program.routes; NO_ROUTE: starts no transfer
        ("kind", "<u2"),  # position in Program.kinds
        ("op", "<i4"),  # position in Program.ops; NO_OP: belongs to none
        ("detail", "<u4"),  # position in Program.details
        ("cycles", "<u4"),  # core cycles of the slowest thread; of the issue when there is a route
        ("ordinal", "<u4"),  # place in its lane
        ("out_bytes", "<u8"),
        ("moved_bytes", "<u8"),  # bytes on the route
        ("macs", "<u8"),
        ("local_address", "<u4"),  # where the output lies in local memory
        ("local_bytes", "<u4"),  # how much of it is taken from its start until its last reader is done
        ("does", "<u8"),  # meaning.Does; so wide that every column of the table stays aligned
    ]
)

PMU_COUNTS = (  # what a PMU event can count on a thread, or on the threads of the group named behind a colon
    "cycles",  # from the start of the inference to its end
    "busy_cycles",  # at work; of a transfer it is the issue
    "transfer_cycles",  # in which bytes of transfers that the group issued move
    "wait_cycles",  # waiting for another command
    "commands",
    "macs",
    "read_bytes",  # from outer memory
    "write_bytes",
    "read_requests",  # of the bus, of StatsOptions.request_bytes at the most
    "write_requests",
)

Count = Annotated[int, msgspec.Meta(ge=0)]  # of things, bytes, cycles: a file that has fewer than none is refused
Port = tuple[str, str, tuple[Count, ...]]  # name, data type, shape

ACTIVE_COUNTS = ("busy_cycles", "transfer_cycles")  # of PMU_COUNTS: cycles in which a block of a core is at work

TRUE, ORDER = 1, 0  # dependency kinds: reads what another command wrote; writes over memory that another used

NOT_SIMULATED = "not simulated"  # name of a PMU event that a target does not know: nothing is counted
THREAD_LEVEL, PORT_LEVEL, OP_LEVEL, OP_PMU_LEVEL = 40, 50, 70, 100  # stats levels: each adds to those before it


@dataclass(frozen=True, slots=True)
class Group:
    """A thread group of every core: one engine's threads, or the thread that issues transfers."""

    name: str
    engine: str  # empty: issues transfers only
    threads: Count


@dataclass(frozen=True, slots=True)
class Channel:
    """A route, in the units of a simulation."""

    name: str
    carries: Carries
    bytes_per_cycle: float  # shared by all cores of a device
    core_bytes_per_cycle: float
    memory: int = NO_MEMORY  # that it serves: position in Program.memories
    latency_cycles: float = 0.0  # from the arrival of the last byte until a transfer is done
    on_core_clock: bool = False  # its rates are per cycle; else per second, whatever the clock


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """A memory that operands lie in."""

    name: str
    is_outer: bool  # beyond the local memory of the cores
    bytes_per_cycle: float | None = None  # reads and writes of a device together; None: as its fastest route
    on_core_clock: bool = False


@dataclass(frozen=True, slots=True)
class OpInfo:
    """A graph op that commands point back to."""

    name: str
    type: str
    kind: str
    location: str
    unknown: str = ""  # why its cost is not known; empty: it is
    module: str = ""  # path of the Python module that it was exported from
    line: str = ""  # of the user's code that called for it


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a command reads or writes."""

    direction: Direction
    role: str  # for people: Src0, Dest, Weights
    tensor: str
    memory: int  # position in Program.memories; NO_MEMORY: not known
    dtype: str
    shape: tuple[int, ...]
    bytes: int | None = None  # that lie there, where that is known

    def text(self, memory: str) -> str:
        """The operand as text: `out SRAM Dest y f16 <8 x 128> 2KB`."""
        size = "" if self.bytes is None else f" {-(-self.bytes // 1024)}KB"
        shape = " x ".join(map(str, self.shape))
        return f"{self.direction} {memory} {self.role} {self.tensor} {self.dtype} <{shape}>{size}"


@dataclass(frozen=True, slots=True)
class Detail:
    """What is the same for every command made from one tile of one op."""

    name: str  # the op's name with a tile suffix
    memory: str  # where its main operand lies, as printed
    types: str  # operand types as printed: "float16, i8"
    shape: str
    operands: tuple[Operand, ...]
    attributes: str


@dataclass(frozen=True, slots=True)
class OpCycles:
    """Cycles that an op, or one command of it, would take if one resource alone bound it; of a compiler's model."""

    op: int
    resource: str
    is_memory: bool
    cycles: int
    command: int = NO_COMMAND


@dataclass(frozen=True, slots=True)
class StatsOptions:
    """What the device writes down while it runs."""

    level: Count = THREAD_LEVEL
    ddr: bool = False
    recipe: str = ""
    events: tuple[Count, ...] = ()  # numbers of the counted PMU events
    event_names: tuple[str, ...] = ()
    event_counts: tuple[str, ...] = ()  # one of PMU_COUNTS each, with ":GROUP" where of one group; "": not simulated
    batch_size: Count = 1
    request_bytes: Count = 0  # of one request of the bus; 0: not known, and no requests are counted
    event_blocks: tuple[
        str, ...
    ] = ()  # the part of a core that each event tells about; "" or none: the group it counts

    def blocks(self) -> Mapping[int, str]:
        """Event → what it tells about, as shown; empty: the whole core."""
        said = zip(self.events, self.event_counts, (*self.event_blocks, *("",) * len(self.events)), strict=False)
        return {event: block or counts.partition(":")[2] for event, counts, block in said}


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """Bytes that one core moves in an inference."""

    device: Count
    core: Count
    read: Count
    read_constant: Count
    write: Count
    multicast: Count
    multicast_constant: Count


@dataclass(frozen=True, slots=True)
class MemoryMetrics:
    """What the compiler knows of memory before anything runs."""

    constants_bytes: Count
    local_bytes: tuple[Count, ...]  # most of local memory in use, per lane of cores
    local_capacity: Count
    traffic: tuple[TrafficRow, ...]
    first_read: Count  # extra bytes of the first inference: weights that stay resident afterwards
    barriers: Count
    macs: Count
    size_histogram: Mapping[int, Count]  # output elements → ops
    staying_bytes: Count = 0  # of local memory, on every lane: constants that stay from inference to inference


NO_METRICS = MemoryMetrics(0, (), 0, (), 0, 0, 0, {})  # of a program that nobody keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What runs, on which lanes, behind what, and what its bytes pass through: enough to say when."""

    devices: int
    cores: int  # per device
    groups: tuple[Group, ...]
    routes: tuple[Channel, ...]
    memories: tuple[MemoryInfo, ...] = ()
    commands: npt.NDArray[np.void]  # of COMMAND, sorted by (device, core, group)
    dependency_offsets: npt.NDArray[np.uint32]  # one more than commands
    dependency_sources: npt.NDArray[np.uint32]  # command that must be done first

    @property
    def lanes(self) -> int:
        """Number of lanes: thread groups of all cores of all devices."""
        return self.devices * self.cores * len(self.groups)

    def lane_of_commands(self) -> npt.NDArray[np.int64]:
        """Lane number of every command: device, then core, then group."""
        table = self.commands
        lanes: npt.NDArray[np.int64] = table["device"].astype(np.int64) * self.cores + table["core"]
        lanes *= len(self.groups)
        lanes += table["group"]
        return lanes

    def pool_of_routes(self) -> list[int]:
        """Of every route, the first one that shares bandwidth with it: reads and writes of one outer memory do."""
        firsts: dict[int, int] = {}

        def pool(number: int, route: Channel) -> int:
            moves = route.carries in (Carries.READ, Carries.WRITE) and route.memory != NO_MEMORY
            shared = moves and self.memories[route.memory].is_outer
            return firsts.setdefault(route.memory, number) if shared else number

        return [pool(number, route) for number, route in enumerate(self.routes)]

    def pool_rate(self, pool: int) -> float:
        """Bytes per cycle that the routes of a pool have together on one device."""
        fastest = max(
            route.bytes_per_cycle for route, own in zip(self.routes, self.pool_of_routes(), strict=True) if own == pool
        )
        memory = self.routes[pool].memory
        served = self.memories[memory].bytes_per_cycle if memory != NO_MEMORY else None
        is_memory = self.routes[pool].carries in (Carries.READ, Carries.WRITE)
        return fastest if served is None or not is_memory else served

    @property
    def outer_memory(self) -> str:
        """Name of the memory beyond the cores, for people; several are joined by a slash, and `outer` is unknown."""
        moving = (route.memory for route in self.routes if route.carries in (Carries.READ, Carries.WRITE))
        return (
            "/".join(dict.fromkeys(self.memories[memory].name for memory in moving if memory != NO_MEMORY)) or "outer"
        )

    def dependencies(self, command: int) -> Sequence[int]:
        """Commands that must be done before a command starts."""
        first, last = self.dependency_offsets[command], self.dependency_offsets[command + 1]
        return [int(source) for source in self.dependency_sources[first:last]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Commands):
    """Everything the device needs to run, and everything a decoder needs to name what ran."""

    name: str  # of the network
    target: str
    batch: int
    clock_hz: float
    stats_hz: float
    kinds: tuple[str, ...]
    ops: tuple[OpInfo, ...]
    details: tuple[Detail, ...]
    dependency_kinds: npt.NDArray[np.uint8]  # TRUE or ORDER
    stats: StatsOptions
    metrics: MemoryMetrics
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    host_microseconds: Mapping[str, float] = field(default_factory=dict)  # by stage
    host_bytes_per_second: Mapping[str, float] = field(default_factory=dict)  # of the link, and of its memory
    simulation: Mapping[str, float] = field(default_factory=dict)
    model: str = ""  # file name of the model beside the program, for reference execution
    notes: tuple[str, ...] = ()  # what was assumed about the model
    op_cycles: tuple[OpCycles, ...] = ()  # of programs that were compiled elsewhere
    bounds: Bounds | None = None  # None: not known
    retained: tuple[str, ...] = ()  # inputs and outputs that stay on the device: state from inference to inference
    stored_types: Mapping[str, str] = field(
        default_factory=dict
    )  # of inputs and outputs that the device has in another
    device_cores: int | None = None  # that a device has, of which `cores` run this; None: not known (an older file)
    card_devices: int | None = None  # that the target has, of which `devices` run this; None: not known (an older file)
    words: TargetWords | None = None  # of the target; None: not known (an older file)

    def __post_init__(self) -> None:
        if self.commands.dtype != COMMAND:
            raise ValueError("commands are not of the COMMAND layout")
        if len(self.dependency_offsets) != len(self.commands) + 1:
            raise ValueError("dependency_offsets must have one entry more than commands")

    @property
    def host_ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """Inputs and outputs that cross the link between host and device."""
        inputs, outputs = (
            tuple(p for p in ports if p[0] not in self.retained) for ports in (self.inputs, self.outputs)
        )
        return inputs, outputs

    @property
    def link_ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """What crosses that link, in the types that the device has: the host converts, before and after."""
        inputs, outputs = self.host_ports
        return self.as_stored(inputs), self.as_stored(outputs)

    def as_stored(self, ports: tuple[Port, ...]) -> tuple[Port, ...]:
        """Inputs or outputs, in the types that the device has them in."""
        return tuple((name, self.stored_types.get(name, dtype), shape) for name, dtype, shape in ports)

    def memory_name(self, memory: int) -> str:
        """Name of a memory, for people; empty where none is known."""
        return self.memories[memory].name if memory != NO_MEMORY else ""
