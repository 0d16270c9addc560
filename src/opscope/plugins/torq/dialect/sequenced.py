"""Programs for targets with a sequencer: compile with a timeline of starts and waits, and run job by job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....core.errors import ProfilerError, UsageError, printable
from ....core.files import write_bytes
from ....estimate.precision import with_precision
from ....estimate.price import Machine
from ....graph.graph import ABSENT, Graph, Op
from ....machine.target import Target
from ....program.program import OpInfo, Program
from ....program.program_file import encode_program
from ....program.sequence import StartSequence, sequence_of
from ....readers import read_model
from ....recording.unknown import UnknownOp, unknown_of

if TYPE_CHECKING:
    from ....compiler.plan import Plan
    from ....device.host.inputs import Array
    from ....simulation import Timeline
    from ....workflows.execution import Loaded


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A program with its jobs and the times that its commands should take."""

    program: Program
    sequence: StartSequence
    timeline: Timeline
    notes: tuple[str, ...]
    operand_bytes: Sequence[tuple[int, ...]] = ()  # of every op: inputs, constants, outputs; empty: not known

    @property
    def uncosted(self) -> tuple[UnknownOp, ...]:
        """Ops whose cost is not known: times are of the others."""
        return unknown_of(self.program.ops)


@dataclass(frozen=True, slots=True)
class Ran:
    """One simulated inference: when each job began and ended, in core cycles, and what the model computes."""

    program: Program
    sequence: StartSequence
    bounds: list[tuple[float, float]]
    outputs: tuple[Array, ...] | None  # None: not computed, for the reason given
    reason: str = ""

    @property
    def uncosted(self) -> tuple[UnknownOp, ...]:
        """Ops whose cost is not known: times are of the others."""
        return unknown_of(self.program.ops)


def schedule_model(
    model: str | Path, target: Target, *, precision: str | None = None, phases: Path | None = None
) -> Scheduled:
    """Compile a model for a target with a sequencer.

    Args:
        model: path of an MLIR, ONNX or TensorFlow Lite file.
        target: what to compile for.
        precision: data type that float tensors run as; None: as the target says.
        phases: folder that gets one readable file per pass, named after the model.
    """
    from ....compiler import compile_graph
    from ....compiler.phases import phase_text
    from ....options import CompileOptions
    from ....simulation import simulate

    if target.sequencer is None:
        raise UsageError(f"{target.name}: has no sequencer; expected a target whose file has [sequencer]")
    target = with_precision(target, precision)
    graph = read_model(Path(model))
    plans: list[Plan] = []

    def after_pass(name: str, plan: Plan) -> None:
        plans.append(plan)
        if phases is not None:
            path = phases / f"{Path(model).stem}.{len(plans)}.{name}.txt"
            write_bytes(path, phase_text(name, plan).encode())

    options = CompileOptions(network=graph.details.get("function"), stats_batchsize=1, precision=precision)
    program = compile_graph(graph, Machine(target), options, after_pass=after_pass)
    program = replace(program, ops=_located(program, graph, plans[-1]))
    notes = tuple(note.text for note in graph.notes)
    return Scheduled(
        program,
        sequence_of(program),
        simulate(program),
        notes,
        [_operand_bytes(plans[-1], placed.op) for placed in plans[-1].placed],
    )


def _operand_bytes(plan: Plan, op: Op) -> tuple[int, ...]:
    sizes = [plan.graph.tensors[tensor].bytes for tensor in (*op.inputs, *op.outputs) if tensor != ABSENT]
    return tuple(int(size) for size in sizes if size is not None) if None not in sizes else ()


def save_program(program: Program, path: Path, model: Path) -> None:
    """Write a program under a name of the user's; it remembers where its model is, for outputs."""
    located = replace(program, model=os.path.relpath(model.resolve(), path.resolve().parent))
    write_bytes(path, encode_program(located))


def run_program(
    program_file: str | Path,
    inputs: Sequence[Array] | None = None,
    *,
    function: str | None = None,
    seed: int = 0,
    compute: bool = True,
) -> Ran:
    """Run one inference on the simulated device.

    Args:
        program_file: what `save_program` wrote.
        inputs: one array per input of the model, in order; None: zeros.
        function: name of the function to run; a program has one.
        seed: chooses everything that varies.
        compute: also compute the outputs, with the model's reference runtime.
    """
    from ....simulation import simulate
    from ....workflows.execution import load_program

    path = Path(program_file)
    if not path.exists():
        raise UsageError(f"{path}: there is no such file; expected a compiled program, such as model.vmfb")
    loaded = load_program(path)
    if function is not None and function.lstrip("@") != loaded.program.name:
        name = printable(loaded.program.name)
        raise UsageError(f"--function={printable(function)}: the program has none of that name; expected {name}")
    given = _named(loaded.program, inputs)
    timeline = simulate(loaded.program, seed=seed)  # which also checks the program
    sequence = sequence_of(loaded.program)
    bounds = sequence.bounds(timeline.lane_ready, timeline.start, timeline.issue_end, timeline.done)
    if not compute:
        return Ran(loaded.program, sequence, bounds, None, "they were not asked for")
    try:
        outputs = _outputs(loaded, given)
    except ProfilerError as error:
        return Ran(loaded.program, sequence, bounds, None, str(error))
    return Ran(loaded.program, sequence, bounds, outputs)


def _named(program: Program, inputs: Sequence[Array] | None) -> dict[str, Array]:
    from ....device.host.inputs import check_inputs, zero_inputs

    if inputs is None:
        return zero_inputs(program)
    if len(inputs) != len(program.inputs):
        raise UsageError(f"{len(inputs)} inputs; expected {len(program.inputs)}, one for each of the function's")
    return check_inputs(program, {port[0]: value for port, value in zip(program.inputs, inputs, strict=True)})


def _outputs(loaded: Loaded, inputs: dict[str, Array]) -> tuple[Array, ...]:
    from ....workflows.execution import reference_of

    found = reference_of(loaded).run(inputs)
    for name, value in found.items():
        if not isinstance(value, np.ndarray):
            raise UsageError(f"output {printable(name)}: no tensor, and this program returns tensors; expected those")
    return tuple(value for value in found.values() if isinstance(value, np.ndarray))


def load_buffers(texts: Sequence[str]) -> list[Array] | None:
    """Inputs as `iree-run-module` takes them; None where there are none."""
    from .buffer_text import read_buffer

    return [read_buffer(text) for text in texts] or None


def printed_outputs(ran: Ran) -> list[str]:
    """Outputs as `iree-run-module` prints them."""
    from .buffer_text import buffer_text

    lines = []
    for number, array in enumerate(ran.outputs or ()):
        lines += [f"result[{number}]: hal.buffer_view", buffer_text(array)]
    return lines


def save_outputs(ran: Ran, places: Sequence[str]) -> list[Path]:
    """Write outputs to `@FILE.npy`, or their bytes alone to `@FILE` of another suffix, in order.

    `-` and what is not computed are left out.
    """
    from ....core.files import write_whole

    written = []
    for place, array in zip(places, ran.outputs or (), strict=False):
        if place.startswith("@"):
            path = Path(place[1:])
            if path.suffix == ".npy":
                write_whole(path, lambda out, values=array: np.save(out, values, allow_pickle=False))  # type: ignore[misc]
            else:
                write_bytes(path, array.tobytes())
            written.append(path)
    return written


# -- locations


def _located(program: Program, graph: Graph, plan: Plan) -> tuple[OpInfo, ...]:
    """Ops with locations as MLIR writes them: of a fused op, those of all that went into it."""
    own = {op.name: _location(op.location, op.name) for op in graph.ops}
    found = []
    for info, placed in zip(program.ops, plan.placed, strict=True):
        parts = [own.get(name, _location("", name)) for name in placed.op.sources or (placed.op.name,)]
        found.append(replace(info, location=fused_location(parts)))
    return tuple(found)


def _location(location: str, name: str) -> str:
    if location.startswith("loc("):
        return location
    text = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'loc("{"".join(c if c.isprintable() else "?" for c in text)}")'


def fused_location(parts: Sequence[str]) -> str:
    """One location for several: `loc(fused["a.mlir":1:2, "a.mlir":3:4])`."""
    distinct = list(dict.fromkeys(parts))
    if not distinct:
        return "loc(unknown)"
    return distinct[0] if len(distinct) == 1 else f"loc(fused[{', '.join(part[4:-1] for part in distinct)}])"
