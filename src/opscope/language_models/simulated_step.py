"""Architecture, Step, Machine → StepCost: what one run of a decoder takes on the simulated device.

Layers that are alike take alike: with one of each kind, and with one more, the device runs the ends of the network and
a layer between its neighbours; as many of those as the model has are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..device import simulate
from ..estimate.price import Machine
from ..graph.graph import Graph
from ..graph.kinds import KINDS, Touches
from ..options import CompileOptions
from ..program.program import NO_OP
from ..workflows.model_compiler import ModelCompiler
from .architecture import Architecture, Layer
from .decoder import Step
from .decoder_graph import Storage, decoder_graph
from .estimated_step import StepCost
from .point import Spread


def simulated_step(model: Architecture, step: Step, storage: Storage, machine: Machine, known: StepCost) -> StepCost:
    """The cost of one step on devices that share every product.

    Args:
        known: its estimate, which tells what binds, the bytes, and how far ranges of figures move the time.
    """
    if known.seconds is None:
        return known
    kinds = list(model.repeats)
    whole = _seconds(model, kinds, step, storage, machine)
    blocks = dict(whole)
    for place, (layer, count) in enumerate(model.repeats.items()):
        if count > 1:
            more = _seconds(model, [*kinds[:place], layer, *kinds[place:]], step, storage, machine)
            for block in more:
                blocks[block] = blocks.get(block, 0.0) + (count - 1) * (more[block] - whole.get(block, 0.0))
    seconds = sum(blocks.values())
    least, most = known.seconds.low / known.seconds.value, known.seconds.high / known.seconds.value
    return replace(known, seconds=Spread(seconds, seconds * least, seconds * most), blocks=blocks)


def _seconds(
    model: Architecture, layers: Sequence[Layer], step: Step, storage: Storage, machine: Machine
) -> dict[str, float]:
    """Seconds of a network of some layers, by block: each has its share of what all engines did."""
    graph = in_place(decoder_graph(replace(model, layers=tuple(layers)), step, storage))
    options = CompileOptions(cores=machine.cores, devices=machine.devices, parallel="tensor", stats_level=0)
    program, plan = ModelCompiler(graph).compile(machine.target, options)
    timeline = simulate(program)
    seconds = timeline.total_cycles / program.clock_hz
    op = program.commands["op"]
    busy = timeline.done - timeline.start
    mine = op != NO_OP
    by_op = np.bincount(op[mine], weights=busy[mine], minlength=len(plan.graph.ops))
    blocks: dict[str, float] = {}
    for position, spent in enumerate(by_op):
        block = str(plan.graph.ops[position].attributes.get("block", "other"))
        blocks[block] = blocks.get(block, 0.0) + float(spent)
    return {block: seconds * spent / by_op.sum() for block, spent in blocks.items() if spent}


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
