"""Ops of the phases of a point, as a timeline draws them: those of equal layers are one op that runs several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.meaning import Does
from ..estimate.estimator import Estimate, estimate
from ..estimate.recorded import limits_of
from ..estimate.recorded_resources import resource_cycles
from ..graph.kinds import what_kind_does
from ..machine.target import Holds
from ..recording.recording import Placed, ResourceCycles
from .decoder import DecoderStep, decode
from .decoder_graph import repeated_graph
from .estimated_step import LINK
from .point import Phase, Point
from .points import Estimator

PREFILL, DECODE = "prefill", "decode"
_LEAST_SHARE = 1e-9


@dataclass(frozen=True, slots=True)
class StepOp:
    """One op of a phase; figures are of all its runs together."""

    phase: str
    name: str
    type: str
    kind: str
    block: str
    engine: str
    placed: Placed
    seconds: float
    macs: int | None
    moved_bytes: int | None  # through the memory that holds weights and cache
    layer: int | None  # which of the different layers it belongs to; None: it is before or behind all layers
    does: Does
    spent: Mapping[Does, float]  # its time by what it is spent on, in order; its work is the last
    cycles: tuple[ResourceCycles, ...] = ()  # of one run

    @property
    def full_name(self) -> str:
        return f"{self.phase}/{self.name.lstrip('/')}"


@dataclass(frozen=True, slots=True)
class StepOps:
    """Both phases of a point, and the peaks of what they run on."""

    ops: tuple[StepOp, ...]
    limits: dict[str, float]


def ops_of(steps: Estimator, point: Point) -> StepOps:
    """Ops with times that add up to those of the phases.

    The time of a block is that of the point, which may hold several chunks of a prompt, or stages of a pipeline; within
    a block it is shared out as one step does, for chunks the one in the middle of the prompt.
    """
    chunks = steps.chunks(point.batch, point.prompt, point.context)
    first, last = chunks[len(chunks) // 2][0], decode(point.batch, point.context)
    times = round(sum(count for _, count in chunks))
    found: list[StepOp] = []
    limits: dict[str, float] = {}
    for name, phase, step, count in ((PREFILL, point.prefill, first, times), (DECODE, point.decode, last, 1)):
        if phase.time_ms is None:
            continue
        priced = _estimate(steps, step)
        machine = priced.machine
        limits |= limits_of(machine.target, machine.devices * machine.cores, machine.devices, priced.layers)
        found += _phase(name, phase, priced, count)
    return StepOps(tuple(found), limits)


def _estimate(steps: Estimator, step: DecoderStep) -> Estimate:
    return estimate(repeated_graph(steps.model, step, steps.storage), steps.shared_machine(steps.machine.devices))


def _phase(name: str, phase: Phase, priced: Estimate, times: int) -> Iterator[StepOp]:
    memory = priced.machine.target.home(Holds.CONSTANTS).name
    attributes = [priced.graph.ops[layer.index].attributes for layer in priced.layers]
    blocks = [str(words.get("block", "other")) for words in attributes]
    sums: dict[str, float] = {}
    for block, layer in zip(blocks, priced.layers, strict=True):
        sums[block] = sums.get(block, 0.0) + (layer.latency_s or 0.0)
    whole = phase.time_ms.value / 1e3 if phase.time_ms else 0.0
    for block, layer, words in zip(blocks, priced.layers, attributes, strict=True):
        number, does = words.get("layer"), what_kind_does(layer.kind)
        yield StepOp(
            phase=name,
            name=layer.name,
            type=layer.operator,
            kind=layer.kind,
            block=block,
            engine=layer.engine or "",
            placed=Placed.ACCELERATOR if layer.accelerated else Placed.CPU,
            seconds=whole * phase.shares.get(block, 0.0) * (layer.latency_s or 0.0) / sums[block]
            if sums[block]
            else 0.0,
            macs=layer.macs * times,
            moved_bytes=layer.traffic.get(memory, 0) * times,
            layer=number if isinstance(number, int) else None,
            does=does,
            spent={does: 1.0} if layer.cost is None else layer.cost.spent(does),
            cycles=resource_cycles(layer, priced.machine.target),
        )
    for block, share in phase.shares.items():
        if block not in sums and share > _LEAST_SHARE:  # between devices, or around all ops
            does = Does.MOVE if block == LINK else Does.LAUNCH
            yield StepOp(
                name, block, block, "", block, "", Placed.UNKNOWN, whole * share, None, None, None, does, {does: 1.0}
            )


def in_order(ops: Sequence[StepOp], layers: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Position and seconds of every run of every op, in the order in which a step runs them.

    Args:
        ops: of one phase.
        layers: of each layer of the model, which of the different ones it is.
    """
    inner = [number for number, op in enumerate(ops) if op.layer is not None]
    before = [number for number, op in enumerate(ops) if op.layer is None and (not inner or number < inner[0])]
    for number in before:
        yield number, ops[number].seconds
    for layer in layers:
        for number in inner:
            if ops[number].layer == layer:
                yield number, ops[number].seconds / layers.count(layer)
    for number in range(len(ops)):
        if number not in before and ops[number].layer is None:
            yield number, ops[number].seconds
