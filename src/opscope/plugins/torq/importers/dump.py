"""`NAME.9.executable-targets.mlir` (or the `.mlirb` files of a debug folder) → Listing: jobs, tasks, steps, actions.

MLIR's own parser reads generic form, with dialects that it does not know. The vendor's assembly is brought into that
form by the vendor's own tool, where there is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.errors import ImportFileError, UsageError, printable
from ....core.sums import whole_sum
from ....importers.mlir_location import plain_location
from ....importers.reading import read_bytes
from ..annotate.annotated import Action, Dispatch, Job, Listing, Payload, Phase, Role, Step, Task
from .custom_assembly import EXPECTED, find_tool, generic_text
from .dump_memory import buffer_of, buffers_of, memories_of, memory_of, named_memories, origin_of, payload_of
from .mlir_bytecode import is_bytecode, texts_of

if TYPE_CHECKING:
    from iree.compiler import ir

_MOST_BYTES, _DEEPEST = 1 << 28, 200  # the parser recurses: deeper text would end the process
_SPACE_ATTRIBUTE = re.compile(rb"#torq_hl(?:\.enc<|<enc\b)[^<>]*?mem_space\s*=\s*(\w+)[^<>]*>")
_CUSTOM = re.compile(rb"^\s*(?:%[\w:]+(?:, %[\w:]+)* = )?(torq_h[lw]\.\w+)", re.MULTILINE)
# Ops of dialects that the parser knows are verified against its own version of them, and without the meaning that
# the vendor's ops give to symbols and regions: under another name they are taken as they are.
_KNOWN_OP = re.compile(rb'"(?!builtin\.|func\.|torq_h[lw]\.)(\w+\.[\w.]+)"(?=\()')
_STRING = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"')  # brackets in names nest nothing
_INVOCATIONS = ("torq_hl.create_invocation", "torq_hl.descriptor")
_ORDER = (  # in which the steps of a task are told
    "dma_in_cfg",
    "dma_in_start",
    "dma_in_wait",
    "slice_start",
    "slice_wait",
    "dma_out_cfg",
    "dma_out_start",
    "dma_out_wait",
    "css_start",
    "css_wait",
    "cdma_start",
    "cdma_wait",
)
_MOST_SLICES, _MOST_CYCLES = 1 << 10, 1 << 50  # what is beyond is damage, and would take memory without end
_PRODUCER = "opscope.producer"  # attribute of a module that our compiler wrote
_PREFIXES = ("slice_program_", "css_program_", "torq_hl.")
_NEEDS = "reading MLIR needs iree-base-compiler 3.10; expected `pip install 'opscope[mlir]'`"


def read_listing(path: Path, *, tool: Path | None = None) -> Listing:
    """Every dispatch of a dump, or of those in a folder; `tool` is the vendor's `iree-opt`, for its own assembly."""
    try:
        import iree.compiler.ir  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{path}: {_NEEDS}") from error
    files = _files(path)
    packed = _unpacked([file for file in files if is_bytecode(file)], tool)
    dispatches: list[Dispatch] = []
    notes: list[str] = []
    producer = None
    for file in files:
        reader = _Reader(file, packed[file] if file in packed else read_bytes(file), notes, tool)
        producer = producer or reader.producer
        dispatches += reader.dispatches()
    if not dispatches:
        raise ImportFileError(
            str(path), "", "no function with actions of the device; expected an executable-targets dump"
        )
    return Listing(str(path), tuple(dispatches), tuple(dict.fromkeys(notes)), producer)


def _unpacked(files: list[Path], tool: Path | None) -> dict[Path, bytes]:
    """The text of bytecode: by our own parser, or by the vendor's tool where it is of a later MLIR than ours."""
    try:
        return texts_of(files)
    except ImportFileError as error:
        if (found := find_tool(tool)) is None:
            raise
        return {file: generic_text(file, found, str(error).removeprefix(f"{file}: ")) for file in files}


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for pattern in ("*.mlirb", "*executable-targets.mlir"):
        found = sorted(path.glob(pattern), key=_in_order)
        if found:
            return found
    raise UsageError(f"{path}: no dump in this folder; expected *.mlirb or *.executable-targets.mlir")


def _in_order(path: Path) -> list[tuple[bool, int, str]]:
    """Dispatch 2 before dispatch 10: the order in which they are compiled, and run."""
    words = re.split(r"(\d{1,18})", path.name)
    return [(word.isdecimal(), int(word) if word.isdecimal() else 0, word) for word in words]


class _CustomAssemblyError(ImportFileError):
    """The text is in the assembly of a dialect that the parser does not know."""

    def __init__(self, path: Path, place: str, problem: str) -> None:
        super().__init__(str(path), place, f"{problem}; {EXPECTED}")
        self.problem = problem


def _parse(path: Path, raw: bytes) -> tuple[ir.Module, ir.Context]:
    """The module of a dump, in text or bytecode; a file that would crash the parser is refused before."""
    from iree.compiler import ir

    if len(raw) > _MOST_BYTES:
        raise ImportFileError(str(path), "", f"{len(raw)} bytes; expected at most {_MOST_BYTES}")
    if b"\0" in raw:
        at = raw.index(b"\0")
        raise ImportFileError(str(path), f"byte {at:#x}", "binary data; expected MLIR in generic form, or bytecode")
    _check_depth(path, raw)
    if (custom := _CUSTOM.search(raw)) is not None:
        at = custom.start(1)
        line, column = 1 + raw.count(b"\n", 0, at), at - raw.rfind(b"\n", 0, at)
        place = f"line {line}, column {column}"
        raise _CustomAssemblyError(path, place, f"Dialect not found for custom op '{printable(custom[1].decode())}'")
    text = _SPACE_ATTRIBUTE.sub(rb'"\1"', raw)  # a memory space of a dialect that is not there cannot be parsed
    text = _KNOWN_OP.sub(rb'"as_is.\1"', text)
    context = ir.Context()
    context.enable_multithreading(False)  # what threads of the parser complain about waits for ours forever
    context.allow_unregistered_dialects = True
    try:
        return ir.Module.parse(text.decode("utf-8", "replace"), context), context
    except ir.MLIRError as error:
        place, problem = _diagnosis(error)
        if "custom op" in problem:
            raise _CustomAssemblyError(path, place, problem) from error
        raise ImportFileError(str(path), place, f"{problem}; expected MLIR") from error


def _check_depth(path: Path, raw: bytes) -> None:
    data = np.frombuffer(_STRING.sub(b"", raw), np.uint8)
    opens = np.isin(data, np.frombuffer(b"({[<", np.uint8))
    closes = np.isin(data, np.frombuffer(b")}]>", np.uint8))
    closes[1:] &= ~((data[1:] == ord(">")) & (data[:-1] == ord("-")))
    depth = np.cumsum(opens.astype(np.int32) - closes)
    if int(depth.max(initial=0)) > _DEEPEST:
        line = 1 + int((data[: int(np.argmax(depth > _DEEPEST))] == ord("\n")).sum())
        raise ImportFileError(str(path), f"line {line}", f"nested more than {_DEEPEST} deep; expected a dump")


def _diagnosis(error: Exception) -> tuple[str, str]:
    """Line and column, and the parser's own words."""
    found = getattr(error, "error_diagnostics", ())
    if not found:
        return "", printable(str(error), 200)
    place = re.search(r":(\d+):(\d+)", str(found[0].location))
    return (f"line {place[1]}, column {place[2]}" if place else ""), printable(found[0].message.strip(), 200)


class _Reader:
    """One file. Holds what the functions of a dump have in common."""

    def __init__(self, path: Path, raw: bytes, notes: list[str], tool: Path | None) -> None:
        self.path, self.notes = path, notes
        try:
            self.module, self.context = _parse(path, raw)
        except _CustomAssemblyError as error:
            if (found := find_tool(tool)) is None:
                raise
            self.module, self.context = _parse(path, generic_text(path, found, error.problem))
        self.producer = _text(self.module.operation, _PRODUCER)
        self.buffers = buffers_of(self.module.operation)

    def dispatches(self) -> Iterator[Dispatch]:
        for function in _functions(self.module.operation):
            body = [op.operation for block in function.regions[0].blocks for op in block.operations]
            if any(op.name.startswith("torq_hl.") for op in body):
                yield self._dispatch(str(function.attributes["sym_name"]).strip('"'), body)

    def _dispatch(self, name: str, body: list[Any]) -> Dispatch:
        invocations = {op.results[0]: op for op in body if op.name in _INVOCATIONS and len(op.results)}
        starts, waits = (_per_run(body, f"torq_hl.{word}_program") for word in ("start", "wait"))
        runs = [run for run in waits if "<nss>" in str(run[0].type)]
        last: dict[int, str | None] = {}  # slice → what it was last given to do
        jobs = tuple(self._job(n, run[0], invocations, starts.get(run), last) for n, run in enumerate(runs))
        number = {run: n for n, run in enumerate(runs)}
        of_op = {op: number[run] for ends in (starts, waits) for run, op in ends.items() if run in number}
        actions = [self._action(op, of_op.get(op)) for op in body if "torq-action-id" in op.attributes]
        tasks = [task for job in jobs for task in job.tasks]
        memories = tuple(memories_of(body)) or tuple(named_memories(self.buffers, tasks))
        return Dispatch(name, jobs, tuple(sorted(actions, key=lambda a: a.id)), memories)

    def _job(
        self, number: int, value: Any, invocations: dict[Any, Any], start: Any | None, last: dict[int, str | None]
    ) -> Job:
        """A job with its tasks; one whose program the dump does not hold has none, and a note says so."""
        invocation = invocations.get(value)
        name = _text(invocation, "name") or f"nss_program_{number}"
        program = _program_of(invocation)
        if program is None:
            self.notes.append(f"{self.path}: {printable(name)} has no program in the dump: its steps are unknown")
            return Job(name, (), _number(invocation, "torq-job-id"))
        bound = _bindings(program, start)
        found = [
            op.operation
            for block in program.regions[0].blocks
            for op in block.operations
            if op.operation.name == "torq_hw.nss_task"
        ]
        tasks = _with_descriptors(tuple(self._task(op, bound, last) for op in found))
        return Job(
            name, tasks, _number(invocation, "torq-job-id"), _location(start if start is not None else invocation)
        )

    def _task(self, task: Any, bound: dict[Any, Any], last: dict[int, str | None]) -> Task:
        steps = [op.operation for block in task.regions[0].blocks for op in block.operations]
        ranked = sorted(steps, key=lambda op: _rank(op.name))
        numbers = [self._count(task, f"torq-{what}", _MOST_CYCLES) for what in ("task-id", "start-time-cycles")]
        return Task(tuple(self._step(op, bound, last) for op in ranked), *numbers)

    def _step(self, op: Any, bound: dict[Any, Any], last: dict[int, str | None]) -> Step:
        """A step by the name of its operation: `slice_start` is unit `slice` in the phase `start`."""
        short = op.name.rpartition(".")[2]
        unit, _, word = short.rpartition("_")
        try:
            phase = Phase(word)
        except ValueError:
            self.notes.append(f"{self.path}: step {printable(op.name)} is not known: it uses no unit")
            return Step(op.name, "other", Phase.CONFIGURE, location=_location(op))
        number = self._count(op, "id", _MOST_SLICES) if unit == "slice" else None
        invocation = None
        if unit in ("slice", "css") and phase is Phase.START and len(op.operands):
            invocation = _plain_name(_text(bound.get(op.operands[0]), "name"))
        if unit == "slice" and number is not None:
            invocation = last[number] = invocation if phase is Phase.START else last.get(number)
        source, destination = _ends(op, unit, phase)
        cycles = self._count(op, "torq-async-duration-cycles", _MOST_CYCLES)
        if cycles is None and unit == "slice" and phase is Phase.START and len(op.operands):
            cycles = self._program_cycles(_program_of(bound.get(op.operands[0])))
        origins = [origin_of(value, bound) for value in op.operands if str(value.type).startswith("memref")]
        outer = {"dma_in": origins[:1], "dma_out": origins[1:2]}.get(unit)  # the end of a transfer that is not local
        return Step(
            op.name,
            unit,
            phase,
            number,
            invocation,
            cycles,
            source,
            destination,
            _location(op),
            self._count(op, "torq-async-bytes", _MOST_CYCLES),
            payload_of(outer[0], self.buffers) if outer else Payload.UNKNOWN,
            tuple(map(buffer_of, origins)),
        )

    def _program_cycles(self, program: Any | None) -> int | None:
        """Of a slice program: the cycles of its tasks, one after the other."""
        if program is None:
            return None
        tasks = [op.operation for block in program.regions[0].blocks for op in block.operations]
        return whole_sum(
            self._count(op, "max_cycle", _MOST_CYCLES) for op in tasks if op.name == "torq_hw.slice_profiling"
        )

    def _count(self, op: Any, name: str, most: int) -> int | None:
        """A number from 0 on; one that cannot be is noted, and unknown."""
        value = _number(op, name)
        if value is None or 0 <= value < most:
            return value
        self.notes.append(f"{self.path}: {printable(op.name)} has {name} {value}, expected 0 to {most - 1}: left out")
        return None

    def _action(self, op: Any, job: int | None) -> Action:
        role = Role.OTHER if job is None else Role.START if op.name.endswith("start_program") else Role.WAIT
        host = op.name == "torq_hl.start_program" and len(op.operands) and "<host>" in str(op.operands[0].type)
        program = _text(op.operands[0].owner, "name") or "" if host else None
        return Action(_number(op, "torq-action-id") or 0, op.name, role, job, _location(op), program)


def _with_descriptors(tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """What is brought to where a slice finds its program is a descriptor; the program is its first memory."""
    areas = {
        step.buffers[0]
        for task in tasks
        for step in task.steps
        if (step.unit, step.phase) == ("slice", Phase.START) and step.buffers
    } - {""}

    def told(step: Step) -> Step:
        is_one = step.unit == "dma_in" and len(step.buffers) == 2 and step.buffers[1] in areas
        return replace(step, payload=Payload.DESCRIPTOR) if is_one else step

    return tuple(replace(task, steps=tuple(map(told, task.steps))) for task in tasks)


def _per_run(body: list[Any], name: str) -> dict[tuple[Any, int], Any]:
    """Invocation, and how often it was there before → the op: one that runs twice has two jobs."""
    seen: Counter[Any] = Counter()
    found = {}
    for op in body:
        if op.name == name and len(op.operands):
            value = op.operands[0]
            found[value, seen[value]] = op
            seen[value] += 1
    return found


def _functions(op: Any) -> Iterator[Any]:
    """Functions, wherever they are nested."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                if child.operation.name == "func.func":
                    if len(child.operation.regions[0].blocks):
                        yield child.operation
                else:
                    yield from _functions(child.operation)


def _program_of(invocation: Any) -> Any | None:
    """The program that an invocation is of."""
    if invocation is None:
        return None
    owners = (operand.owner for operand in invocation.operands)
    return next((owner for owner in owners if getattr(owner, "name", "") == "torq_hl.program"), None)


def _bindings(program: Any, start: Any | None) -> dict[Any, Any]:
    """Arguments of the blocks of a program → the op that made what they are bound to."""
    bound: dict[Any, Any] = {}
    blocks = list(program.regions[0].blocks)
    if start is None or not blocks:
        return bound
    arguments = list(blocks[0].arguments)
    values = list(start.operands)[-len(arguments) :] if arguments else []
    for argument, value in zip(arguments, values, strict=False):
        bound[argument] = value.owner
    for block, following in pairwise(blocks):
        operations = list(block.operations)
        ending = operations[-1].operation if operations else None
        if ending is not None and ending.name == "torq_hl.next":
            for argument, value in zip(following.arguments, ending.operands, strict=False):
                bound[argument] = bound.get(value, value.owner)
    return bound


def _rank(name: str) -> int:
    short = name.rpartition(".")[2]
    return _ORDER.index(short) if short in _ORDER else len(_ORDER)


def _ends(op: Any, unit: str, phase: Phase) -> tuple[str | None, str | None]:
    """Memories read and written. `cdma_start` has its destination FIRST, `dma_*_cfg` the memory that is read."""
    if len(op.operands) < 2 or (unit, phase) not in (
        ("cdma", Phase.START),
        ("dma_in", Phase.CONFIGURE),
        ("dma_out", Phase.CONFIGURE),
    ):
        return None, None
    first, second = (memory_of(str(op.operands[n].type)) for n in (0, 1))
    return (second, first) if unit == "cdma" else (first, second)


def _text(op: Any | None, name: str) -> str | None:
    """A text attribute of an op."""
    attributes = getattr(op, "attributes", None)
    if attributes is None or name not in attributes:
        return None
    value = getattr(attributes[name], "value", None)
    return value if isinstance(value, str) else None


def _number(op: Any | None, name: str) -> int | None:
    attributes = getattr(op, "attributes", None)
    if attributes is None or name not in attributes:
        return None
    value = getattr(attributes[name], "value", None)
    return value if isinstance(value, int) else None


def _plain_name(name: str | None) -> str | None:
    """`slice_program_torq_hl.add` → `add`"""
    for prefix in _PREFIXES if name else ():
        name = (name or "").removeprefix(prefix)
    return name


def _location(op: Any | None) -> str | None:
    """Where an op came from; None: the dump was written without locations, so that the parser says where it stood."""
    if op is None:
        return None
    text = plain_location(str(op.location))
    return None if text == "unknown" or text.startswith(('"-":', '"<stdin>":')) else text
