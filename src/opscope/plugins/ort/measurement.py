"""One measurement with ONNX Runtime, in a process of its own → what the runtime left, read."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...backends.host_cpu import ports_of
from ...backends.kernel_times import KernelTimes
from ...backends.measuring import Measuring
from ...backends.process import checked_answer, run_worker, work_folder
from ...backends.timeline import Stretches
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
    domains: tuple[str, ...]  # of the executed nodes' operators; empty: standard ONNX
    constants: frozenset[str]
    samples_ns: tuple[int, ...]  # without its profiler
    producer: Mapping[str, str]

    @property
    def labels(self) -> tuple[str, ...]:
        """Every executed node as the runtime calls its operator: `com.microsoft:FusedConv`, `Relu`."""
        return tuple(
            f"{domain}:{node.type}" if domain else node.type
            for node, domain in zip(self.executed, self.domains, strict=True)
        )


def measure(model: Path, graph: Graph, measuring: Measuring, *, level: str) -> Measurement:
    """Run the model in a process of its own."""
    top, names = top_level(graph)
    request = {
        **measuring.request(model, ports_of(graph, str(model))),
        "level": level,
        "nodes": len(graph.ops),
        "names": {
            graph.tensors[tensor].name: name
            for op, name in zip(top, names, strict=True)
            for tensor in op.outputs
            if tensor != ABSENT
        },
    }
    with work_folder("ort") as folder:
        answer, ended = run_worker("opscope.plugins.ort.worker", request, folder, longest_s=_LONGEST_S)
        return _measurement(checked_answer(answer, ended, runtime="ONNX Runtime", model=model))


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

    work: Stretches  # command: position among the executed nodes
    phases: Stretches  # the inferences as a whole
    kernels: KernelTimes  # by executed node


def read_times(found: Measurement, *, warmup: int) -> Times:
    """Times of nodes on the top level; what ran inside of another node is part of its time."""
    imported, count = found.imported, len(found.executed)
    spans = imported.trace.spans
    command_of = np.array(_executed(imported, found.executed) or [NONE], np.int64)
    command = np.where(spans["op"] != NONE, command_of[spans["op"]], NONE)
    counts = spans["inference"] >= warmup
    worked = counts & (spans["kind"] == SpanKind.OP) & (command != NONE)
    runs = np.array([name == RUN for name in imported.trace.names], np.bool_)
    whole = counts & (spans["kind"] == SpanKind.PHASE) & runs[spans["name"]]
    work, phases = (
        Stretches(
            command[rows],
            spans["inference"][rows].astype(np.int64) - warmup,
            spans["start_ns"][rows],
            spans["end_ns"][rows],
        )
        for rows in (worked, whole)
    )
    table = np.zeros((count, len(phases.command)), np.int64)
    np.add.at(table, (work.command, work.inference), work.end_ns - work.start_ns)
    called = np.bincount(work.command, minlength=count) > 0
    return Times(work, phases, KernelTimes(found.labels, table, phases.end_ns - phases.start_ns, called))


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
