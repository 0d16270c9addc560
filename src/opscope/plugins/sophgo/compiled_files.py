"""What a compilation of tpu-mlir says of its ops: `final.mlir`, or the table of placements (`NAME.bmodel.json`).

Commands of a profile name an op by its opcode and its line in final.mlir, and so does the table. Both tell the tensors
that an op reads and writes, by name; final.mlir tells chip, precision and memory as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from ...core.errors import ImportFileError, printable
from ...importers.reading import numbered, read_bytes

LOAD, STORE = "Load", "Store"
_MOST_NAMES = 64  # results of one op
_STRUCTURE = frozenset({"Group", "Yield", "Core_parallel", "GroupParallel", "CoreParallel", "Join", "CoreBegin"})

_OP = re.compile(r'\s*(?:(%[\w:]+(?:, %\w+)*) = )?"(top|tpu)\.(\w+)"\(([^)]*)\)')
_CLOSE = re.compile(r"\s*\}\)")
_FUNCTION = re.compile(r"\s*func\.func @(\w+)\((.*)")
_ARGUMENT = re.compile(r'(%\w+): [^%]*?loc\((#\w+|"(?:[^"\\]|\\.)*")\)')
_MODE = re.compile(r"run_mode (\w+)")
_LOC = re.compile(r"loc\((fused\[.*\]|#\w+|\"(?:[^\"\\]|\\.)*\")[^()]*\)\s*$")
_TABLE = re.compile(r"(#\w+) = loc\((.*)\)\s*$")
_PART = re.compile(r'#\w+|"((?:[^"\\]|\\.)*)"')
_TYPE = re.compile(r"tensor<((?:\d+x)*)(?:\w+|!quant\.\w+<\w+[^>]*>)")
_PLACED = re.compile(r"out_addr = (\d+), out_size = (\d+), buffer_addr = (\d+), buffer_size = (\d+)")
_ATTRIBUTE = re.compile(r'module\.(\w+) = (?:"([^"]*)"|(\d+) : i64)')


@dataclass(frozen=True, slots=True)
class CompiledOp:
    """One op of the compiled network."""

    line: int
    opcode: str
    results: tuple[str, ...]  # names of the tensors that it writes
    operands: tuple[str, ...]
    shape: str = ""
    mode: str = ""  # of its subnet: TPU_STATIC is scheduled, TPU_DYNAMIC is not, CPU is the host's; empty: not told


@dataclass(frozen=True, slots=True)
class Compiled:
    """All ops of a compilation, by their line, and what it says of the whole; None: the file does not tell."""

    ops: Mapping[int, CompiledOp] = field(default_factory=dict)
    chip: str | None = None
    weight_bytes: int | None = None
    neuron_bytes: int | None = None  # activations, inputs and outputs in DDR
    lane_bytes: int | None = None  # most of the local memory of one lane that tensors and buffers take

    def owners(self) -> dict[int, int]:
        """Line of every op → of the op that it works for: a load for its first reader, a store for its writer."""
        writer: dict[str, int] = {}
        reader: dict[str, int] = {}
        for line, op in sorted(self.ops.items()):
            if op.opcode not in (LOAD, STORE):
                for name in op.results:
                    writer.setdefault(name, line)
                for name in op.operands:
                    reader.setdefault(name, line)
        found = {}
        for line, op in self.ops.items():
            known, names = (reader, op.results) if op.opcode == LOAD else (writer, op.operands)
            moves = op.opcode in (LOAD, STORE)
            found[line] = next((known[name] for name in names if name in known), line) if moves else line
        return found


class _MlirReader:
    """final.mlir, line by line. Names of tensors stand behind the ops, and their places often below them all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, str] = {}  # SSA value of the function → its location
        self.open: list[str] = []  # values of groups whose end has not come
        self.places: dict[str, tuple[str, ...]] = {}  # location → names
        self.ops: dict[int, tuple[CompiledOp, str, tuple[str, ...]]] = {}  # with its location and its operands'
        self.head: dict[str, str] = {}
        self.mode = ""
        self.lane_bytes: int | None = None

    def read(self) -> Compiled:
        for number, text in numbered(self.path):
            self._line(number, text)
        if not self.head:
            raise ImportFileError(str(self.path), "line 1", "no module of tpu-mlir; expected final.mlir")
        ops = {line: self._named(*found) for line, found in self.ops.items()}
        whole = {key: int(value) for key, value in self.head.items() if value.isdecimal()}
        return Compiled(
            ops,
            chip=self.head.get("chip"),
            weight_bytes=whole.get("coeff_size"),
            neuron_bytes=whole.get("neuron_size"),
            lane_bytes=self.lane_bytes,
        )

    def _line(self, number: int, text: str) -> None:
        if text.startswith("#"):
            found = _TABLE.match(text)
            if found is not None:
                self.places[found[1]] = (found[2],)
        elif "module @" in text or text.startswith("module "):
            self.head |= {key: word or count for key, word, count in _ATTRIBUTE.findall(text)}
        elif (function := _FUNCTION.match(text)) is not None:
            mode = _MODE.search(text)
            self.mode = "" if mode is None else mode[1]
            self.values, self.open = {}, []
            self.values |= dict(_ARGUMENT.findall(function[2]))
        elif _CLOSE.match(text) and self.open:
            self._define(self.open.pop(), _location(text))
        else:
            self._op(number, text)

    def _op(self, number: int, text: str) -> None:
        found = _OP.match(text)
        if found is None:
            return
        value, dialect, opcode, given = found.groups(default="")
        place = _location(text)
        names = [part.strip() for part in given.split(",") if part.strip()]
        self._define(value, place)
        if text.rstrip().endswith("({"):
            self.open.append(value)
        if dialect == "top" or opcode in _STRUCTURE:
            return
        operands = tuple(filter(None, (self.values.get(name.partition("#")[0], "") for name in names)))
        for out, out_size, buffer, buffer_size in _PLACED.findall(text):
            most = max(int(out) + int(out_size), int(buffer) + int(buffer_size) if int(buffer_size) else 0)
            self.lane_bytes = max(self.lane_bytes or 0, most)
        op = CompiledOp(number, opcode, (), (), _shape_of(text), self.mode)
        self.ops[number] = (op, place, operands)

    def _define(self, values: str, place: str) -> None:
        """`%5`, `%5:2` with results %5#0 and %5#1, or `%values, %indices`."""
        for value in values.split(", ") if values else ():
            self.values[value.partition(":")[0]] = place

    def _named(self, op: CompiledOp, place: str, operands: tuple[str, ...]) -> CompiledOp:
        read = dict.fromkeys(name for operand in operands for name in self._names(operand))
        return replace(op, results=tuple(self._names(place)), operands=tuple(read))

    def _names(self, place: str, depth: int = 0) -> Iterator[str]:
        """Of a location: its own text, those of the locations that it joins, or of the one that it stands for."""
        if depth > 4:
            return
        for count, part in enumerate(_PART.finditer(place)):
            if count >= _MOST_NAMES:
                return
            if part[1] is not None:
                yield part[1]
            else:
                for other in self.places.get(part[0], ()):
                    yield from self._names(other, depth + 1)


def _location(text: str) -> str:
    found = _LOC.search(text)
    return found[1] if found else ""


def _shape_of(text: str) -> str:
    """Shape of the (first) result."""
    found = _TYPE.search(text.rpartition("->")[2])
    return "" if found is None else found[1].rstrip("x")


def read_mlir(path: Path) -> Compiled:
    """final.mlir of a compilation."""
    return _MlirReader(path).read()


class _Tensor(msgspec.Struct):
    name: str = ""
    memory_type: str = ""


class _Entry(msgspec.Struct, rename={"line": "file-line"}):
    line: int
    opcode: str
    operands: list[_Tensor] = []
    results: list[_Tensor] = []


def read_placements(path: Path) -> Compiled:
    """NAME.bmodel.json or tensor_location.json; an op that was cut into slices has an entry for each."""
    try:
        entries = msgspec.json.decode(read_bytes(path), type=list[_Entry])
    except msgspec.MsgspecError as error:
        raise ImportFileError(str(path), "", f"{printable(str(error), 200)}; expected a table of placements") from error
    ops: dict[int, CompiledOp] = {}
    for entry in entries:
        known = ops.get(entry.line)
        ops[entry.line] = known or CompiledOp(
            entry.line,
            entry.opcode.rpartition(".")[2],
            tuple(tensor.name for tensor in entry.results if tensor.name),
            tuple(tensor.name for tensor in entry.operands if tensor.name),
            _stored_shape(entry.results),
        )
    return Compiled(ops)


def _stored_shape(results: Sequence[_Tensor]) -> str:
    """`<1x32x112x112xf16>` → 1x32x112x112."""
    return results[0].memory_type.strip("<>").rpartition("x")[0] if results else ""


def merged(parts: Sequence[Compiled]) -> Compiled:
    """What several files of one compilation tell; of an op, what the first has."""
    whole = Compiled()
    for part in parts:
        known = {
            name: getattr(part, name)
            for name in ("chip", "weight_bytes", "neuron_bytes", "lane_bytes")
            if getattr(whole, name) is None
        }
        whole = replace(whole, ops={**part.ops, **whole.ops}, **known)
    return whole
