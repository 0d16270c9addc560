"""ETRecord, a zip archive → nodes of the program by debug handle: names, modules, lines of source, shapes.

It also holds weights and example inputs, pickled: those are never read. All that is read is JSON.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from struct import error as StructError  # noqa: N812  the standard library's name is lower case
from zipfile import BadZipFile, ZipFile

import msgspec

from ...core.errors import ImportFileError, printable
from ...core.json_files import decode_json

FORWARD = "forward"
_PROGRAM = "edge_dialect_exported_program/"
_HANDLES, _DELEGATES = "debug_handle_map", "delegate_map"
_MOST_BYTES = 1 << 28  # of one part, unpacked
_METHODS = (0, 8)  # stored, deflate: of the others Python's decoders do not bound the memory
_DEEPEST = 3  # of a delegate in a delegate
_FRAME = re.compile(r'File "([^"\n]{1,1000})", line (\d{1,9})')
_LIBRARY = re.compile(r"[\\/](?:site|dist)-packages[\\/]|[\\/]torch[\\/]nn[\\/]")
_HIGHER = "torch.ops.higher_order."
_EDGE = "executorch.exir.dialects.edge.ops."


class _Name(msgspec.Struct):
    name: str = ""


class _Argument(msgspec.Struct):
    tensor: _Name | None = msgspec.field(name="as_tensor", default=None)
    text: str | None = msgspec.field(name="as_string", default=None)


class _Input(msgspec.Struct):
    arg: msgspec.Raw = msgspec.Raw(b"{}")


class _Node(msgspec.Struct):
    name: str
    target: str = ""
    inputs: list[_Input] = []
    outputs: list[msgspec.Raw] = []
    metadata: dict[str, str] = {}


class _Size(msgspec.Struct):
    as_int: int | None = None


class _Tensor(msgspec.Struct):
    sizes: list[_Size] = []


class _Graph(msgspec.Struct):
    nodes: list[_Node] = []
    tensors: dict[str, _Tensor] = msgspec.field(name="tensor_values", default_factory=dict)


class _Module(msgspec.Struct):
    graph: _Graph


class _Program(msgspec.Struct):
    module: _Module = msgspec.field(name="graph_module")


class _Lowered(msgspec.Struct):
    backend: str = msgspec.field(name="backend_id", default="")
    original: _Program | None = msgspec.field(name="original_module", default=None)


class _Delegate(msgspec.Struct):
    name: str = ""
    ids: dict[str, int | list[int]] = msgspec.field(name="delegate_map", default_factory=dict)


_PROGRAMS = msgspec.json.Decoder(_Program)
_HANDLE_MAPS = msgspec.json.Decoder(dict[str, dict[str, int | list[int]]])
_DELEGATE_MAPS = msgspec.json.Decoder(dict[str, dict[str, _Delegate]])


@dataclass(frozen=True, slots=True)
class Node:
    """An op of the model."""

    name: str
    type: str  # aten.convolution.default
    handle: int | None
    module: str  # path in the model
    line: str  # FILE:LINE of the user's code
    shape: str  # of what it makes
    backend: str = ""  # delegate that it was given to
    is_call: bool = False  # of a delegate


@dataclass(frozen=True, slots=True)
class Record:
    """What an ETRecord says of one method."""

    nodes: tuple[Node, ...] = ()  # in the order of the program, those of a delegate behind its call
    handles: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of every instruction
    delegates: Mapping[str, _Delegate] = field(default_factory=dict)  # of every instruction that calls one

    def nodes_of(self, instruction: int) -> tuple[Node, ...]:
        """The nodes that an instruction stands for."""
        return self._with(self.handles.get(str(instruction), ()))

    def inside(self, instruction: int, identifier: str) -> tuple[Node, ...]:
        """The nodes that something inside of a delegate stands for, where the delegate tells."""
        found = self.delegates.get(str(instruction))
        return () if found is None else self._with(_numbers(found.ids.get(identifier, [])))

    def backend(self, instruction: int) -> str:
        found = self.delegates.get(str(instruction))
        return "" if found is None else found.name

    def _with(self, handles: tuple[int, ...]) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.handle in handles and not node.is_call)


def read_record(path: Path) -> Record:
    """The method `forward`; where there is no such one, the only one."""
    source = str(path)
    try:
        with ZipFile(path) as archive:
            names = [name.removeprefix(_PROGRAM) for name in archive.namelist() if name.startswith(_PROGRAM)]
            methods = [name for name in names if not name.endswith(("_state_dict", "_constants", "_example_inputs"))]
            chosen = FORWARD if FORWARD in methods or len(methods) != 1 else methods[0]
            if chosen not in methods:
                known = ", ".join(printable(name, 40) for name in methods[:5]) or "none"
                raise ImportFileError(source, "", f"no program of method {FORWARD}, but {known}; expected an ETRecord")
            program = decode_json(_part(archive, _PROGRAM + chosen, source), _PROGRAMS, source=source)
            handles = decode_json(_part(archive, _HANDLES, source), _HANDLE_MAPS, source=source).get(chosen, {})
            delegates = decode_json(_part(archive, _DELEGATES, source), _DELEGATE_MAPS, source=source).get(chosen, {})
    except (
        BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
        StructError,
        ValueError,
    ) as error:
        raise ImportFileError(source, "", f"damaged archive ({printable(str(error))}); expected an ETRecord") from error
    nodes = tuple(_nodes(program, "", 0))
    return Record(nodes, {number: _numbers(value) for number, value in handles.items()}, delegates)


def _part(archive: ZipFile, name: str, source: str) -> bytes:
    """A part of the archive; one that is not there says nothing."""
    if name not in archive.NameToInfo:
        return b"{}"
    info = archive.getinfo(name)
    if info.file_size > _MOST_BYTES or info.compress_type not in _METHODS:
        raise ImportFileError(source, name, f"{info.file_size} bytes, packing {info.compress_type}; expected JSON")
    return archive.read(info)


def _numbers(value: int | list[int]) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


def _nodes(program: _Program, backend: str, depth: int) -> Iterator[Node]:
    graph = program.module.graph
    for node in graph.nodes:
        lowered = _lowered(node) if node.target.startswith(_HIGHER) else None
        handle = node.metadata.get("debug_handle", "")
        yield Node(
            node.name,
            node.target.removeprefix(_EDGE).removeprefix(_HIGHER),
            int(handle) if handle.isascii() and handle.isdigit() and len(handle) < 10 else None,
            _module(node.metadata.get("nn_module_stack", "")),
            _line(node.metadata.get("stack_trace", "")),
            _shape(node, graph),
            lowered.backend if lowered is not None else backend,
            is_call=lowered is not None,
        )
        if lowered is not None and lowered.original is not None and depth < _DEEPEST:
            yield from _nodes(lowered.original, lowered.backend, depth + 1)


def _lowered(node: _Node) -> _Lowered | None:
    """What a call of a delegate holds, as JSON in a string."""
    for given in node.inputs:
        argument = _argument(given.arg)
        if argument.text is not None and argument.text.startswith("{"):
            try:
                return msgspec.json.decode(argument.text, type=_Lowered)
            except (msgspec.MsgspecError, RecursionError):
                return None
    return None


def _argument(raw: msgspec.Raw) -> _Argument:
    try:
        return msgspec.json.decode(raw, type=_Argument)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Argument()


def _module(stack: str) -> str:
    """Path of the innermost module: entries are `KEY,PATH,TYPE` with semicolons between them."""
    entries = [entry.split(",") for entry in stack[:100_000].split(";")]
    return next((entry[1] for entry in reversed(entries) if len(entry) > 2 and entry[1]), "")


def _line(stack: str) -> str:
    """The innermost line that is no library's."""
    frames = [(file, line) for file, line in _FRAME.findall(stack[:100_000]) if not _LIBRARY.search(file)]
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""


def _shape(node: _Node, graph: _Graph) -> str:
    for raw in node.outputs:
        made = _argument(raw).tensor
        if made is not None and made.name in graph.tensors:
            sizes = graph.tensors[made.name].sizes
            return "×".join("?" if size.as_int is None else str(size.as_int) for size in sizes)
    return ""
