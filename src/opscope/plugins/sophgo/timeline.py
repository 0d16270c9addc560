"""The schedule of one core → commands and Trace: a lane per engine, the bytes on their routes, who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...core.meaning import Does, LaneRole
from ...core.provenance import Provenance
from ...importers.column_trace import Clock
from ...program.program import COMMAND, NO_OP, NO_ROUTE, Detail, MemoryInfo
from ...recording.run import CommandTable
from ...recording.summary import RouteTotal
from ...recording.trace import COUNTER, EDGE, Lane, SpanKind, Trace, blank_spans
from .meaning import DDR, LOCAL, MATRIX, POOL_OR_DEPTHWISE, ROUTES, does_of
from .profile_file import DIRECTIONS, Profile, dependencies, is_dma, moved_bytes

_COPY = DIRECTIONS.index("S2S")
_LARGEST = 0xFFFF_FFFF


class Schedule:
    """One core's commands with what they do and for which op; rows are ordered by engine, then by number."""

    def __init__(self, profile: Profile, clock: Clock, op_of_line: Mapping[int, int], *, core: int = 0) -> None:
        commands = profile.commands
        self.profile, self.clock, self.core = profile, clock, core
        self.order = np.lexsort((commands.number, commands.engine))
        self.engine, self.kind, self.opcode = (
            column[self.order] for column in (commands.engine, commands.kind, commands.opcode)
        )
        self.start, self.end = commands.start[self.order], commands.end[self.order]
        self.number, self.direction = commands.number[self.order], commands.direction[self.order]
        self.cycles = self.end - self.start
        self.bytes = moved_bytes(profile)[self.order]
        self.route = np.where((self.bytes > 0) & (self.direction < len(ROUTES)), self.direction, NO_ROUTE)
        self.outer = np.where(self.route == NO_ROUTE, 0, self.bytes * np.where(self.direction == _COPY, 2, 1))
        lines = commands.mlir_line[self.order].tolist()
        self.op = np.array([op_of_line.get(line, NO_OP) for line in lines], np.int64)
        self.does = self._does()

    def _does(self) -> Numbers:
        """By the kind, or where bytes go to or come from DDR by that; a kind of the other engine says nothing."""
        profile = self.profile
        pairs = np.stack((self.kind, self.opcode), axis=1)
        told = {
            (kind, opcode): int(does_of(profile.kinds[kind], profile.opcodes[opcode]))
            for kind, opcode in np.unique(pairs, axis=0).tolist()
        }
        found = np.array([told[kind, opcode] for kind, opcode in pairs.tolist()], np.int64)
        within = (self.bytes > 0) & (self.route == NO_ROUTE)  # from one place of local memory to another
        return np.select([self.route != NO_ROUTE, within], [int(Does.MOVE), int(Does.LAYOUT)], found)

    @property
    def ns(self) -> tuple[Numbers, Numbers]:
        return self.clock.ns(self.start), self.clock.ns(self.end)

    def spread_macs(self, macs: Sequence[int | None]) -> Numbers:
        """MACs of ops over their commands: those that multiply share them by their cycles."""
        result = np.zeros(len(self.op), np.int64)
        matrix = np.array([kind in MATRIX for kind in self.profile.kinds])[self.kind]
        pools = np.array([kind == POOL_OR_DEPTHWISE for kind in self.profile.kinds])[self.kind]
        for op, count in enumerate(macs):
            own = np.flatnonzero(self.op == op) if count else np.zeros(0, np.int64)
            chosen = next((rows for rows in (own[matrix[own]], own[pools[own]], own) if len(rows)), own)
            if count and len(chosen):
                upto = np.cumsum(self.cycles[chosen] + 1)
                result[chosen] = np.diff(upto * count // int(upto[-1]), prepend=0)
        return result

    def table(self, macs: Sequence[int | None] = ()) -> CommandTable:
        """The commands, each with its words."""
        words = {pair: number for number, pair in enumerate(dict.fromkeys(zip(self.opcode, self.kind, strict=True)))}
        rows = np.zeros(len(self.op), COMMAND)
        rows["core"], rows["group"], rows["route"] = self.core, self.engine, self.route
        rows["kind"] = [words[pair] for pair in zip(self.opcode, self.kind, strict=True)]
        rows["op"], rows["detail"], rows["ordinal"] = self.op, np.arange(len(rows)), self.number - 1
        rows["cycles"], rows["moved_bytes"] = np.minimum(self.cycles, _LARGEST), self.outer
        rows["macs"], rows["does"] = self.spread_macs(macs), self.does
        names = tuple(f"{self._opcode(opcode)} {self.profile.kinds[kind]}".strip() for opcode, kind in words)
        return CommandTable.from_details(
            rows,
            [self._detail(row) for row in range(len(rows))],
            kinds=names,
            groups=self.profile.engines,
            routes=ROUTES,
            places=(MemoryInfo(DDR, True), MemoryInfo(LOCAL, False)),
        )

    def _opcode(self, opcode: int) -> str:
        return self.profile.opcodes[opcode] or "message"

    def _detail(self, row: int) -> Detail:
        """Attributes are lines of NAME=VALUE; the bandwidth is of the chip's own clock, unlike that of the file."""
        profile = self.profile
        said = {
            "command": f"{profile.engines[self.engine[row]]} {self.number[row]}",
            "op": f"{self._opcode(self.opcode[row])}",
            "kind": profile.kinds[self.kind[row]],
        }
        if self.bytes[row]:
            rate = self.bytes[row] / self.cycles[row] * self.clock.hz / 1e9
            said |= {"direction": DIRECTIONS[self.direction[row]], "bytes": str(self.bytes[row]), "GB/s": f"{rate:.2f}"}
        memory = DDR if self.route[row] != NO_ROUTE else LOCAL
        text = "\n".join(f"{name}={value}" for name, value in said.items())
        return Detail(self._opcode(self.opcode[row]), memory, "", "", (), text)

    def trace(self, table: CommandTable) -> Trace:
        """A lane per engine that has commands."""
        used = np.unique(self.engine)
        lanes = tuple(
            Lane(0, self.core, name, role=LaneRole.TRANSFER if is_dma(name) else LaneRole.ENGINE)
            for name in (self.profile.engines[engine] for engine in used)
        )
        spans = blank_spans(len(self.op))
        spans["lane"] = np.searchsorted(used, self.engine)
        spans["kind"] = np.where(self.route != NO_ROUTE, SpanKind.TRANSFER, SpanKind.OP)
        spans["start_ns"], spans["end_ns"] = self.ns
        spans["pcycles"], spans["command"], spans["route"] = self.cycles, np.arange(len(spans)), self.route
        spans["op"], spans["does"], spans["name"] = self.op, self.does, table.rows["kind"]
        empty = np.zeros(0, COUNTER)
        return Trace(lanes, table.kinds, spans, self._edges(), (), empty, Provenance.VENDOR_MODEL)

    def _edges(self) -> npt.NDArray[np.void]:
        place = np.empty(len(self.order), np.int64)
        place[self.order] = np.arange(len(self.order))
        pairs = place[dependencies(self.profile)]
        edges = np.zeros(len(pairs), EDGE)
        edges["source"], edges["target"], edges["data"] = pairs[:, 0], pairs[:, 1], True
        return edges[np.argsort(edges["target"], kind="stable")]

    def route_totals(self) -> tuple[RouteTotal, ...]:
        """Of the device, and of its core; an engine has one transfer at a time."""
        start, end = self.ns
        rows = []
        for number, route in enumerate(ROUTES):
            own = self.route == number
            if own.any():
                told = (int(own.sum()), int(self.outer[own].sum()), int((end - start)[own].sum()), 1)
                rows += [RouteTotal(0, core, route.name, *told) for core in (None, self.core)]
        return tuple(rows)
