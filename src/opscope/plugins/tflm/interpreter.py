"""TensorFlow Lite Micro as the interpreter of a target: `[runtime] interpreter = "tflm"`.

`kernels` is "reference" (the default), "cmsis-nn" with `instructions` "plain", "dsp" or "mve", "esp-nn" with "plain" or
"esp32s3", or "ethos-u".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...core.errors import TargetError, printable
from ...core.units import Bytes
from ...estimate.interpreters import Examined, Refused
from ...estimate.memory import ArenaBlock, BlockKind, Buffer
from ...graph.graph import Graph
from ...machine.target import Runtime
from ...readers.tflite.flatbuffer import Flatbuffer
from ...readers.tflite.model import StoredModel
from ...recording.resources import MemoryPart
from .arena import Arena, plan
from .cmsis import Core
from .espnn import Chip
from .nodes import ModelFile
from .support import KERNELS, refusals
from .tail import PACKAGE, Build, tail, unknown_operators

TITLE = "TensorFlow Lite Micro"
PLANNER = "TensorFlow Lite Micro's greedy planner"


class TensorFlowLiteMicro:
    """Examines files by the rules of the runtime's own sources."""

    def examine(self, graph: Graph, runtime: Runtime) -> Examined | None:
        path = Path(graph.source)
        if graph.framework != "TensorFlow Lite" or not path.is_file():
            return None
        build = build_of(runtime)
        file = ModelFile(StoredModel(Flatbuffer(path.read_bytes(), graph.source)))
        arena = plan(file, build.scratch)
        tensors = plan(file, lambda node: ()).bytes
        head = arena.bytes
        return Examined(
            title=TITLE,
            planner=PLANNER,
            bound=Bytes(_bound(arena)),
            arena=Bytes(min(tensors, head)),
            scratch=Bytes(head - min(tensors, head)),
            tail=tuple(MemoryPart(part.value, size) for part, size in tail(file, arena, build).items()),
            is_whole=not unknown_operators(file),
            buffers=tuple(Buffer(Bytes(buffer.size), buffer.first, buffer.last, ()) for buffer in arena.buffers),
            file_bytes=graph.file_bytes,
            blocks=tuple(_blocks(file, arena)),
            steps=len(file.subgraphs[0].operators),
            refusals=tuple(
                Refused(
                    found.operator,
                    found.number,
                    f"operator {found.number}" + (f" of subgraph {found.subgraph}" if found.subgraph else ""),
                    found.reason,
                    found.instead,
                )
                for found in refusals(file, has_npu=runtime.kernels == "ethos-u")
            ),
        )


def _blocks(file: ModelFile, arena: Arena) -> Iterator[ArenaBlock]:
    """The buffers of a plan, by operators of the first subgraph; one that no operator touches is there at the first."""
    for buffer in arena.buffers:
        owner = buffer.owner
        subgraph = file.subgraphs[owner.subgraph]
        if owner.is_scratch:
            operator = subgraph.operators[owner.operator]
            kind, name = BlockKind.SCRATCH, f"scratch of {operator.code.type} {owner.operator}"
        else:
            kind, name = BlockKind.TENSOR, printable(subgraph.tensors[owner.tensor].name, 200)
        first, last = (arena.operators[max(step, 0)] for step in (buffer.first, buffer.last))
        yield ArenaBlock(name, kind, buffer.offset, buffer.size, first, last)


def arena_bytes(graph: Graph) -> int:
    """Of the whole arena on this machine, as an interpreter must be given it."""
    file = ModelFile(StoredModel(Flatbuffer(Path(graph.source).read_bytes(), graph.source)))
    arena = plan(file, PACKAGE.scratch)
    return arena.bytes + sum(tail(file, arena, PACKAGE).values())


def build_of(runtime: Runtime) -> Build:
    """The build of the runtime that a target describes, on a chip with pointers of 4 bytes."""
    kernels, instructions = runtime.kernels or "reference", runtime.instructions or Core.PLAIN.value
    if kernels not in KERNELS:
        raise TargetError("runtime.kernels", "", f"{kernels!r} is not known; expected one of {', '.join(KERNELS)}")
    known = [chip.value for chip in Chip] if kernels == "esp-nn" else [core.value for core in Core]
    if instructions not in known:
        raise TargetError(
            "runtime.instructions", "", f"{instructions!r} is not known; expected one of {', '.join(known)}"
        )
    if kernels == "esp-nn":
        return Build(chip=Chip(instructions))
    return Build(core=Core(instructions) if kernels in {"cmsis-nn", "ethos-u"} else None)


def _bound(arena: Arena) -> int:
    """Most bytes of tensors alive at once, rounded up as the runtime does."""
    changes: dict[int, int] = {}
    for buffer in (found for found in arena.buffers if not found.owner.is_scratch):
        changes[buffer.first] = changes.get(buffer.first, 0) + buffer.size
        changes[buffer.last + 1] = changes.get(buffer.last + 1, 0) - buffer.size
    most = alive = 0
    for step in sorted(changes):
        alive += changes[step]
        most = max(most, alive)
    return most


INTERPRETER = TensorFlowLiteMicro()
