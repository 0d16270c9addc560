"""The planner against what no planner may do, and against every placement there is."""

from __future__ import annotations

from itertools import pairwise, permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.core.units import Bytes
from opscope.estimate.memory import Buffer, live_bytes, place, plan_memory
from opscope.graph.graph import DType, Graph
from opscope.machine.target import Runtime
from support.build import Sketch
from support.draws import draws

STEPS = 8
RUNTIMES = st.sampled_from([Runtime(), Runtime(interpreter="tflm")])  # which of equal buffers is first


@st.composite
def buffers(draw: st.DrawFn, *, most: int = 12, largest: int = 50) -> list[Buffer]:
    spans = draw(
        st.lists(
            st.tuples(st.integers(1, largest), st.integers(0, STEPS - 1), st.integers(0, STEPS - 1)), max_size=most
        )
    )
    return [Buffer(Bytes(size), min(ends), max(ends), (number,)) for number, (size, *ends) in enumerate(spans)]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Elementwise ops that read any earlier tensors; some reshape, some tensors are outputs."""
    sketch = Sketch(dtype=DType.I8)
    made = [sketch.input(draw(st.integers(1, 40)))]
    for _ in range(draw(st.integers(1, 10))):
        source = draw(st.sampled_from(made))
        if draw(st.booleans()):
            made.append(sketch.same("reshape", source))
        else:
            other = draw(st.sampled_from(made))
            made.append(sketch.op("binary", (source, other), (draw(st.integers(1, 40)),)))
    extra = draw(st.lists(st.sampled_from(made), max_size=2, unique=True))
    return sketch.graph(*dict.fromkeys([*extra, made[-1]]))


def extent(plan: list[Buffer], offsets: list[int]) -> int:
    return max((offset + buffer.size_bytes for buffer, offset in zip(plan, offsets, strict=True)), default=0)


def overlapping(plan: list[Buffer], offsets: list[int]) -> bool:
    """Whether two buffers hold the same byte at the same step: looked at byte by byte and step by step."""
    taken: set[tuple[int, int]] = set()
    for buffer, offset in zip(plan, offsets, strict=True):
        cells = {
            (step, byte)
            for step in range(buffer.first, buffer.last + 1)
            for byte in range(offset, offset + buffer.size_bytes)
        }
        if taken & cells:
            return True
        taken |= cells
    return False


@given(buffers(), RUNTIMES)
@settings(max_examples=draws(1.5), deadline=None)
def test_no_two_buffers_alive_at_the_same_step_overlap(plan: list[Buffer], runtime: Runtime) -> None:
    offsets = place(plan, runtime)
    assert not overlapping(plan, offsets)
    assert extent(plan, offsets) >= max(live_bytes(plan, STEPS))


def lowest_fit(plan: list[Buffer], order: tuple[int, ...]) -> int:
    """The extent when buffers are put down in that order, each at the lowest byte where it fits."""
    offsets: dict[int, int] = {}
    for number in order:
        buffer = plan[number]
        rivals = [
            (offsets[other], offsets[other] + plan[other].size_bytes)
            for other in offsets
            if plan[other].first <= buffer.last and buffer.first <= plan[other].last
        ]
        offset = 0
        while any(start < offset + buffer.size_bytes and offset < end for start, end in rivals):
            offset += 1
        offsets[number] = offset
    return max((offset + plan[number].size_bytes for number, offset in offsets.items()), default=0)


@given(buffers(most=5, largest=6), RUNTIMES)
@settings(max_examples=60, deadline=None)
def test_the_best_of_all_placements_lies_between_the_bound_and_the_plan(plan: list[Buffer], runtime: Runtime) -> None:
    # Some order of lowest fits is optimal: push every buffer of an optimal placement down, lowest first.
    best = min(lowest_fit(plan, order) for order in permutations(range(len(plan))))
    assert max(live_bytes(plan, STEPS)) <= best <= extent(plan, place(plan, runtime))


@given(graphs())
@settings(max_examples=draws(1.5), deadline=None)
def test_arena_bound_and_live_bytes_are_in_order_for_any_graph(graph: Graph) -> None:
    plan = plan_memory(graph, Runtime())
    assert len(plan.live_bytes) == len(graph.ops)
    assert all(plan.arena_bytes >= plan.bound_bytes >= live for live in plan.live_bytes)
    assert not overlapping(list(plan.buffers), list(plan.offsets))
    assert (
        plan.live_bytes[plan.peak_step] == plan.bound_bytes == sum(b.size_bytes for b in plan.alive_at(plan.peak_step))
    )


@given(graphs())
@settings(max_examples=draws(1.5), deadline=None)
def test_every_tensor_has_its_bytes_while_it_is_needed(graph: Graph) -> None:
    plan = plan_memory(graph, Runtime())
    home = {tensor: buffer for buffer in plan.buffers for tensor in buffer.tensors}
    written = {tensor: step for step, op in enumerate(graph.ops) for tensor in op.outputs}
    for step, op in enumerate(graph.ops):
        for tensor in (*op.inputs, *op.outputs):
            assert home[tensor].first <= step <= home[tensor].last
            assert home[tensor].size_bytes >= (graph.tensors[tensor].bytes or 0)
    for tensor in graph.outputs:
        assert home[tensor].last == len(graph.ops) - 1
    # Bytes may be shared only by a reshape and its source, once nobody reads the source any more.
    for buffer in plan.buffers:
        members = sorted(buffer.tensors, key=lambda tensor: written.get(tensor, -1))
        for earlier, later in pairwise(members):
            assert graph.ops[written[later]].kind == "reshape"
            readers = [step for step, op in enumerate(graph.ops) if earlier in op.inputs]
            assert max(readers) == written[later]


@given(graphs())
@settings(max_examples=draws(1), deadline=None)
def test_sharing_never_needs_more_than_not_sharing(graph: Graph) -> None:
    assert plan_memory(graph, Runtime()).bound_bytes <= plan_memory(graph, Runtime(in_place=())).bound_bytes
