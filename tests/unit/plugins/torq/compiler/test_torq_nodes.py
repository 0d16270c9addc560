from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.graph.graph import Graph
from opscope.plugins.torq.annotate.annotated import Action, Dispatch, Listing
from opscope.plugins.torq.compiler.nodes import fused_names, host_programs, leads_of, ops_of
from opscope.plugins.torq.compiler.schedule import Schedule, join
from opscope.plugins.torq.importers.compile_csv import CompileRows
from opscope.recording.recording import Placed
from opscope.recording.trace import NONE
from support.build import Sketch


def chain() -> Graph:
    """Three ops in a row, whose outputs are called a, b and c."""
    draw = Sketch()
    data = draw.input(1, 8)
    for name in "abc":
        data = draw.same("relu", data, name=name)
        draw.tensors[data] = replace(draw.tensors[data], name=name)
    return draw.graph(data)


def slices(*names: str) -> CompileRows:
    """A slice row of ten cycles for each of these locations."""
    start = np.arange(len(names)) * 10
    none, zero = np.full(len(names), NONE), np.zeros(len(names), np.int64)
    places = tuple(f'callsite("{name}"("m":0:0) at "main"("m":0:0))' for name in names)
    own = np.arange(len(names))
    return CompileRows(zero, ("Slice 0",), start, start + 10, own, places, zero, ("Slice 0",), none, own, ())


def joined(graph: Graph, rows: CompileRows, *programs: tuple[str, str]) -> Schedule:
    """With programs of the part's own processor, each with its location."""
    actions = tuple(Action(n, "start", location=f'"{at}"', host_program=name) for n, (name, at) in enumerate(programs))
    return join(rows, Listing("m", (Dispatch("main", (), actions),)), leads_of(graph))


@pytest.mark.parametrize(
    ("present", "into"),
    [
        ("c", {"a": "c", "b": "c"}),  # the location is that of the last
        ("bc", {"a": "b"}),
        ("a", {"b": "a", "c": "a"}),  # nothing behind: the one before, which is the first of the graph
    ],
)
def test_ops_without_rows_are_fused_into_the_next_that_has_some(present: str, into: dict[str, str]) -> None:
    graph = chain()
    found = ops_of(graph, joined(graph, slices(*present)), None).records
    assert {op.name: op.reason.removeprefix("fused into ") for op in found if op.placed is Placed.FUSED} == into
    covers = {op.name: op.covers for op in found if op.covers}
    assert covers == {other: tuple(name for name in into if into[name] == other) for other in into.values()}
    assert [note.split(maxsplit=1)[0] for note in fused_names(found)] == [str(len(into))]


def test_the_first_op_of_a_file_takes_in_others_too() -> None:
    graph = chain()
    graph = replace(graph, ops=graph.ops[::-1])  # a file need not have its ops in the order of the data
    found = ops_of(graph, joined(graph, slices("c")), None).records
    assert [(op.name, op.placed) for op in found] == [
        ("c", Placed.ACCELERATOR),
        ("b", Placed.FUSED),
        ("a", Placed.FUSED),
    ]


def test_all_programs_of_the_parts_own_processor_are_named() -> None:
    graph = chain()
    schedule = joined(graph, slices("c"), ("first", "a"), ("second", "a"), ("other", "elsewhere"))
    op = ops_of(graph, schedule, None).records[0]
    assert (op.placed, op.engines) == (Placed.CPU, ("host",))
    assert "(first, second)" in op.unknown
    (note,) = host_programs(schedule.host)
    assert note.startswith("3 programs run on the part's own processor (first, second, other)")
