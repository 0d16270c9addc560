"""Laws of compiled programs, on random graphs and on targets with little of everything."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.analysis.repeated_work import repeated_work
from opscope.compiler.performance_warnings import performance_warnings
from opscope.compiler.plan import Plan
from opscope.core.errors import ProgramError
from opscope.graph.graph import Graph
from opscope.program.program import NO_OP, Program
from opscope.program.program_file import decode_program, encode_program
from opscope.program.wire import PROGRAM_HEADER
from opscope.recording.run import CommandTable
from opscope.simulation import simulate
from support.compiler.build import KB, any_parts, any_splits, build, joined, small_target, whole_batch, with_a_rest
from support.compiler.graphs import graphs
from support.compiler.laws import all_laws
from support.recording.analyse_build import run_of

Limits = dict[str, int]

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
LIMITS = st.fixed_dictionaries(
    {
        "local_bytes": st.sampled_from([24 * KB, 40 * KB, 96 * KB, 400 * KB, 4000 * KB]),
        "weight_bytes": st.sampled_from([1 * KB, 4 * KB]),
        "activation_bytes": st.sampled_from([2 * KB, 8 * KB, 64 * KB]),
        "buffers": st.integers(1, 3),
        "bandwidth": st.sampled_from([0.1, 1.0, 10.0]),
    }
)  # of a small target


@PATIENT
@given(graphs(), LIMITS, st.integers(1, 4), st.integers(1, 2), st.sampled_from(["tensor", "pipeline"]))
def test_programs_obey_the_laws(graph: Graph, limits: Limits, cores: int, devices: int, parallel: str) -> None:
    """Of one program each: laws, warnings, MACs, and prices of splits. Compiling takes longer than any of these."""
    built = build(graph, small_target(**limits), cores=cores, devices=devices, parallel=parallel)
    all_laws(built, simulate(built.program))
    unknown = {placed.op.name for placed in built.schedule.placed if placed.op.kind == "custom"}
    warned = {w.op for w in performance_warnings(built.passed, built.program) if w.kind == "unknown-cost"}
    assert unknown <= warned
    macs_less_those_computed_again_are_those_of_the_graph(built.program, cores * devices)
    the_split_that_is_chosen_is_priced_lowest_of_all_considered(built.passed)


def macs_less_those_computed_again_are_those_of_the_graph(program: Program, lanes: int) -> None:
    found = repeated_work(replace(run_of(), ops=program.ops, commands=CommandTable.of(program)))
    assert all(1 < work.times <= lanes for work in found)
    once = int(program.commands["macs"].sum()) - sum(work.again_macs for work in found)
    assert abs(once - program.metrics.macs) <= len(program.commands)  # each command has whole MACs


def the_split_that_is_chosen_is_priced_lowest_of_all_considered(passed: Plan) -> None:
    for part in passed.parts:
        for split in part.splits:
            price = next(cycles for sharding, cycles in split.prices if sharding is split.sharding)
            assert price <= min(cycles for _, cycles in split.prices) + 1  # prices that are the same cycle are equal
            assert len({id(sharding) for sharding, _ in split.prices}) == len(split.prices)


@settings(PATIENT, max_examples=30)
@given(graphs(most_ops=24), st.integers(1, 4), st.integers(1, 2))
def test_long_graphs_on_little_memory_obey_the_laws(graph: Graph, cores: int, devices: int) -> None:
    target = small_target(local_bytes=32 * KB, weight_bytes=KB, activation_bytes=4 * KB)
    built = build(graph, target, cores=cores, devices=devices)
    all_laws(built, simulate(built.program))


@PATIENT
@given(graphs(most_ops=16), LIMITS, st.integers(1, 4), st.integers(0, 1 << 30))
def test_parts_that_are_interleaved_obey_the_laws(graph: Graph, limits: Limits, cores: int, seed: int) -> None:
    built = build(graph, small_target(**limits), cores=cores, parts=with_a_rest(seed), interleaved=True)
    all_laws(built, simulate(built.program))


@PATIENT
@given(graphs(most_ops=16), LIMITS, st.integers(1, 4), st.integers(0, 1 << 30), st.booleans())
def test_parts_that_are_joined_obey_the_laws(
    graph: Graph, limits: Limits, cores: int, seed: int, interleaved: bool
) -> None:
    target = small_target(**limits)
    apart = build(graph, target, cores=cores, parts=with_a_rest(seed), interleaved=interleaved)
    built = build(graph, target, cores=cores, parts=joined(seed), interleaved=interleaved)
    all_laws(built, simulate(built.program))
    assert built.program.ops == apart.program.ops
    assert [port[2] for port in built.program.outputs] == [port[2] for port in apart.program.outputs]


@PATIENT
@given(graphs(most_ops=16), LIMITS, st.integers(1, 4), st.integers(1, 2), st.integers(0, 1 << 30))
def test_the_laws_hold_whatever_parts_of_the_batch_ops_run_in(
    graph: Graph, limits: Limits, cores: int, devices: int, seed: int
) -> None:
    target = small_target(**limits)
    whole = build(graph, target, cores=cores, devices=devices, parts=whole_batch).program
    built = build(graph, target, cores=cores, devices=devices, parts=any_parts(seed))
    all_laws(built, simulate(built.program))
    assert built.program.ops == whole.ops
    assert macs_by_op(built.program) == macs_by_op(whole)


@PATIENT
@given(graphs(most_ops=10), LIMITS, st.integers(1, 4), st.integers(1, 2), st.integers(0, 1 << 30))
def test_the_laws_hold_however_ops_are_split(graph: Graph, limits: Limits, cores: int, devices: int, seed: int) -> None:
    target, splits = small_target(**limits), any_splits(seed)
    built = build(graph, target, cores=cores, devices=devices, parts=any_parts(seed), splits=splits)
    all_laws(built, simulate(built.program))


def macs_by_op(program: Program) -> list[int]:
    """Each op's once: of a part with one image, lanes may each do all where that is cheaper than to share it."""
    table = program.commands[program.commands["op"] != NO_OP]
    counted = np.bincount(table["op"], table["macs"], minlength=len(program.ops)).astype(np.int64)
    for work in repeated_work(replace(run_of(), ops=program.ops, commands=CommandTable.of(program))):
        counted[work.op] -= work.again_macs
    return counted.tolist()


@settings(PATIENT, max_examples=30)
@given(graphs(), LIMITS, st.integers(1, 4))
def test_the_same_graph_gives_the_same_bytes_and_the_bytes_the_same_program(
    graph: Graph, limits: Limits, cores: int
) -> None:
    program, again = (build(graph, small_target(**limits), cores=cores).program for _ in range(2))
    raw = encode_program(program)
    assert raw == encode_program(again)
    read = decode_program(raw, source="program")
    assert encode_program(read) == raw
    assert_same(read, program)
    assert np.array_equal(simulate(read).done, simulate(program).done)


def assert_same(read: Program, program: Program) -> None:
    for name in ("commands", "dependency_offsets", "dependency_sources", "dependency_kinds"):
        assert np.array_equal(getattr(read, name), getattr(program, name)), name
    columns = {"commands", "dependency_offsets", "dependency_sources", "dependency_kinds"}
    for name in set(Program.__dataclass_fields__) - columns:
        assert getattr(read, name) == getattr(program, name), name


# ---- damage ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_file() -> bytes:
    from support.build import Sketch

    draw = Sketch()
    graph = draw.graph(draw.dense(draw.input(4, 8), 8))
    program = build(graph, small_target(), cores=2).program
    return encode_program(replace(program, host_microseconds={}, simulation={}))


def test_a_file_cut_short_anywhere_is_refused(small_file: bytes) -> None:
    for length in range(len(small_file)):
        with pytest.raises(ProgramError, match=r"^cut\.bin: "):
            decode_program(small_file[:length], source="cut.bin")


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(small_file: bytes) -> None:
    """The id is not checked when a program is read: it is compared with captures."""
    whole = decode_program(small_file, source="program")
    for offset in range(len(small_file)):
        for bit in (0, 7):
            damaged = bytearray(small_file)
            damaged[offset] ^= 1 << bit
            with suppress(ProgramError):
                assert_same(decode_program(bytes(damaged), source="bad.bin"), whole)


def test_a_bit_flipped_before_the_checksum_was_taken_is_refused_or_runs(small_file: bytes) -> None:
    for offset in range(PROGRAM_HEADER.size, len(small_file)):
        damaged = bytearray(small_file)
        damaged[offset] ^= 1 << offset % 8
        fields = list(PROGRAM_HEADER.unpack_from(damaged))
        fields[5] = crc32(damaged[PROGRAM_HEADER.size :])
        PROGRAM_HEADER.pack_into(damaged, 0, *fields)
        with suppress(ProgramError):
            simulate(decode_program(bytes(damaged), source="bad.bin"))
