"""`compiler_profile_N.txt` of tpu-mlir: the schedule of the vendor's cycle model, command by command, of one core.

    ----------
    s: start time, b: bd_id, g: gdma_id, e: end time, t: cmd cost time, dr: direction, sz: memsize, bw: bandwidth
    ----------
    ENGINE_BD                                  ENGINE_GDMA
                                               Load_22|GDMA_TENSOR|s:0|b:0|g:1|e:406|t:407|dr:0|sz:1960|bw:4.48
    Conv2D_27|CONV|s:1639|b:13|g:2|e:1894|t:256
    ----------
    TCYC : 10169. (bdc_cycle:2454, gdma_cycle:9690)

A cell begins in the column of its engine's name. `s` and `e` are its first and its last cycle; a counter of another
engine is the number of the command there that it waits for, 0 of none. So every start follows from the costs:
1 + the latest end of the command before it on its engine and of those that it waits for.

A network that is cut into several subnets has one such block for each that is scheduled, one behind the other, and each
counts from 0 again: a later one starts when the one before it is done. What runs dynamically, or on the host's CPU,
has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...core.columns import Numbers
from ...core.errors import ImportFileError, printable
from ...importers.reading import numbered
from ...recording.recording import Check
from ...recording.trace import NONE

DIRECTIONS = ("S2L", "L2S", "S2S", "L2L")  # system memory (DDR) and local memory, by the number in the file
GIB_AS_GHZ = 1.073741824  # `bw` is in GiB/s, of a clock of 1 GHz whatever the chip's is
_MOST = 1 << 50  # cycles or bytes that no compilation has
_LARGEST_DIGITS = 16
_ROUNDED = 0.0051  # `bw` has two decimals
_LONGEST_LINE = 4096  # of the totals
_MOST_WORDS = 10_000  # opcodes or kinds, of which a compiler has a few dozen

_RULE = re.compile(r"-{3,}\s*")
_LEGEND = re.compile(r"(\w+): (\w+?)_id\b")
_ENGINE = re.compile(r"ENGINE_(\w+)")
_CELL = re.compile(r"([^|]*)\|(\w*)((?:\|[a-z]+:-?\d+(?:\.\d+)?)*)")
_NAME = re.compile(r"(.*)_(\d{1,9})")
_TOTAL = re.compile(r"TCYC\s*:\s*(\d+)")
_ENGINE_CYCLES = re.compile(r"\(bdc_cycle:(\d+), gdma_cycle:(\d+)\)")
_SUMMARY = re.compile(r"dr\[(\d)\] \w+:(\d+)")
_USAGE = re.compile(r"DDR BW USAGE\s*:\s*([\d.]+)%")
_RUNTIME = re.compile(r"flops:\s*(\d+),\s*runtime:\s*([\d.]+)\s*ms")
_RUNTIME_TICK_NS = 1  # six decimals of a millisecond
_CLOCK_STEPS = tuple(digit * 10**place for place in range(8, -1, -1) for digit in (5, 1))  # round ones first


@dataclass(frozen=True, slots=True)
class Commands:
    """Columns: one row per cell, in the order of the file. NONE: the cell does not say."""

    engine: Numbers  # position in Profile.engines
    opcode: Numbers  # position in Profile.opcodes
    mlir_line: Numbers  # of the op in final.mlir
    kind: Numbers  # position in Profile.kinds
    start: Numbers  # cycles
    end: Numbers  # exclusive
    number: Numbers  # among the commands of its engine, from 1
    waits: Numbers  # command × engine: the number that it waits for there; its own number in its own column
    direction: Numbers  # position in DIRECTIONS
    bytes: Numbers
    line: Numbers  # of the file
    block: Numbers  # of the file, from 0

    def __len__(self) -> int:
        return len(self.engine)

    @property
    def cycles(self) -> Numbers:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Totals:
    """What stands below the commands of a block."""

    cycles: int  # TCYC; of several cores, of the one that takes longest
    engine_cycles: tuple[int, int] | None  # of BD and of GDMA, where the file says
    bytes: Mapping[int, int]  # by direction
    usage_percent: float | None
    flops: int | None
    runtime_ms: float | None


@dataclass(frozen=True, slots=True)
class Profile:
    """One core."""

    source: str
    engines: tuple[str, ...]
    opcodes: tuple[str, ...]
    kinds: tuple[str, ...]
    commands: Commands
    bandwidth: tuple[float, ...]  # `bw` as the file has it, per command; of others than transfers 0
    blocks: tuple[Totals, ...]

    @property
    def cycles(self) -> int:
        """Of all blocks; of several cores, of those that take longest."""
        return sum(block.cycles for block in self.blocks)

    @property
    def flops(self) -> int | None:
        """Of the network, which every block repeats."""
        return self.blocks[0].flops

    @property
    def starts(self) -> Numbers:
        """When each block starts."""
        return np.cumsum([0, *(block.cycles for block in self.blocks[:-1])])

    @property
    def end(self) -> int:
        """Cycles of this core alone."""
        return int(self.commands.end.max(initial=0))

    @property
    def clock_hz(self) -> int | None:
        """The roundest clock that makes the runtime of the cycles; None: the file does not say."""
        told = [(block.cycles, block.runtime_ms) for block in self.blocks if block.runtime_ms]
        cycles, ns = sum(each for each, _ in told), sum(ms * 1e6 for _, ms in told)
        off = _RUNTIME_TICK_NS * len(told) / 2
        if not cycles or ns <= off:
            return None
        low, high = cycles * 1e9 / (ns + off), cycles * 1e9 / (ns - off)
        for step in _CLOCK_STEPS:
            nearest: int = round((low + high) / 2 / step) * step
            if low <= nearest <= high:
                return nearest
        return round(cycles * 1e9 / ns)


class _Reader:
    """One file, line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = numbered(path)
        self.at = 1
        self.engines: tuple[str, ...] = ()
        self.keys: dict[str, str] = {}  # counter → engine, from the legend
        self.columns: list[int] = []  # where cells of each engine begin, in this block
        self.opcodes: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.rows: list[tuple[int, ...]] = []
        self.bandwidth: list[float] = []
        self.blocks: list[Totals] = []
        self.last: dict[int, tuple[int, int]] = {}  # engine → number and end of its last command in this block

    def wrong(self, line: int, problem: str) -> ImportFileError:
        return ImportFileError(str(self.path), f"line {line}", problem)

    def read(self) -> Profile:
        """Block by block: the head, the cells until the next rule, and the totals until the one after it."""
        more = True
        while more:
            self._head()
            self._body()
            tail, more = self._tail()
            self._close(tail)
        return self._profile()

    def _rest(self) -> Iterator[str]:
        """The lines that are left; `at` is the number of the last one read."""
        for number, text in self.lines:
            self.at = number
            yield text

    def _head(self) -> None:
        """Up to the names of engines."""
        found: list[tuple[int, str]] = []
        for text in self._rest():
            self.keys |= {key: engine.upper() for key, engine in _LEGEND.findall(text)}
            if _ENGINE.match(text):
                found = [(match.start(), match[1]) for match in _ENGINE.finditer(text)]
                break
        names = tuple(name for _, name in found)
        unknown = [name for name in names if name not in self.keys.values()]
        if not found or unknown or (self.engines and names != self.engines):
            problem = f"engine {printable(unknown[0])} without a counter" if unknown else "no line of the engines"
            raise self.wrong(self.at, f"{problem}; expected ENGINE_BD, ENGINE_GDMA … below a legend of counters")
        self.engines, self.columns = names, [begin for begin, _ in found]

    def _body(self) -> None:
        for text in self._rest():
            if _RULE.fullmatch(text):
                return
            if text.strip():
                self._cells(self.at, text)
        raise self.wrong(self.at, "ends among the commands; expected a rule and the totals behind them")

    def _tail(self) -> tuple[str, bool]:
        """What stands behind the commands, up to the rule of another block; whether there is one."""
        kept: list[str] = []
        for text in self._rest():
            if _RULE.fullmatch(text):
                return "\n".join(kept), True
            kept.append(text[:_LONGEST_LINE])
        return "\n".join(kept), False

    def _cells(self, line: int, text: str) -> None:
        for engine, (begin, end) in enumerate(zip(self.columns, [*self.columns[1:], len(text)], strict=True)):
            cell = text[begin:end].strip()
            if cell:
                self._cell(line, engine, cell)

    def _cell(self, line: int, engine: int, cell: str) -> None:
        found = _CELL.fullmatch(cell)
        if found is None:
            raise self.wrong(line, f"{printable(cell, 80)!r}; expected NAME|KIND|key:number|…")
        values = self._values(line, found[3])
        waits = [self._whole(line, values, self._key(name)) for name in self.engines]
        start, cost = self._times(line, values)
        self._check_order(line, engine, waits[engine], start)
        self.last[engine] = (waits[engine], start + cost)
        named = _NAME.fullmatch(found[1])
        opcode, mlir_line = (named[1], int(named[2])) if named else (found[1], NONE)
        direction = self._whole(line, values, "dr") if "dr" in values else NONE
        if direction >= len(DIRECTIONS):
            raise self.wrong(line, f"dr:{direction}; expected 0 to {len(DIRECTIONS) - 1}")
        size = self._whole(line, values, "sz") if "sz" in values else NONE
        self.bandwidth.append(float(values.get("bw", 0)))
        opcode_number = self.opcodes.setdefault(opcode, len(self.opcodes))
        kind = self.kinds.setdefault(found[2], len(self.kinds))
        if max(opcode_number, kind) >= _MOST_WORDS:
            raise self.wrong(line, f"more than {_MOST_WORDS} words for what commands do; expected a compiler's few")
        self.rows.append(
            (
                engine,
                opcode_number,
                mlir_line,
                kind,
                start,
                start + cost,
                direction,
                size,
                line,
                len(self.blocks),
                *waits,
            )
        )

    def _times(self, line: int, values: Mapping[str, str]) -> tuple[int, int]:
        """When a command starts, and how long it takes."""
        start, end, cost = (self._whole(line, values, key) for key in "set")
        if end - start + 1 != cost or start < 0 or cost < 0:
            raise self.wrong(line, f"t:{cost}, but s:{start} and e:{end}; expected t = e - s + 1")
        return start, cost

    def _check_order(self, line: int, engine: int, number: int, start: int) -> None:
        """Commands of an engine are counted, and come one after the other."""
        before, free = self.last.get(engine, (0, 0))
        if number != before + 1:
            told = f"command {number} of {self.engines[engine]}"
            raise self.wrong(line, f"{told}; expected {before + 1}, one after the other")
        if start < free:
            raise self.wrong(line, f"s:{start}, while the command before it ends at {free - 1}; expected it later")

    def _values(self, line: int, text: str) -> dict[str, str]:
        pairs = [part.partition(":") for part in text.split("|")[1:]]
        values = {key: value for key, _, value in pairs}
        if len(values) != len(pairs):
            raise self.wrong(line, f"{printable(text, 80)!r}: a key twice; expected each once")
        return values

    def _whole(self, line: int, values: Mapping[str, str], key: str) -> int:
        text = values.get(key, "")
        value = int(text) if len(text) <= _LARGEST_DIGITS and text.removeprefix("-").isdecimal() else _MOST
        if not -1 <= value < _MOST:
            raise self.wrong(line, f"{key}:{printable(text, 40) or '(missing)'}; expected a whole number")
        return value

    def _key(self, engine: str) -> str:
        return next(key for key, name in self.keys.items() if name == engine)

    def _close(self, tail: str) -> None:
        """The totals of a block; its cycles and counters go on from those of the block before it."""
        total = _TOTAL.search(tail)
        if total is None or not self.last:
            raise self.wrong(self.at, f"no {'commands' if total else 'TCYC'}; expected the schedule of a network")
        self._check_waits()
        cycles, runtime, usage = _ENGINE_CYCLES.search(tail), _RUNTIME.search(tail), _USAGE.search(tail)
        self.blocks.append(
            Totals(
                int(total[1][:_LARGEST_DIGITS]),
                None if cycles is None else (int(cycles[1]), int(cycles[2])),
                {int(way): int(size) for way, size in _SUMMARY.findall(tail)},
                None if usage is None else float(usage[1]),
                None if runtime is None else int(runtime[1]),
                None if runtime is None else float(runtime[2]),
            )
        )
        self.last = {}

    def _check_waits(self) -> None:
        """Nobody waits for what the block does not have."""
        most = [self.last.get(engine, (0, 0))[0] for engine in range(len(self.engines))]
        for row in self.rows[len(self.rows) - sum(most) :]:
            for engine, number in enumerate(row[10:]):
                if not 0 <= number <= most[engine]:
                    told = f"waits for command {number} of {self.engines[engine]}"
                    raise self.wrong(row[8], f"{told}; the block has {most[engine]}")

    def _profile(self) -> Profile:
        table = np.array(self.rows, np.int64)
        columns = [np.ascontiguousarray(table[:, place]) for place in range(10)]
        engine, opcode, mlir_line, kind, start, end, direction, size, line, block = columns
        waits = np.ascontiguousarray(table[:, 10:])
        counts = np.zeros((len(self.blocks) + 1, len(self.engines)), np.int64)
        np.add.at(counts, (block + 1, engine), 1)
        before = np.cumsum(counts, axis=0)[block]  # commands of every engine in earlier blocks
        waits = np.where(waits > 0, waits + before, 0)
        number = waits[np.arange(len(waits)), engine]
        profile = Profile(
            str(self.path),
            self.engines,
            tuple(self.opcodes),
            tuple(self.kinds),
            Commands(engine, opcode, mlir_line, kind, start, end, number, waits, direction, size, line, block),
            tuple(self.bandwidth),
            tuple(self.blocks),
        )
        shift = profile.starts[block]
        return replace(profile, commands=replace(profile.commands, start=start + shift, end=end + shift))


def read_profile(path: Path) -> Profile:
    """The file of one core; damage is an error with its line."""
    return _Reader(path).read()


def places(profile: Profile) -> list[Numbers]:
    """Per engine, the row of each of its commands, by number - 1."""
    return [np.flatnonzero(profile.commands.engine == engine) for engine in range(len(profile.engines))]


def dependencies(profile: Profile) -> Numbers:
    """Pairs of rows: a command, and one of another engine that waits for it.

    The first commands of a block wait for the last of the block before it.
    """
    commands, own = profile.commands, places(profile)
    found = []
    for engine, rows in enumerate(own):
        waits = commands.waits[:, engine]
        target = np.flatnonzero((waits > 0) & (commands.engine != engine))
        found.append(np.stack((rows[waits[target] - 1], target), axis=1))
    for block in range(1, len(profile.blocks)):
        earlier = np.flatnonzero(commands.block == block - 1)
        last = earlier[np.argmax(commands.end[earlier])]
        firsts = [rows[commands.block[rows] == block][:1] for rows in own]
        found.append(np.array([(last, first) for rows in firsts for first in rows], np.int64).reshape(-1, 2))
    return np.concatenate(found)


def earliest_starts(profile: Profile) -> Numbers:
    """When each command could start: 1 + the latest end of all that it waits for; equal to its start by the law."""
    commands = profile.commands
    ready = profile.starts[commands.block]
    for rows in places(profile):
        ready[rows[1:]] = np.maximum(ready[rows[1:]], commands.end[rows[:-1]])
    pairs = dependencies(profile)
    np.maximum.at(ready, pairs[:, 1], commands.end[pairs[:, 0]])
    return ready


def moved_bytes(profile: Profile) -> Numbers:
    """Of every command of an engine that moves. Messages between cores repeat the size of an earlier one, and so do
    a few commands of the other engine; neither moves anything."""
    commands = profile.commands
    dma = np.array([is_dma(engine) for engine in profile.engines])[commands.engine]
    return np.where(dma & (commands.direction != NONE) & (commands.cycles > 0), np.maximum(commands.bytes, 0), 0)


def is_dma(engine: str) -> bool:
    return engine.endswith("DMA")


def told_bytes(profile: Profile, block: int | None = None) -> tuple[int, ...]:
    """By direction, as the file adds them up: of every cell that has a size; of one block, or of all."""
    commands = profile.commands
    sizes = np.maximum(commands.bytes, 0) * (np.True_ if block is None else commands.block == block)
    return tuple(int(sizes[commands.direction == way].sum()) for way in range(len(DIRECTIONS)))


def model_gib_per_s(profile: Profile) -> float | None:
    """The bandwidth of DDR that `bw` is cut off at: from the share of it that the file says was used."""
    for number, block in enumerate(profile.blocks):
        read, write, copied, _ = told_bytes(profile, number)
        if block.usage_percent and block.cycles:
            return round((read + write + 2 * copied) / block.cycles / GIB_AS_GHZ * 100 / block.usage_percent, 2)
    return None


def checks(profile: Profile, *, cores: int) -> Iterator[Check]:
    """Identities that the vendor's schedules obey, and whether this one does."""
    commands = profile.commands
    late = np.flatnonzero(commands.start != earliest_starts(profile))
    where = f"; the first in line {commands.line[late[0]]}" if len(late) else ""
    detail = f"{len(commands) - len(late)} of {len(commands)} commands{where}"
    yield Check("a command starts when all that it waits for is done", not len(late), detail)
    fits = profile.end == profile.cycles if cores == 1 else profile.end <= profile.cycles
    yield Check("the last command ends with the total", fits, f"{profile.end} and {profile.cycles} cycles")
    if cores == 1:
        busy = _open_cycles(commands)
        yield Check("some engine is at work in every cycle", busy == profile.end, f"{busy} of {profile.end} cycles")
    told = [block.engine_cycles for block in profile.blocks if block.engine_cycles is not None]
    if len(told) == len(profile.blocks):
        moves = commands.direction != NONE
        sums = tuple(int(commands.cycles[of].sum()) for of in (~moves, moves))
        given = tuple(map(sum, zip(*told, strict=True)))
        yield Check("cycles of the engines add up", sums == given, f"{sums} and {given}")
    summed = told_bytes(profile)
    given = tuple(sum(block.bytes.get(way, 0) for block in profile.blocks) for way in range(len(DIRECTIONS)))
    yield Check("bytes of every direction add up", summed == given, f"{summed} and {given}")
    yield from _bandwidth_checks(profile)


def _bandwidth_checks(profile: Profile) -> Iterator[Check]:
    """`bw` is what a transfer reaches, cut off at what the model has; both of a false clock of 1 GHz."""
    commands, peak = profile.commands, model_gib_per_s(profile)
    if peak is None:
        return
    timed = np.flatnonzero((commands.bytes > 0) & (commands.cycles > 0))
    reached = np.minimum(commands.bytes[timed] / commands.cycles[timed] / GIB_AS_GHZ, peak)
    off = np.abs(reached - np.array(profile.bandwidth)[timed]).max(initial=0.0)
    yield Check("bw is bytes by cycles, cut off at the model's", bool(off < _ROUNDED), f"{len(timed)} transfers")


def _open_cycles(commands: Commands) -> int:
    """Cycles in which at least one engine is at work."""
    order = np.argsort(commands.start, kind="stable")
    start, end = commands.start[order], commands.end[order]
    reach = np.maximum.accumulate(end)
    before = np.concatenate(([0], reach[:-1]))
    return int(np.maximum(end - np.maximum(start, before), 0).sum())
