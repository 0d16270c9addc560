"""Graph, Target → Compatibility: what of a model a target cannot take, and what to use instead."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.units import format_bytes
from ...estimate.interpreters import Examined, examine
from ...estimate.price import Machine
from ...estimate.traffic.stores import parameter_bytes
from ...graph.graph import ABSENT, Graph
from ...graph.kinds import Family
from ...machine.target import Holds, Target
from .flat import flat_report

REPLACEMENTS = {  # kind → what usually does the same job with operators that small targets have
    "gelu": "TANH",
    "elu": "RELU",
    "leaky_relu": "RELU",
    "prelu": "RELU",
    "silu": "HARD_SWISH",
    "softplus": "RELU",
    "erf": "TANH",
    "matmul": "FULLY_CONNECTED",
    "attention": "FULLY_CONNECTED with SOFTMAX",
    "lstm": "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "gru": "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "conv_transpose": "RESIZE_NEAREST_NEIGHBOR with CONV_2D",
    "layer_norm": "folded batch normalisation",
    "pow": "MUL",
}


@dataclass(frozen=True, slots=True)
class OperatorIssue:
    operator: str
    layers: tuple[int, ...]
    alternative: str | None
    severity: str
    reason: str = "not supported"


@dataclass(frozen=True, slots=True)
class MemoryIssue:
    id: str
    text: str
    severity: str


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Everything that stands between a model and a target."""

    operators: tuple[OperatorIssue, ...]
    types: tuple[str, ...]  # data types that the target does not have
    memory: tuple[MemoryIssue, ...]

    @property
    def compatible(self) -> bool:
        return not self.operators and not self.types and not self.memory


def check_compatibility(graph: Graph, machine: Machine) -> Compatibility:
    """Operators, data types and memory of a graph against a target."""
    examined = examine(graph, machine.target.runtime)
    return Compatibility(
        operators=(*_operators(graph, machine.target), *_refused(examined)),
        types=_types(graph, machine.target),
        memory=_memory(graph, machine, examined),
    )


def _operators(graph: Graph, target: Target) -> tuple[OperatorIssue, ...]:
    layers: dict[tuple[str, str], list[int]] = {}
    for index, op in enumerate(graph.ops):
        if op.family is Family.OPAQUE or not target.supports(op):
            layers.setdefault((op.type, op.kind), []).append(index)
    return tuple(
        OperatorIssue(operator, tuple(where), REPLACEMENTS.get(kind), "critical")
        for (operator, kind), where in layers.items()
    )


def _refused(examined: Examined | None) -> tuple[OperatorIssue, ...]:
    """Operators of the file that the interpreter on the target does not run, with its reasons."""
    layers: dict[tuple[str, str, str], list[int]] = {}
    for found in () if examined is None else examined.refusals:
        layers.setdefault((found.operator, found.reason, found.instead), []).append(found.number)
    return tuple(
        OperatorIssue(operator, tuple(where), instead, "critical", reason)
        for (operator, reason, instead), where in layers.items()
    )


def _types(graph: Graph, target: Target) -> tuple[str, ...]:
    known = target.support.dtypes
    if not known:
        return ()
    used = {graph.tensors[t].dtype.label for op in graph.ops for t in (*op.inputs, *op.outputs) if t != ABSENT}
    return tuple(sorted(used - set(known)))


def _memory(graph: Graph, machine: Machine, examined: Examined | None) -> tuple[MemoryIssue, ...]:
    """Weights are stored in flash or, where it is too small, in RAM beside the activations.

    Where an interpreter is known, the whole file is, and RAM is what it takes: arena and tail. Else as flat counting
    has both.
    """
    target = machine.target
    ram = target.home(Holds.ACTIVATIONS).bytes.value
    store = target.home(Holds.CONSTANTS)
    flash = 0.0 if Holds.ACTIVATIONS in store.holds else store.bytes.value
    if examined is None:
        weights, what = parameter_bytes(graph), "weights take"
        peak, working = int(flat_report(graph, machine, sha256=None).memory.peak_bytes), "activations take"
    else:
        weights, what = examined.file_bytes, "the file takes"
        peak, working = examined.ram_bytes, f"{examined.title} takes"
    shown = f"{what} {format_bytes(weights)}"
    checks = (
        (
            "model_storage_memory_overflow",
            "critical",
            weights > flash + ram,
            f"{shown}; flash and RAM together have {format_bytes(flash + ram)}",
        ),
        ("model_storage_flash_overflow", "warning", weights > flash > 0, f"{shown}; flash has {format_bytes(flash)}"),
        ("model_storage_ram_overflow", "warning", weights > ram, f"{shown}; RAM has {format_bytes(ram)}"),
        (
            "ram_memory_overflow",
            "warning",
            peak > ram,
            f"{working} {format_bytes(peak)} at the peak; RAM has {format_bytes(ram)}",
        ),
    )
    return tuple(MemoryIssue(name, text, severity) for name, severity, broken, text in checks if broken)
