"""Architecture, DecoderStep, Machine → StepCost: what one run of a decoder takes on the simulated device.

Layers that are alike take alike: the device runs the ends of the network and two layers of each kind, the second of
them between its neighbours; as many of that one as the model has are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..core.meaning import Does
from ..estimate.price import Machine
from ..graph.graph import Graph
from ..graph.kinds import KINDS, Touches
from ..options import CompileOptions
from ..program.program import NO_OP
from ..simulation import simulate
from ..workflows.model_compiler import ModelCompiler
from .architecture import Architecture
from .decoder import DecoderStep
from .decoder_graph import Storage, decoder_graph
from .estimated_step import StepCost
from .point import Spread


def simulated_step(
    model: Architecture, step: DecoderStep, storage: Storage, machine: Machine, known: StepCost
) -> StepCost:
    """The cost of one step on devices that share every product.

    One network is simulated, with each of the different layers once and, where there are more of them, once more
    behind it. From the end of the one to the end of the other is what every further layer takes.

    Args:
        known: its estimate, which tells what binds, the bytes, and how far ranges of figures move the time.
    """
    if known.seconds is None:
        return known
    kinds = [(layer, min(count, 2)) for layer, count in model.repeats.items()]
    network = replace(model, layers=tuple(layer for layer, times in kinds for _ in range(times)))
    whole, layers = _seconds(decoder_graph(network, step, storage), machine)
    blocks, place = dict(whole), 0
    for (_, times), count in zip(kinds, model.repeats.values(), strict=True):
        place += times
        for block, seconds in layers[place - 1].items() if count > times else ():
            blocks[block] = blocks.get(block, 0.0) + (count - times) * seconds
    seconds = sum(blocks.values())
    least, most = known.seconds.low / known.seconds.value, known.seconds.high / known.seconds.value
    return replace(known, seconds=Spread(seconds, seconds * least, seconds * most), blocks=blocks)


_Blocks = dict[str, float]


def _seconds(graph: Graph, machine: Machine) -> tuple[_Blocks, Sequence[_Blocks]]:
    """Seconds of a network by block, and of each of its layers, from the end of what is before it to its own.

    Blocks have their shares of what all engines did: in the network, and in the layer.
    """
    options = CompileOptions(cores=machine.cores, devices=machine.devices, parallel="tensor", stats_level=0)
    program, plan = ModelCompiler(in_place(graph)).compile(machine.target, options)
    timeline = simulate(program)
    op, busy = program.commands["op"], timeline.done - timeline.start
    mine = op != NO_OP
    by_op = np.bincount(op[mine], weights=busy[mine], minlength=len(plan.graph.ops)).astype(np.float64)
    computes = mine & (program.commands["does"] != Does.MOVE)  # what is kept for later may be written away much later
    ends = np.zeros(len(plan.graph.ops))
    np.maximum.at(ends, op[computes], timeline.done[computes])
    layers: list[_Blocks] = []
    before = 0.0
    for ops in _layers(plan.graph):
        end = next(float(ends[position]) for position in reversed(ops) if ends[position])  # of what it hands on
        layers.append(_shared(plan.graph, ops, by_op, (end - before) / program.clock_hz))
        before = end
    whole = _shared(plan.graph, range(len(by_op)), by_op, timeline.total_cycles / program.clock_hz)
    return whole, layers


def _layers(graph: Graph) -> list[list[int]]:
    """Positions of the ops of each layer, in order."""
    found: dict[int, list[int]] = {}
    for position, op in enumerate(graph.ops):
        number = op.attributes.get("layer")
        if isinstance(number, int):
            found.setdefault(number, []).append(position)
    return [found[number] for number in sorted(found)]


def _shared(graph: Graph, ops: Sequence[int], busy: npt.NDArray[np.float64], seconds: float) -> _Blocks:
    """Seconds of some ops by block, as engines were busy with them."""
    blocks: _Blocks = {}
    for position in ops:
        block = str(graph.ops[position].attributes.get("block", "other"))
        blocks[block] = blocks.get(block, 0.0) + float(busy[position])
    whole = sum(blocks.values())
    return {block: seconds * spent / whole for block, spent in blocks.items() if spent}


def in_place(graph: Graph) -> Graph:
    """The graph with caches read where they are: what is new is given out, and the rest is not moved."""
    past: dict[int, int] = {}
    outputs = list(graph.outputs)
    ops = []
    for op in graph.ops:
        if KINDS[op.kind].touches is Touches.UPDATE and op.inputs[0] in graph.inputs:
            past[op.outputs[0]] = op.inputs[0]
            outputs = [op.inputs[1] if t == op.outputs[0] else t for t in outputs]
            continue
        ops.append(replace(op, inputs=tuple(past.get(t, t) for t in op.inputs)))
    return replace(graph, ops=tuple(ops), outputs=tuple(outputs))
