"""What an interpreter on a chip makes of a model file: its arena buffer by buffer, and what it does not run.

A target's `[runtime]` names it; the code is in the plug-in that offers it. A graph of another form than the file that
the interpreter loads is planned by the rules of `memory`, with the runtime's alignment and order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

from ..core.errors import UsageError
from ..core.plugins import load_place, manifests
from ..core.units import Bytes
from ..graph.graph import Graph
from ..machine.target import Runtime
from ..recording.resources import MemoryPart
from .memory import ArenaBlock, Buffer

_SHOWN = 5  # kinds of problems that a refusal names


@dataclass(frozen=True, slots=True)
class Refused:
    """An operator that the interpreter would not prepare or run."""

    operator: str
    number: int  # among those of its subgraph
    place: str  # in the file, in words
    reason: str
    instead: str  # what it would take


@dataclass(frozen=True, slots=True)
class Examined:
    """One file by the rules of one interpreter."""

    title: str
    planner: str
    bound: Bytes  # most bytes of tensors alive at once
    arena: Bytes  # planned, of tensors alone
    scratch: Bytes  # what kernels' scratch adds to it
    tail: tuple[MemoryPart, ...]  # kept from one inference to the next
    is_whole: bool  # False: the tail is more, of operators that nothing is known of
    buffers: tuple[Buffer, ...]
    file_bytes: int  # that lie on the chip
    blocks: tuple[ArenaBlock, ...] = ()  # of the head, by operators of the file as steps
    steps: int = 0
    refusals: tuple[Refused, ...] = ()

    @property
    def ram_bytes(self) -> int:
        """Of the whole arena."""
        return self.arena + self.scratch + sum(part.size_bytes for part in self.tail)


class Interpreter(Protocol):
    def examine(self, graph: Graph, runtime: Runtime) -> Examined | None:
        """None where the graph is not from a file that the interpreter loads."""
        ...


def examine(graph: Graph, runtime: Runtime) -> Examined | None:
    """What the interpreter of a runtime makes of a file; None: none is there for it, or the file is of another form."""
    interpreter = _find(runtime.interpreter)
    return None if interpreter is None else interpreter.examine(graph, runtime)


def planned_by(name: str, graph: Graph) -> int:
    """Bytes of the arena as an interpreter plans it, with the kernels that it has by itself."""
    interpreter = _find(name)
    if interpreter is None:
        known = [entry.name for manifest in manifests() for entry in manifest.interpreters]
        raise UsageError(f"--planner {name}: not known; expected one of {', '.join(['best', *known])}")
    found = interpreter.examine(graph, Runtime(interpreter=name))
    if found is None:
        raise UsageError(
            f"--planner {name}: plans TensorFlow Lite files; expected --planner best for {graph.framework}"
        )
    return found.arena + found.scratch


def refused(examined: Examined) -> str:
    """Why a file does not run, and what would."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for found in examined.refusals:
        places.setdefault((found.operator, found.reason, found.instead), []).append(found.place)
    shown = "; ".join(
        f"{operator} ({where[0]}{_more(len(where) - 1)}): {reason}, expected {instead}"
        for (operator, reason, instead), where in list(places.items())[:_SHOWN]
    )
    return f"{examined.title} does not run it: {shown}{_more(len(places) - _SHOWN)}"


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _find(name: str) -> Interpreter | None:
    for manifest in manifests():
        for entry in manifest.interpreters:
            if entry.name == name:
                return cast("Interpreter", load_place(manifest, entry.place))
    return None
