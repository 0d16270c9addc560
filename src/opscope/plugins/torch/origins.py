"""Which module, and which line of the user's code, called for every op: found in one inference of its own.

While it runs, every operator that reaches the dispatcher looks up the Python frames above it and leaves a numbered mark
on the profiler's timeline, inside of the op that it is a part of. Inferences that are timed have no such marks: their
ops are those of the same name, in the same order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.fx import GraphModule, Interpreter
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ...core.columns import Numbers
from ...core.errors import printable
from ...importers.formats import read_profile
from ...readers.onnx.origin import Lines, frame_of, innermost
from .op_calls import Call, op_calls
from .running import INFERENCE, KINETO, Prepared, silent_stderr, told

if TYPE_CHECKING:
    from types import FrameType

    from torch.fx import Node

_MARK = "opscope origin "
_MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an op comes from; empty: not known."""

    module: str = ""
    line: str = ""


Ask = Callable[[], tuple[str, str]]  # module and frame of the op that is about to run


def find_origins(ready: Prepared, trace: Path) -> dict[Call, Origin]:
    """Of every op of one inference."""
    found: list[tuple[str, str]] = []
    call, ask = _asking(ready)
    with (
        told(ready.source),
        silent_stderr(),
        profile(activities=[ProfilerActivity.CPU]) as profiler,
        record_function(INFERENCE),
        _Marking(found, ask),
    ):
        call()
    profiler.export_chrome_trace(str(trace))
    lines = Lines.of_frames(frame for _, frame in found)
    recording = read_profile(trace, form=KINETO)
    names, spans = recording.trace.names, recording.trace.spans
    marks = {number: int(name.removeprefix(_MARK)) for number, name in enumerate(names) if name.startswith(_MARK)}
    marked = sorted((int(row["start_ns"]), marks[int(row["name"])]) for row in spans if int(row["name"]) in marks)
    calls = op_calls(recording)
    origins = {}
    for key, number in zip(calls.calls, _first_inside(calls.start_ns, calls.end_ns, marked), strict=True):
        if number is not None:
            module, frame = found[number]
            origins[key] = Origin(printable(module, _MOST_CHARACTERS), lines.shown(frame))
    return origins


def _first_inside(starts: Numbers, ends: Numbers, marked: Sequence[tuple[int, int]]) -> Iterator[int | None]:
    """Of every op, in order, the first mark in its time."""
    place = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        while place < len(marked) and marked[place][0] < start:
            place += 1
        yield marked[place][1] if place < len(marked) and marked[place][0] <= end else None


class _Marking(TorchDispatchMode):  # type: ignore[misc]
    """Leaves a mark around every operator."""

    def __init__(self, found: list[tuple[str, str]], ask: Ask) -> None:
        super().__init__()
        self.found, self.ask = found, ask

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with record_function(f"{_MARK}{len(self.found)}"):
            self.found.append(self.ask())
            return func(*args, **(kwargs or {}))


def _asking(ready: Prepared) -> tuple[Callable[[], object], Ask]:
    """One inference, and how the op that runs is asked where it comes from: a graph of nodes knows, code has frames."""
    if isinstance(ready.module, GraphModule):
        walk = _Walk(ready.module)
        return lambda: walk.run(*tree_leaves((ready.inputs, ready.keywords)), enable_io_processing=False), walk.origin
    paths = {id(each): path for path, each in ready.module.named_modules()}
    paths[id(ready.module)] = type(ready.module).__name__  # the outermost one has no path, but it has a class
    return lambda: ready.module(*ready.inputs, **ready.keywords), lambda: _of_frames(sys._getframe(2), paths)


def _of_frames(frame: FrameType | None, paths: Mapping[int, str]) -> tuple[str, str]:
    """The innermost module at work, and the innermost line that is not torch's own, up to where we called it."""
    module, places = "", []
    while frame is not None and frame.f_code.co_filename != __file__:
        places.append((frame.f_code.co_filename, frame.f_lineno))
        module = module or paths.get(id(frame.f_locals.get("self")), "")
        frame = frame.f_back
    return module, innermost(places)


class _Walk(Interpreter):  # type: ignore[misc]
    """An exported program node by node; the exporter left in each where it comes from."""

    node: Node | None = None

    def run_node(self, n: Node) -> object:
        self.node = n
        return super().run_node(n)

    def origin(self) -> tuple[str, str]:
        meta = {} if self.node is None else self.node.meta
        path, kind = next(reversed((meta.get("nn_module_stack") or {"": ("", "")}).values()))
        name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
        return path or name.rpartition(".")[2], frame_of(meta.get("stack_trace") or "")
