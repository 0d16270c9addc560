"""Launches inside commands are stretches of the critical path of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.analysis.causes import COMPUTE, LAUNCH
from opscope.analysis.run_analysis import RunAnalysis
from opscope.compiler import compile_graph
from opscope.estimate.machines import use_machine
from opscope.graph.graph import DType, Graph
from opscope.options import CompileOptions, ProfileOptions
from opscope.recording.run import Run
from opscope.workflows.record import analysis_of
from opscope.workflows.simulated_run import run_program
from support.build import Sketch


def chain(length: int) -> Graph:
    """Small additions, each of the one before."""
    draw = Sketch(dtype=DType.F16)
    first = value = draw.input(1, 64)
    for _ in range(length):
        value = draw.op("add", (value, first), (1, 64))
    return draw.graph(value)


def profiled(graph: Graph) -> Run:
    machine = use_machine("aic100-std", cores=1)
    program = compile_graph(graph, machine, CompileOptions(cores=1, stats_level=70))
    recording = run_program(program, ProfileOptions(), step=lambda _: None)
    return analysis_of(recording, command=(), created="", sha256=None).run


def test_small_ops_are_bound_by_their_launch() -> None:
    run = profiled(chain(50))
    shares = {share.cause: share.ns for share in run.summary.breakdown}
    launch = 1523 / run.info.clocks_hz["core"] * 1e9
    assert shares["launch"] == pytest.approx(50 * launch, rel=0.05)
    assert shares["launch"] > 20 * shares["compute"]


def test_a_launch_is_a_part_of_its_activity_and_changes_no_length() -> None:
    run = profiled(chain(10))
    path = RunAnalysis(run).path
    assert run.bounds is not None
    without = RunAnalysis(replace(run, bounds=replace(run.bounds, units=()))).path
    assert path.ns.sum() == without.ns.sum()
    assert (without.cause == COMPUTE).sum() == 10
    old, new = ({*path.activity[path.cause == LAUNCH].tolist()} for path in (without, path))
    assert {*without.activity[without.cause == COMPUTE].tolist()} <= new - old
    assert (path.start[1:] == path.end[:-1]).all()
