"""Schematic of the HTP compiler (`*_schematic.bin`, which is text) → what it decided.

The text is made of Python literals; nothing of it is ever executed. Sections that are missing leave their part empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ....core.errors import ImportFileError
from .events import MOST

_MOST_STEPS = 10_000_000  # of the run list: a table has a row for each
_LONGEST = 20  # digits of a number
SPILL, FILL = "@Spill", "@Fill"
_ENDS = ("*Input", "*Output")  # kernels that take inputs and give outputs
OP_MASK = 0xFFFF_FFFF  # the low half of an id is the op of the graph before compilation

_SECTION = re.compile(r"^([a-z_]\w*) ?= ?[\[{]", re.MULTILINE)
_OP = re.compile(r"\t(0x[0-9a-f]+): \{\n\t\t'operation':'([^'\n]*)',")
_INPUT = re.compile(r"\((0x[0-9a-f]+),\d+\)")
_DTYPE = re.compile(r"'dtype': '(\w+)'")
_DIMS = re.compile(r"'dims': \[([\d,]*)\]")
_MOVED = re.compile(
    r'"opid" : (0x[0-9a-f]+) , "dram_read": (\d+) , "dram_write": (\d+) , "vtcm_read": (\d+) , '
    r'"vtcm_write": (\d+), "is_dma": (\d)'
)
_FLAGGED = re.compile(r"\t\t(0x[0-9a-f]+): \{\n\t\t\t'flags': \(([^)]*)\)")
_NAME = re.compile(r"^(0x[0-9a-f]+): '((?:[^'\\\n]|\\.)*)',", re.MULTILINE)
_GRAPH = re.compile(r'^qnn_graph_name = "([^"\n]*)"', re.MULTILINE)
_STEP = re.compile(r"  '#(\d+)': opdesc\( (0x[0-9a-f]+), \"([^\"\n]*)\", ptr=\w+(?:, runlist_pos = (\d+))?")
_BEFORE = re.compile(r"csts_in = \(([^)]*)\)")
_GROUP = re.compile(r" 'mg\d+': memgroup\(bytes=(\d+), is_tcm=(True|False)(?:, gen_op = '#(\d+)')?")
_USERS = re.compile(r"connected_ops = \(([^)]*)\)")
_NUMBER = re.compile(r"#(\d+)")
_BLOCK = re.compile(r"^ +\d+: \((0x[0-9a-f]+), (0x[0-9a-f]+)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CompiledOp:
    """An op of the graph before or after compilation."""

    id: int
    operation: str
    inputs: tuple[int, ...]
    dtype: str
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpBytes:
    """Bytes that one op reads and writes."""

    id: int
    dram_read: int
    dram_write: int
    vtcm_read: int
    vtcm_write: int
    is_dma: bool


class Traffic(Enum):
    """Why an op reads from or writes to DDR, in the words of the vendor's counters."""

    INPUT = "input fill"  # inputs and weights, once; and outputs
    INTERMEDIATE = "intermediate fill and spill"
    AGAIN = "read again"  # inputs and weights a second time, to make room meanwhile: in no counter of the vendor
    DIRECT = "tensors in DDR"  # kernels that work on intermediate tensors there: in no counter of the vendor


@dataclass(frozen=True, slots=True)
class ScheduledOp:
    """An op in the scheduler's list."""

    number: int
    id: int
    operation: str
    position: int | None  # in the run list; None: it takes no time
    after: tuple[int, ...]  # numbers of the steps it waits for


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """Memory that lives and dies together."""

    size: int
    in_vtcm: bool
    first: int  # position in the run list at which it is filled
    last: int  # position at which it is last used


@dataclass(frozen=True)
class Schematic:
    """What the compiler made of one graph."""

    graph: str
    names: dict[int, str]  # op of the graph before compilation → its name
    before: dict[int, CompiledOp]  # the graph as the compiler got it
    ops: dict[int, CompiledOp]
    moved: tuple[OpBytes, ...]
    flags: dict[int, tuple[str, ...]]
    steps: tuple[ScheduledOp, ...]
    memory: tuple[MemoryGroup, ...]
    vtcm_top: int | None = None  # the highest address of VTCM that a block takes

    def occupancy(self) -> npt.NDArray[np.int64]:
        """Bytes of VTCM in use at every position of the run list, at most.

        A group that is spilled and filled again between its uses counts all the time, so that the sum may be more
        than there is; what is in use is never more than what was given out.
        """
        inside = [group for group in self.memory if group.in_vtcm]
        change = np.zeros(max((group.last for group in inside), default=-1) + 2, np.int64)
        for group in inside:
            change[group.first] += group.size
            change[group.last + 1] -= group.size
        return np.minimum(np.cumsum(change), self.vtcm_top if self.vtcm_top is not None else np.iinfo(np.int64).max)

    def operation_of(self, op: int) -> str:
        """Of a compiled op; spills, fills and what is read again are known to the scheduler alone."""
        known = self.ops.get(op)
        return (known.operation if known else self._scheduled.get(op, "")).removeprefix("q::")

    def traffic_of(self, row: OpBytes) -> Traffic:
        """Of a row that reads or writes DDR."""
        operation, op = self.operation_of(row.id), self.ops.get(row.id)
        if operation in (SPILL, FILL):
            return Traffic.INTERMEDIATE
        if not row.is_dma:
            return Traffic.DIRECT
        if op is None:
            return Traffic.AGAIN
        if operation.startswith(_ENDS) or (row.dram_read and op.inputs and self._is_constant(op.inputs[0])):
            return Traffic.INPUT
        return Traffic.DIRECT

    def _is_constant(self, op: int) -> bool:
        known = self.ops.get(op) or self.before.get(op)
        return known is not None and known.operation.startswith("$")

    @cached_property
    def _scheduled(self) -> dict[int, str]:
        return {step.id: step.operation for step in self.steps}


def read_schematic(raw: bytes, *, source: str) -> Schematic:
    """One schematic file."""
    text = raw.decode("utf-8", "replace")
    graph = _GRAPH.search(text)
    if graph is None:
        raise ImportFileError(source, "", "not a schematic, or cut short; expected the text of one compiled graph")
    try:
        return _schematic(graph[1], dict(_sections(text)))
    except ValueError as error:
        raise ImportFileError(source, "", f"damaged: {error}; expected the text of one compiled graph") from error


def _schematic(graph: str, section: Mapping[str, str]) -> Schematic:
    steps = tuple(_steps(section.get("opdesc_map", "")))
    return Schematic(
        graph=graph,
        names={int(op, 16): name for op, name in _NAME.findall(section.get("qnn_name_translations", ""))},
        before={op.id: op for op in _ops(section.get("graph_before_optimization", ""))},
        ops={op.id: op for op in _ops(section.get("graph_after_optimization", ""))},
        moved=tuple(
            OpBytes(int(op, 16), _size(read), _size(write), _size(near_read), _size(near_write), is_dma == "1")
            for op, read, write, near_read, near_write, is_dma in _MOVED.findall(
                section.get("bandwidth_information", "")
            )
        ),
        flags={
            int(op, 16): tuple(re.findall(r"'(\w+)'", words))
            for op, words in _FLAGGED.findall(section.get("graph_res_flags0", ""))
        },
        steps=steps,
        memory=tuple(_memory(section.get("memgroup_map", ""), steps)),
        vtcm_top=max(
            (int(a, 16) + int(n, 16) for a, n in _BLOCK.findall(section.get("tcm_block_info", ""))), default=None
        ),
    )


def _number(text: str, most: int) -> int:
    """A number of the file, if it can be."""
    if len(text) > _LONGEST or int(text) >= most:
        raise ValueError(f"{text[:_LONGEST]} is too much")
    return int(text)


def _size(text: str) -> int:
    return _number(text, MOST)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of every top-level table, up to the next one."""
    for head, end in _blocks(_SECTION, text):
        yield head[1], text[head.end() : end]


def _blocks(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Every match, and where the next begins or the text ends."""
    before: re.Match[str] | None = None
    for head in pattern.finditer(text):
        if before is not None:
            yield before, head.start()
        before = head
    if before is not None:
        yield before, len(text)


def _ops(text: str) -> Iterator[CompiledOp]:
    """Ops of a graph. One stands in the text as

    \t0x1a: {
    \t\t'operation':'q::Conv', … (0x12,0), (0x13,0) … 'outputs' … 'dtype': 'uint8', 'dims': [1,56,56,64]

    Inputs are the ids in front of `'outputs'`; type and shape are those of the first output.
    """
    for head, end in _blocks(_OP, text):
        body = text[head.end() : end]
        cut = body.find("'outputs'")
        inputs, outputs = (body[:cut], body[cut:]) if cut >= 0 else (body, "")
        dtype, dims = _DTYPE.search(outputs), _DIMS.search(outputs)
        yield CompiledOp(
            int(head[1], 16),
            head[2],
            tuple(int(op, 16) for op in _INPUT.findall(inputs)),
            dtype[1] if dtype else "",
            tuple(int(n) for n in dims[1].split(",") if n) if dims else (),
        )


def _steps(text: str) -> Iterator[ScheduledOp]:
    """The scheduler's list: `'#7': opdesc( 0x1a, "q::Conv", ptr=…, runlist_pos = 3 … csts_in = (#2, #5)`."""
    for head, end in _blocks(_STEP, text):
        before = _BEFORE.search(text, head.end(), end)
        yield ScheduledOp(
            int(head[1]),
            int(head[2], 16),
            head[3],
            None if head[4] is None else _number(head[4], _MOST_STEPS),
            tuple(int(n) for n in _NUMBER.findall(before[1])) if before else (),
        )


def _memory(text: str, steps: tuple[ScheduledOp, ...]) -> Iterator[MemoryGroup]:
    """Memory groups: `'mg4': memgroup(bytes=2048, is_tcm=True, gen_op = '#7' … connected_ops = ('#9', '#11')`.

    A group lives from the first to the last of the steps that fill or use it, by their places in the run list.
    """
    position = {step.number: step.position for step in steps}
    for head, end in _blocks(_GROUP, text):
        users = _USERS.search(text, head.end(), end)
        numbers = [int(n) for n in _NUMBER.findall(users[1])] if users else []
        if head[3]:
            numbers.append(int(head[3]))
        places = [place for number in numbers if (place := position.get(number)) is not None]
        if places:
            yield MemoryGroup(_size(head[1]), head[2] == "True", min(places), max(places))
