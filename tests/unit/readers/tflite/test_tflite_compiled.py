"""Files that a vendor's compiler has been through: their scratch and their arena, in the form Vela writes."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from opscope.estimate.memory import plan_memory
from opscope.graph.graph import Graph, Role
from opscope.machine.target import Runtime
from support.models.tflite_build import ModelBuilder, Operator, Type

SCRATCH_BYTES, INPUT_BYTES, OUTPUT_BYTES = 74_464, 9_216, 2


def compiled(*offsets: int, fast: int = 0) -> ModelBuilder:
    """One ethos-u operator: command stream, weights, scratch twice (or a fast one of its own), then the data."""
    model = ModelBuilder()
    main = model.main
    stream = main.tensor("ethos_u_command_stream", (64,), Type.UINT8, data=bytes(64))
    weights = main.tensor("read_only", (128,), Type.UINT8, data=bytes(128))
    scratch = main.tensor("scratch", (SCRATCH_BYTES,), Type.UINT8)
    x = main.input("image", (1, 96, 96, 1), Type.INT8)
    y = main.tensor("scores", (1, 2), Type.INT8)
    second = main.tensor("scratch_fast", (fast,), Type.UINT8) if fast else scratch
    main.op("ethos-u", [stream, weights, scratch, second, x], [y])
    main.outputs = [y]
    if offsets:
        model.metadata("OfflineMemoryAllocation", array("i", (0, 1, len(offsets), *offsets)).tobytes())
    return model


def arena_bytes(graph: Graph) -> int:
    return plan_memory(graph, Runtime()).arena_bytes


def test_scratch_is_memory_that_lives_with_its_operator(tmp_path: Path) -> None:
    graph = compiled().graph(tmp_path)
    assert [tensor.role for tensor in graph.tensors] == [
        Role.CONSTANT,
        Role.CONSTANT,
        Role.SCRATCH,
        Role.INPUT,
        Role.ACTIVATION,
    ]
    assert arena_bytes(graph) == SCRATCH_BYTES + INPUT_BYTES + OUTPUT_BYTES


def test_data_that_the_compiler_placed_within_the_scratch_are_counted_once(tmp_path: Path) -> None:
    graph = compiled(-1, -1, 0, 55_296, 0).graph(tmp_path)
    assert graph.placed_in == {3: 2, 4: 2}
    assert arena_bytes(graph) == SCRATCH_BYTES
    (buffer,) = plan_memory(graph, Runtime()).buffers
    assert graph.tensors[buffer.tensors[0]].name == "scratch"


def test_data_placed_behind_the_scratch_are_counted_beside_it(tmp_path: Path) -> None:
    graph = compiled(-1, -1, 0, SCRATCH_BYTES, -1).graph(tmp_path)
    assert graph.placed_in == {}
    assert arena_bytes(graph) == SCRATCH_BYTES + INPUT_BYTES + OUTPUT_BYTES


def test_a_second_scratch_at_the_same_place_is_the_same_memory(tmp_path: Path) -> None:
    graph = compiled(-1, -1, 0, 55_296, 0, 0, fast=SCRATCH_BYTES).graph(tmp_path)
    assert graph.placed_in == {5: 2, 3: 2, 4: 2}
    assert arena_bytes(graph) == SCRATCH_BYTES


def test_a_second_scratch_without_a_place_is_counted_too(tmp_path: Path) -> None:
    graph = compiled(-1, -1, 0, 55_296, 0, -1, fast=4096).graph(tmp_path)
    assert arena_bytes(graph) == SCRATCH_BYTES + 4096


@pytest.mark.parametrize("content", [b"", b"\0" * 7, array("i", (0, 1, 10**9, -1, -1, 0)).tobytes(), b"\xff" * 400])
def test_a_damaged_plan_places_nothing_wrongly(tmp_path: Path, content: bytes) -> None:
    model = compiled()
    model.metadata("OfflineMemoryAllocation", content)
    assert arena_bytes(model.graph(tmp_path)) == SCRATCH_BYTES + INPUT_BYTES + OUTPUT_BYTES


def test_an_operator_of_the_schema_has_no_scratch(tmp_path: Path) -> None:
    """A tensor that nothing writes and that has no data is then what a damaged file lost."""
    model = ModelBuilder()
    x = model.main.input("x", (4,))
    lost = model.main.tensor("lost", (4,))
    model.main.op(Operator.ADD, [x, lost], [model.main.tensor("y", (4,))])
    assert model.graph(tmp_path).tensors[lost].role is Role.ACTIVATION
