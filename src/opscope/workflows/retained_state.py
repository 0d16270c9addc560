"""State that stays on the device between inferences: inputs and outputs that do not cross the host link."""

from __future__ import annotations

from dataclasses import replace

from ..core.units import format_bytes
from ..estimate.block_formats import cached_tensors
from ..graph.graph import Graph, Tensor, bytes_of
from ..options import CompileOptions
from ..program.program import Program

SUFFIX = "_RetainedState"  # of an output that gives an input back, in the words of exporters


def with_state(graph: Graph, program: Program, options: CompileOptions) -> Program:
    """The program with its state marked, where it is to stay on the device, and a note on what that saves, or would.

    A state is a cache of keys and values, found by what is done with it, or an input that an output gives back by name.
    """
    inputs, outputs = state_of(graph)
    read, written = _size(inputs, program), _size(outputs, program)
    if not options.retained_state:
        crossing = f"{len(outputs)} outputs ({written}) come back as inputs ({read})"
        note = f"{crossing} over the host link; --retained-state keeps them on the device"
        is_told = bool(inputs and outputs and program.host_microseconds)
        return replace(program, notes=(*program.notes, note)) if is_told else program
    if not outputs:
        note = f"retained state: no input comes back as an output; expected a cache, or an output NAME{SUFFIX}"
        return replace(program, notes=(*program.notes, note))
    note = (
        f"retained state: {len(inputs)} inputs ({read}) and {len(outputs)} outputs ({written}) stay on the "
        "device and do not cross the host link"
    )
    names = tuple(tensor.name for tensor in (*inputs, *outputs))
    return replace(program, retained=names, notes=(*program.notes, note))


def state_of(graph: Graph) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs that hold a state, and outputs that hold it afterwards.

    Where every cache that is given out says by name which input it was, no other input is one: keys and values of this
    inference, if they are inputs too, are new in each.
    """
    cached, tensors = cached_tensors(graph), graph.tensors
    by_name = {tensors[t].name: t for t in graph.inputs}
    given = (t for t in graph.outputs if tensors[t].name.endswith(SUFFIX))
    back = {t: by_name[name] for t in given if (name := tensors[t].name.removesuffix(SUFFIX)) in by_name}
    is_named = bool(back) and back.keys() >= cached.intersection(graph.outputs)
    inputs = [t for t in graph.inputs if t in back.values() or (t in cached and not is_named)]
    outputs = [t for t in graph.outputs if t in cached or t in back]
    return [tensors[t] for t in inputs], [tensors[t] for t in outputs]


def _size(tensors: list[Tensor], program: Program) -> str:
    """Of tensors, in the types that the device has them in."""
    ports = program.as_stored(tuple((t.name, t.dtype.label, t.shape or ()) for t in tensors))
    return format_bytes(sum(bytes_of(dtype, shape) for _, dtype, shape in ports))
