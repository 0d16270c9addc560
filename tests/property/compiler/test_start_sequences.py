"""Laws of programs for a target whose units are started by one sequencer, on random graphs."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.core.errors import ProgramError
from opscope.estimate.precision import with_precision
from opscope.graph.graph import DType, Graph
from opscope.machine.target import Target
from opscope.plugins.torq.dialect.hardware import hardware
from opscope.plugins.torq.dialect.sequenced import Ran
from opscope.plugins.torq.dialect.tables import host_table, runtime_table
from opscope.program.program import NO_ROUTE, START_KIND, Program
from opscope.program.sequence import SequencerStep, StartSequence, sequence_of
from opscope.simulation import simulate
from support.build import Sketch
from support.compiler.build import build
from support.compiler.graphs import graphs
from support.compiler.laws import all_laws
from support.draws import draws

FEW = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
HARDWARE = st.sampled_from(["1:24:2:coral_v1:nss_v1", "1:64:1:coral_v1:nss_v1", "1:512:3:coral_v2:nss_v2"])


def small() -> Program:
    """A dense layer on the slices and a softmax apart."""
    draw = Sketch("small", dtype=DType.I8)
    data = draw.dense(draw.input(1, 64), 32)
    return build(draw.graph(draw.same("softmax", data, axes=(1,))), hardware(None)).program


SMALL = small()


def target(text: str) -> Target:
    return with_precision(hardware(text), "bf16")


@FEW
@given(graphs(), HARDWARE)
def test_programs_obey_the_laws_of_every_other_program(graph: Graph, text: str) -> None:
    built = build(graph, target(text))
    all_laws(built, simulate(built.program))


@FEW
@given(graphs(), HARDWARE)
def test_a_sequence_starts_everything_once_and_waits_for_it_once(graph: Graph, text: str) -> None:
    program = build(graph, target(text)).program
    sequence = sequence_of(program)
    started = [step.command for _, step in sequence.starts()]
    assert sorted(started) == expected_starts(program)
    waited = [step.command for step in steps(sequence) if step.waits]
    assert sorted(waited) == sorted(started)
    check_units(sequence)
    check_order(sequence)


def expected_starts(program: Program) -> list[int]:
    """Every transfer, and every command of an engine: the slow and obvious way."""
    issuer = len(program.groups) - 1
    kinds = [program.kinds[kind] for kind in program.commands["kind"]]
    return [
        n
        for n, row in enumerate(program.commands)
        if row["route"] != NO_ROUTE or (row["group"] != issuer and kinds[n] != START_KIND)
    ]


def steps(sequence: StartSequence) -> list[SequencerStep]:
    return [step for job in sequence.jobs for task in job.tasks for step in task.steps]


def check_units(sequence: StartSequence) -> None:
    """No unit is started again before it was waited for."""
    busy: dict[tuple[object, int], int] = {}
    for step in steps(sequence):
        unit = (step.unit, step.number)
        if step.waits:
            assert busy.pop(unit) == step.command
        else:
            assert unit not in busy
            busy[unit] = step.command
    assert not busy


def check_order(sequence: StartSequence) -> None:
    numbers = [task.number for job in sequence.jobs for task in job.tasks]
    assert numbers == list(range(len(numbers)))
    for job in sequence.jobs:
        for task in job.tasks:
            places = [(step.order, step.number) for step in task.steps]
            assert places == sorted(set(places))


@FEW
@given(graphs(), HARDWARE)
def test_jobs_follow_each_other_without_a_gap_and_a_wait_ends_what_it_waits_for(graph: Graph, text: str) -> None:
    program = build(graph, target(text)).program
    sequence, timeline = sequence_of(program), simulate(program)
    bounds = sequence.bounds(timeline.lane_ready, timeline.start, timeline.issue_end, timeline.done)
    assert bounds[0][0] == 0
    assert bounds[-1][1] == timeline.total_cycles
    assert all(begin <= end for begin, end in bounds)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(bounds))
    for step in steps(sequence)[:-1]:
        last = sequence.jobs[-1].last
        if step.waits and step.issued_by != last:
            assert timeline.done[step.command] <= timeline.start[step.issued_by] + 1e-6


@FEW
@given(graphs(), HARDWARE)
def test_a_unit_never_works_on_two_things_at_once(graph: Graph, text: str) -> None:
    program = build(graph, target(text)).program
    timeline = simulate(program)
    spans: dict[tuple[object, int], list[tuple[float, float]]] = {}
    for _, step in sequence_of(program).starts():
        span = (float(timeline.start[step.command]), float(timeline.done[step.command]))
        spans.setdefault((step.unit, step.number), []).append(span)
    for found in spans.values():
        ends = np.array(sorted(found))
        assert (ends[1:, 0] >= ends[:-1, 1] - 1e-6).all()


def damaged(program: Program, data: st.DataObject) -> Program:
    """A program with one number of one command, or one dependency, changed."""
    table, sources = program.commands.copy(), program.dependency_sources.copy()
    if data.draw(st.booleans()) and len(sources):
        sources[data.draw(st.integers(0, len(sources) - 1))] = data.draw(st.integers(0, len(table) + 2))
    else:
        name = data.draw(st.sampled_from(["group", "route", "kind", "op", "cycles", "moved_bytes", "detail"]))
        row = data.draw(st.integers(0, len(table) - 1))
        table[name][row] = data.draw(st.integers(0, 127))
    return replace(program, commands=table, dependency_sources=sources)


@settings(FEW, max_examples=draws(1.5))
@given(st.data())
def test_a_damaged_program_is_refused_or_runs(data: st.DataObject) -> None:
    program = damaged(SMALL, data)
    with suppress(ProgramError):
        timeline = simulate(program)
        sequence = sequence_of(program)
        bounds = sequence.bounds(timeline.lane_ready, timeline.start, timeline.issue_end, timeline.done)
        ran = Ran(program, sequence, bounds, None)
        assert runtime_table(ran).startswith("id;")
        assert host_table(ran).startswith("dispatch_name,")
        assert isinstance(ran.uncosted, tuple)
