"""Inputs and outputs that the device has in another type than the model: the host converts, before the link."""

from __future__ import annotations

from opscope.analysis.totals.program_traffic import ProgramTraffic
from opscope.compiler import compile_graph
from opscope.device.host.stage_times import HostTraffic
from opscope.estimate.price import Machine
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.options import CompileOptions
from opscope.program.program import Program
from opscope.program.program_file import decode_program, encode_program
from opscope.workflows.retained_state import with_state
from support.build import Sketch


def compiled(graph: Graph, **options: str) -> Program:
    return compile_graph(graph, Machine(targets.load("aic100-std"), cores=1), CompileOptions(**options))  # type: ignore[arg-type]


def test_floats_cross_the_link_as_the_device_has_them_and_stay_what_they_are_for_the_application() -> None:
    draw = Sketch(dtype=DType.F32)
    program = compiled(draw.graph(draw.dense(draw.input(4, 64), 32, name="product")))
    program = decode_program(encode_program(program), source="program")
    assert [dtype for _, dtype, _ in (*program.inputs, *program.outputs)] == ["f32", "f32"]
    crossing = (4 * 64 * 2, 4 * 32 * 2)
    assert HostTraffic.of(program) == crossing
    traffic = ProgramTraffic.of(program)
    assert (traffic.input_bytes, traffic.output_bytes) == crossing


def test_a_type_that_the_device_has_too_is_not_written_down() -> None:
    draw = Sketch(dtype=DType.F16)
    assert compiled(draw.graph(draw.op("relu", (draw.input(4, 64),), (4, 64)))).stored_types == {}


def cached() -> Graph:
    """A cache of 1,024 rows that gets 32 more, and a product that reads it."""
    draw = Sketch(dtype=DType.F16)
    past, query = draw.input(1, 1024, 64, name="past"), draw.input(1, 64, 32)
    new = draw.same("relu", draw.input(1, 32, 64))
    present = draw.op("concat", (past, new), (1, 1056, 64), axis=1)
    return draw.graph(draw.op("matmul", (present, query), (1, 1056, 32), k=64, n=32), present)


OTHER = (32 * 64 + 64 * 32) * 2  # bytes of the inputs that are no cache


def test_a_cache_in_blocks_crosses_and_is_told_with_the_bytes_of_its_blocks() -> None:
    program = compiled(cached(), kv_cache="mxint8")
    blocks = 1024 * 64 // 32 * 33  # 32 bytes and a scale each
    assert HostTraffic.of(program).bytes_in == blocks + OTHER
    notes = with_state(cached(), program, CompileOptions(kv_cache="mxint8")).notes
    assert "1 outputs (68.06 KB) come back as inputs (66.00 KB) over the host link" in notes[-1]


def test_state_that_stays_is_no_traffic_of_the_host() -> None:
    staying = with_state(cached(), compiled(cached()), CompileOptions(retained_state=True))
    assert ProgramTraffic.of(staying).input_bytes == OTHER
