"""Timeline of Qualcomm's HTP performance model (Hextimate) → columns.

JSON in Chrome's form, but times are cycles of the core clock. Bookkeeping of the foreground thread (starting and
awaiting work on other threads) repeats the bytes of that work: only the work itself is counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from ....core.errors import ImportFileError
from ....core.meaning import LaneRole
from .events import MOST

SCALAR, HVX, HMX, DMA, HLX = "scalar", "HVX", "HMX", "DMA", "HLX"
ENGINES = (SCALAR, HVX, HMX, DMA, HLX)
_FLAGS = {"scalar": 0, "for_hvx": 1, "uses_hmx": 2, "for_hmx": 2, "for_dma": 3, "for_hlx": 4}
FOREGROUND, HVX_DMA = "FG", "HVX_DMA"  # units beside the engines
_THREAD = re.compile(r"(\w+) (\d{1,4})")  # "HVX 1", in the vendor's words
_BOOKKEEPING = re.compile(r"default_(\w+?) \((.*)\)")
_USAGE = "TCM usage"
_MOST_CORES = 1 << 12

WORK = np.dtype(
    [
        ("id", "<u8"),  # of the compiled op; the low half is the op of the graph before compilation
        ("lane", "<i4"),  # position in Timeline.lanes
        ("engine", "<u1"),  # position in ENGINES
        ("bookkeeping", "?"),
        ("kernel", "<i4"),  # position in Timeline.kernels
        ("start", "<i8"),  # cycles
        ("end", "<i8"),
        ("order", "<i8"),  # place in the run list
        ("dram_read", "<i8"),
        ("dram_write", "<i8"),
        ("vtcm_read", "<i8"),
        ("vtcm_write", "<i8"),
    ]
)


class _Bytes(msgspec.Struct):
    dram_read: int = 0
    dram_write: int = 0
    vtcm_read: int = 0
    vtcm_write: int = 0


class _Args(msgspec.Struct):
    id: str = "0x0"
    runlist_idx: int = 0
    flags: list[str] = []
    bw_info: _Bytes = msgspec.field(default_factory=_Bytes)
    value: float = msgspec.field(default=0, name="Bytes")
    name: str = ""


class _Entry(msgspec.Struct):
    name: str
    ph: str
    pid: int = 0
    tid: int = 0
    ts: float = 0
    dur: float = 0
    args: _Args = msgspec.field(default_factory=_Args)


class _File(msgspec.Struct):
    entries: list[_Entry] = msgspec.field(name="traceEvents")
    settings: dict[str, object] = msgspec.field(name="Hextimate Configuration")
    origin: dict[str, object] = msgspec.field(name="Trace Provenance", default_factory=dict)


@dataclass(frozen=True, slots=True)
class Thread:
    """A row of the timeline."""

    core: int
    name: str
    unit: str  # that it is a thread of: an engine, FOREGROUND, HVX_DMA
    number: int  # of the thread; 0: the unit has one

    @classmethod
    def of(cls, core: int, name: str) -> Thread:
        """By the name that the vendor's model gives it."""
        found = _THREAD.fullmatch(name)
        return cls(core, name, name, 0) if found is None else cls(core, name, found[1], int(found[2]))

    @property
    def role(self) -> LaneRole:
        """Bytes on their way, or work; those of an HVX thread, which repeat what its ops say they read, have a row."""
        return LaneRole.TRANSFER if self.unit in (DMA, HVX_DMA) else LaneRole.ENGINE


@dataclass(frozen=True, slots=True)
class Timeline:
    """One inference of one compiled graph, as the vendor's model sees it."""

    lanes: tuple[Thread, ...]
    kernels: tuple[str, ...]
    work: npt.NDArray[np.void]  # of WORK, by start
    usage: npt.NDArray[np.int64]  # cycle, bytes of VTCM in use; two columns
    settings: dict[str, float | str]
    version: str  # of the model

    @property
    def clock_hz(self) -> float:
        return float(self.settings["sim_core_freq"]) * 1e6

    @property
    def end(self) -> int:
        return int(self.work["end"].max(initial=0))


def read_timeline(raw: bytes, *, source: str) -> Timeline:
    """The JSON of one graph."""
    try:
        file = msgspec.json.decode(raw, type=_File, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ImportFileError(source, "", f"not a timeline of the model: {error}") from error
    clock = file.settings.get("sim_core_freq")
    if not isinstance(clock, int | float) or not 1 <= clock <= 1e5:
        raise ImportFileError(source, "", f"sim_core_freq is {clock!r}; expected the core clock in MHz")
    named = [entry for entry in file.entries if entry.ph == "M" and entry.name == "thread_name"]
    threads = {(entry.pid, entry.tid): entry.args.name.rstrip(": ") for entry in named}
    spans = [entry for entry in file.entries if entry.ph == "X"]
    places = sorted({(entry.pid, entry.tid) for entry in spans} | set(threads))
    if odd := [core for core, _ in places if not 0 <= core < _MOST_CORES]:
        raise ImportFileError(source, "", f"pid is {odd[0]}; expected the number of a core, below {_MOST_CORES}")
    lanes = {place: number for number, place in enumerate(places)}
    kernels: dict[str, int] = {}
    used = [entry for entry in file.entries if entry.ph == "C" and entry.name == _USAGE]
    try:
        work = np.array([_row(entry, lanes, kernels) for entry in spans], WORK)
        usage = [(_bounded(entry.ts), _bounded(entry.args.value)) for entry in used]
    except (ValueError, OverflowError) as error:
        raise ImportFileError(source, "", f"an op of the timeline is damaged: {error}") from error
    work = work[np.argsort(work["start"], kind="stable")]
    moments = np.array(usage, np.int64).reshape(-1, 2)
    _end_with(work, int(moments[:, 0].max(initial=0)))
    return Timeline(
        lanes=tuple(Thread.of(pid, threads.get((pid, tid), f"thread {tid}")) for pid, tid in places),
        kernels=tuple(kernels),
        work=work,
        usage=moments,
        settings={key: value for key, value in file.settings.items() if isinstance(value, int | float | str)},
        version=str(file.origin.get("Hexagon-NN SHA", "")),
    )


def _end_with(work: npt.NDArray[np.void], end: int) -> None:
    """Let the step that awaits the last work take from the end of that work until the model ends.

    Steps of the foreground thread take no time in the file, and what comes next begins later: behind the last of them
    comes nothing, and the time is in no span.

        HVX 2 ▐██████▌
        FG             ·validate      · is where the step stands: 50 cycles behind the work, 6 before the model ends
    """
    if not len(work):
        return
    last = int(np.lexsort((work["order"], work["end"]))[-1])
    row = work[last]
    if row["bookkeeping"] and end >= row["end"]:
        before = int(np.delete(work["end"], last).max(initial=0))
        row["start"], row["end"] = min(int(row["start"]), before), end


def _row(entry: _Entry, lanes: dict[tuple[int, int], int], kernels: dict[str, int]) -> tuple[int | bool, ...]:
    """One span as a row of WORK.

    The foreground thread has a span `default_start (q::conv)` or the like for work that another thread does: it is
    bookkeeping, keeps its kind in the kernel's name ("start conv"), and has no bytes of its own.
    """
    args, moved = entry.args, entry.args.bw_info
    engine = max((_FLAGS.get(flag, 0) for flag in args.flags), default=0)
    match = _BOOKKEEPING.fullmatch(entry.name)
    kernel = (match[2] if match else entry.name).removeprefix("q::")
    keeps = engine == 0 and match is not None
    start, end = _bounded(entry.ts), _bounded(entry.ts + entry.dur)
    if end < start:
        raise ValueError(f"op {args.id} lasts {entry.dur} cycles")
    return (
        int(args.id, 16),
        lanes[entry.pid, entry.tid],
        engine,
        keeps,
        kernels.setdefault(f"{match[1]} {kernel}" if match and keeps else kernel, len(kernels)),
        start,
        end,
        args.runlist_idx,
        *((0, 0, 0, 0) if keeps else _moved(moved, kernel, engine)),
    )


def _moved(moved: _Bytes, kernel: str, engine: int) -> tuple[int, int, int, int]:
    """Bytes of one span, each once.

    A copy that an HVX thread waits for is two spans, `…_hvx` and `…_dma`, and both tell its bytes. A kernel that works
    on a tensor in DDR tells the whole tensor, however little of it it reads.
    """
    if kernel.endswith("_hvx"):
        return 0, 0, 0, 0
    reads = ENGINES[engine] == DMA or kernel.endswith("_dma")
    read, write, near_read, near_write = (
        _bounded(size) for size in (moved.dram_read, moved.dram_write, moved.vtcm_read, moved.vtcm_write)
    )
    return read if reads else 0, write, near_read, near_write


def _bounded(value: float) -> int:
    """A cycle, or a number of bytes, that can be."""
    if not 0 <= value < MOST:
        raise ValueError(f"{value} is no cycle and no number of bytes")
    return round(value)
