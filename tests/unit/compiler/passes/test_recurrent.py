"""Recurrent ops on several cores: by batch, or by hidden units with the state handed on in every step."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from opscope.compiler.passes.axes import WHOLE, input_axes
from opscope.compiler.passes.batch import batch_axes, with_images
from opscope.compiler.passes.recurrent_states import align_states
from opscope.core.meaning import Carries
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.estimate.work import work_of
from opscope.graph.batch import batch_size
from opscope.graph.graph import DType, Graph, Op
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import KB, Built, Choice, build, by_axis, small_target, whole_batch
from support.compiler.laws import all_laws

STEPS, BATCH, SIZE, HIDDEN = 16, 8, 64, 128
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def recurrent(kind: str = "lstm", *, batch: int = BATCH, hidden: int = HIDDEN, reads: tuple[int, ...] = (0,)) -> Graph:
    """One op with a result and a last state, of which some are read."""
    draw, gates = Sketch(dtype=DType.F16), GATES[kind]
    data = draw.input(STEPS, batch, SIZE)
    weights = draw.constant(1, gates * hidden, SIZE), draw.constant(1, gates * hidden, hidden)
    outputs = draw.tensor((STEPS, 1, batch, hidden)), draw.tensor((1, batch, hidden))
    extents = {"steps": STEPS, "batch": batch, "input_size": SIZE, "hidden_size": hidden, "directions": 1}
    draw.ops.append(Op(kind, kind.upper(), kind, (data, *weights), outputs, extents))
    return draw.graph(*(outputs[position] for position in reads))


def lawful(graph: Graph, cores: int, splits: Choice | None = None, *, local_bytes: int = 1024 * KB) -> Built:
    target = small_target(local_bytes=local_bytes)
    built = build(graph, target, cores=cores, parts=whole_batch, splits=splits)
    all_laws(built, simulate(built.program))
    return built


def cycles(built: Built) -> float:
    return simulate(built.program).total_cycles


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("axis", [2, 3])  # batch, hidden units
@pytest.mark.parametrize("reads", [(0,), (1,), (0, 1)])
def test_batch_and_hidden_units_are_cut(kind: str, axis: int, reads: tuple[int, ...]) -> None:
    graph = recurrent(kind, reads=reads)
    own = axis if 0 in reads else axis - 1
    built = lawful(graph, 4, by_axis(own))
    found = built.schedule.splits[0].sharding.cut_on(own)
    assert found is not None
    assert found.parts == 4
    assert int(built.program.commands["macs"].sum()) == pytest.approx(work_of(graph.ops[0], graph).macs, rel=1e-3)


def test_hidden_units_on_several_cores_hand_on_the_state_in_every_step() -> None:
    built = lawful(recurrent(), 4, by_axis(3))
    program = built.program
    bus = [number for number, route in enumerate(program.routes) if route.carries is Carries.MULTICAST]
    handed = program.commands[(program.commands["route"] == bus[0]) & (program.commands["op"] == 0)]
    state = BATCH * HIDDEN * 2
    assert int(handed["moved_bytes"].sum()) >= STEPS * state
    assert cycles(built) > STEPS * 2 * 1523  # two barriers a step


def test_weights_that_meet_the_state_enter_the_engine_in_every_step() -> None:
    again = GATES["lstm"] * HIDDEN * HIDDEN * 2
    assert cycles(lawful(recurrent(), 1)) > STEPS * again / 40


@pytest.mark.parametrize(("batch", "hidden"), [(1, 128), (1, 1024), (8, 512), (32, 64)])
def test_more_cores_are_not_slower_and_the_estimate_agrees(batch: int, hidden: int) -> None:
    graph, times = recurrent(batch=batch, hidden=hidden), []
    for cores in (1, 4, 14):
        machine = use_machine("aic100-std", cores=cores)
        built = build(graph, machine.target, cores=cores)
        times.append(cycles(built) / built.program.clock_hz)
        latency = estimate(graph, machine).totals.latency_s
        assert latency is not None
        assert 1 / 1.5 < times[-1] / latency.value < 1.5
    assert all(later <= 1.05 * earlier for earlier, later in pairwise(times))


def test_a_large_state_is_shared_between_cores() -> None:
    graph = recurrent(batch=1, hidden=1024)
    one, many = (cycles(build(graph, use_machine("aic100-std").target, cores=cores)) for cores in (1, 14))
    assert many < one / 5


def test_a_state_that_nobody_reads_is_left_out_and_the_others_have_a_step() -> None:
    alone = align_states(recurrent(reads=(1,)))
    assert [len(op.outputs) for op in alone.ops] == [1]
    both = align_states(recurrent(reads=(0, 1)))
    assert [op.kind for op in both.ops] == ["lstm", "reshape"]
    assert [both.tensors[t].shape for t in both.ops[0].outputs] == [(STEPS, 1, BATCH, HIDDEN), (1, 1, BATCH, HIDDEN)]


def test_steps_are_not_cut_and_a_projection_keeps_its_units_together() -> None:
    graph = recurrent()
    op = graph.ops[0]
    assert input_axes(op, graph, 0) is None
    assert input_axes(op, graph, 2) == (1, WHOLE, WHOLE)
    projected = replace(op, attributes={**op.attributes, "projection_size": 32})
    assert input_axes(projected, graph, 3) is None


# ---- the batch ------------------------------------------------------------------------------------------------------


def transposed(batch: int) -> Graph:
    """Sequences come first, as PyTorch's `batch_first` writes them: a transposition puts steps first."""
    draw = Sketch(dtype=DType.F16)
    data = draw.op("transpose", (draw.input(batch, STEPS, SIZE),), (STEPS, batch, SIZE), permutation=(1, 0, 2))
    weights = draw.constant(1, 4 * HIDDEN, SIZE), draw.constant(1, 4 * HIDDEN, HIDDEN)
    extents = {"steps": STEPS, "batch": batch, "input_size": SIZE, "hidden_size": HIDDEN, "directions": 1}
    return draw.graph(draw.op("lstm", (data, *weights), (STEPS, 1, batch, HIDDEN), **extents))


@pytest.mark.parametrize("batch", [1, BATCH, STEPS])
def test_steps_are_no_batch(batch: int) -> None:
    assert batch_size(recurrent(batch=batch)) == batch
    assert batch_size(recurrent(batch=batch, reads=(1,))) == batch
    assert batch_size(transposed(batch)) == batch


def test_steps_are_no_batch_of_what_stands_before_a_recurrent_op_either() -> None:
    draw = Sketch(dtype=DType.F16)
    data = draw.same("relu", draw.input(STEPS, BATCH, SIZE))
    weights = draw.constant(1, 4 * HIDDEN, SIZE), draw.constant(1, 4 * HIDDEN, HIDDEN)
    extents = {"steps": STEPS, "batch": BATCH, "input_size": SIZE, "hidden_size": HIDDEN, "directions": 1}
    assert batch_size(draw.graph(draw.op("lstm", (data, *weights), (STEPS, 1, BATCH, HIDDEN), **extents))) == BATCH


def test_images_are_cut_where_they_come_first_and_steps_never_are() -> None:
    graph = transposed(BATCH)
    axes = batch_axes(graph)
    assert axes == {graph.inputs[0]: 0, graph.ops[0].outputs[0]: 1, graph.outputs[0]: 2}
    assert batch_size(with_images(graph, axes, 2)) == 2
    for batch in (BATCH, STEPS):
        assert batch_axes(recurrent(batch=batch)) == {}
