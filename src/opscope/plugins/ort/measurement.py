"""One measurement with ONNX Runtime, in a process of its own → what the runtime left, read."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ...backends.host_cpu import ports_of
from ...backends.measuring import Measuring, allowed_cpus
from ...backends.process import run_worker
from ...backends.timeline import Work
from ...core.columns import Numbers
from ...core.errors import ModelError, printable
from ...graph.graph import ABSENT, Graph, Op
from ...recording.recording import Recording
from ...recording.trace import NONE, SpanKind
from .fusion import Node
from .importer import RUN, OrtProfile

_LONGEST_S = 3600


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the runtime left."""

    imported: Recording  # its own profile, warm-up and all
    executed: tuple[Node, ...]
    domains: tuple[str, ...]
    constants: frozenset[str]
    samples_ns: tuple[int, ...]  # without its profiler
    producer: Mapping[str, str]


def measure(model: Path, graph: Graph, measuring: Measuring, *, level: str) -> Measurement:
    """In a process of its own."""
    top, names = top_level(graph)
    request = {
        "model": str(model.resolve()),
        "level": level,
        "cpus": allowed_cpus()[: measuring.threads],
        "ports": ports_of(graph, str(model)),
        "nodes": len(graph.ops),
        **measuring.shown(),
        "names": {
            graph.tensors[tensor].name: name
            for op, name in zip(top, names, strict=True)
            for tensor in op.outputs
            if tensor != ABSENT
        },
    }
    with TemporaryDirectory(prefix="opscope-ort-") as place:
        folder = Path(place) / "work"
        folder.mkdir()
        answer, ended = run_worker("opscope.plugins.ort.worker", request, folder, longest_s=_LONGEST_S)
        if answer is None:
            raise ModelError(str(model), "", f"ONNX Runtime {ended.how}; it says: {ended.last_words}")
        if not answer["ok"]:
            raise ModelError(str(model), "", f"ONNX Runtime cannot run it: {printable(str(answer['problem']), 600)}")
        return _measurement(answer)


def _measurement(answer: Mapping[str, object]) -> Measurement:
    rows: list[tuple[str, str, str, list[str], list[str]]] = answer["nodes"]  # type: ignore[assignment]
    return Measurement(
        imported=OrtProfile().read(Path(str(answer["profile"]))),
        executed=tuple(Node(name, kind, tuple(read), tuple(wrote)) for name, kind, _, read, wrote in rows),
        domains=tuple(row[2] for row in rows),
        constants=frozenset(map(str, answer["constants"])),  # type: ignore[call-overload]
        samples_ns=tuple(map(int, answer["samples_ns"])),  # type: ignore[call-overload]
        producer=dict(answer["producer"]),  # type: ignore[call-overload]
    )


def top_level(graph: Graph) -> tuple[list[Op], list[str]]:
    """Ops outside of control-flow bodies, and a name for each that no other has."""
    ops = [op for op in graph.ops if not op.scope]
    counts = Counter(op.name for op in ops)
    return ops, [op.name if counts[op.name] == 1 else f"{op.name}#{place}" for place, op in enumerate(ops)]


def model_nodes(graph: Graph) -> list[Node]:
    """The top level of the model as nodes with tensors by name."""
    ops, names = top_level(graph)
    return [
        Node(name, op.type, _tensors(graph, op.inputs), _tensors(graph, op.outputs))
        for op, name in zip(ops, names, strict=True)
    ]


def _tensors(graph: Graph, numbers: Sequence[int]) -> tuple[str, ...]:
    return tuple(graph.tensors[number].name if number != ABSENT else "" for number in numbers)


@dataclass(frozen=True, slots=True)
class Times:
    """When every executed node ran, in the inferences that count."""

    work: Work  # command: position among the executed nodes
    phases: Work
    per_inference: Numbers  # executed node × inference → ns
    calls: Numbers  # per executed node

    @property
    def profiled_ns(self) -> Numbers:
        return self.phases.end_ns - self.phases.start_ns


def read_times(imported: Recording, executed: Sequence[Node], *, warmup: int) -> Times:
    """Of nodes on the top level; what ran inside of another node is part of its time."""
    spans = imported.trace.spans
    command_of = np.array(_executed(imported, executed) or [NONE], np.int64)
    command = np.where(spans["op"] != NONE, command_of[spans["op"]], NONE)
    counts = spans["inference"] >= warmup
    worked = counts & (spans["kind"] == SpanKind.OP) & (command != NONE)
    runs = np.array([name == RUN for name in imported.trace.names], np.bool_)
    whole = counts & (spans["kind"] == SpanKind.PHASE) & runs[spans["name"]]
    work, phases = (
        Work(
            command[rows],
            spans["inference"][rows].astype(np.int64) - warmup,
            spans["start_ns"][rows],
            spans["end_ns"][rows],
        )
        for rows in (worked, whole)
    )
    table = np.zeros((len(executed), len(phases.command)), np.int64)
    np.add.at(table, (work.command, work.inference), work.end_ns - work.start_ns)
    return Times(work, phases, table, np.bincount(work.command, minlength=len(executed)))


def _executed(imported: Recording, executed: Sequence[Node]) -> list[int]:
    """Position of every row of the profile among the executed nodes; NONE: it ran inside of one.

    A node without a name is `TYPE_NUMBER` in the profile: of one type, they are taken in order.
    """
    named = {node.name: place for place, node in enumerate(executed) if node.name}
    nameless: dict[str, deque[int]] = {}
    for place, node in enumerate(executed):
        if not node.name:
            nameless.setdefault(node.type, deque()).append(place)
    found = []
    for op in imported.ops:
        waiting = nameless.get(op.type or "")
        is_nameless = waiting and op.name not in named and re.fullmatch(rf"{re.escape(op.type or '')}_\d+", op.name)
        found.append(waiting.popleft() if waiting and is_nameless else named.get(op.name, NONE))
    return found
