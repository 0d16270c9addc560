"""A program with one thing changed, timed again: on paper, and against the same change made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.changes.changes import (
    Baseline,
    Change,
    parse_change,
    parse_changes,
    retime_program,
    scale_ops,
    with_predictions,
)
from opscope.core.errors import UsageError
from opscope.program.program import OpInfo, Program
from opscope.recording.finding import UPPER_BOUND, WHAT_IF, Finding, Findings, Prediction
from opscope.simulation import simulate
from support.device.build import DMA, HVX, READ, ROUTES, WRITE, Step, program_of


def two_ops() -> Program:
    """Bytes come in (800 at 4 a cycle), then an op of 100 cycles, then one of 50 that needs nothing of it."""
    steps = [Step(DMA, 0, route=READ, moved_bytes=800), Step(HVX, 100, needs=(0,)), Step(HVX, 50)]
    program = program_of(steps)
    commands = program.commands.copy()
    commands["op"] = [0, 1, 0]  # sorted by lane: the two of HVX, then the transfer
    return replace(
        program, commands=commands, ops=(OpInfo("first", "Conv", "conv", ""), OpInfo("later", "Add", "add", ""))
    )


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("bandwidth*2", Change("bandwidth", "", 2.0, "")),
        ("bandwidth:DDR read*0.5", Change("bandwidth", "DDR read", 0.5, "")),
        ("clock*1.5", Change("clock", "", 1.5, "")),
        ("op:/a*b=c/Mul=0", Change("op", "/a*b=c/Mul", 0.0, "")),
        ("op:x*.25", Change("op", "x", 0.25, "")),
        ("cores=8", Change("cores", "", 0.0, "8")),
        (" precision=i8 ", Change("precision", "", 0.0, "i8")),
        ("kv-cache=mxint8", Change("kv-cache", "", 0.0, "mxint8")),
    ],
)
def test_a_change_is_read_as_it_is_written(text: str, change: Change) -> None:
    assert parse_change(text) == change


@pytest.mark.parametrize(
    "text", ["", "bandwidth", "cores=0", "cores*2", "op:=0", "clock=2", "bandwidth*-1", "x=1", "op:a=1"]
)
def test_what_is_not_understood_is_answered_with_what_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--what-if .*: not understood; expected such as bandwidth\*2"):
        parse_change(text)


def test_a_bandwidth_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"nothing would ever end; expected a factor above 0$"):
        parse_change("bandwidth*0")


@pytest.mark.parametrize("text", ["bandwidth*1000001", "clock*" + 400 * "9", "op:a*" + 30 * "9"])
def test_a_factor_that_no_time_can_be_counted_with_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"too much; expected a factor up to 1,000,000$"):
        parse_change(text)


def test_what_is_set_twice_is_refused_and_what_is_scaled_twice_is_not() -> None:
    with pytest.raises(UsageError, match=r"^--what-if cores: is set to 4 and to 8; expected one value$"):
        parse_changes(["cores=4", "precision=i8", "cores=8"])
    assert [change.factor for change in parse_changes(["clock*2", "clock*0.5"])] == [2, 0.5]


def test_twice_the_bandwidth_halves_the_transfer() -> None:
    program = two_ops()
    assert simulate(program).total_cycles == 200 + 100 + 50
    assert simulate(retime_program(program, parse_change("bandwidth*2"))).total_cycles == 100 + 100 + 50
    assert simulate(retime_program(program, parse_change("bandwidth:DDR write*2"))).total_cycles == 350


def test_a_faster_clock_leaves_memory_at_its_pace() -> None:
    program = two_ops()
    faster = retime_program(program, parse_change("clock*2"))
    assert faster.clock_hz == 2 * program.clock_hz
    assert simulate(faster).total_cycles == 400 + 150  # in shorter cycles: the transfer takes as long as before


def test_an_op_that_takes_no_time_still_keeps_its_place() -> None:
    program = two_ops()
    free = retime_program(program, parse_change("op:first=0"))
    assert free.commands["cycles"].tolist() == [0, 50, 0]
    assert simulate(free).total_cycles == 50
    assert np.array_equal(free.dependency_sources, program.dependency_sources)


def test_an_unknown_op_or_route_is_named() -> None:
    with pytest.raises(UsageError, match=r"^--what-if op:nobody: no such op"):
        retime_program(two_ops(), parse_change("op:nobody=0"))
    with pytest.raises(UsageError, match=r"no such route; expected one of DDR read, DDR write$"):
        retime_program(two_ops(), parse_change("bandwidth:PCIe*2"))


def test_a_gain_is_what_the_simulation_says() -> None:
    program = two_ops()
    findings = Findings("compute", (), 3500, "simulated", findings=(Finding("slow-op", "t", "d", ops=("later",)),))
    (finding,) = with_predictions(findings, Baseline.of(program, 700)).findings
    assert finding.predicted is not None
    assert (finding.predicted.gain_ns, finding.predicted.latency_ns, finding.predicted.basis) == (
        50,
        3450,
        WHAT_IF,
    )  # 25 of 350 cycles
    assert finding.predicted.text == "simulated with this op twice as fast"


def test_outer_memory_is_given_twice_its_bandwidth() -> None:
    cause = Finding("memory-transfers", "t", "d", ops=("later",))  # that wait for the bytes, and do not cause them
    (finding,) = with_predictions(
        Findings("memory", (), 3500, "simulated", findings=(cause,)), Baseline.of(two_ops(), 700)
    ).findings
    assert finding.predicted is not None
    assert finding.predicted.gain_ns == 200  # 100 of 350 cycles
    assert finding.predicted.text == "simulated with twice the bandwidth of DDR read and DDR write"


def test_a_cause_that_cannot_be_simulated_away_keeps_its_bound_and_takes_no_place() -> None:
    bound = Prediction(7, 8, UPPER_BOUND)
    far = [Finding("far-from-bound", "t", "d", ops=("first",), predicted=bound)] * 5
    findings = Findings("compute", (), 3500, "simulated", findings=(*far, Finding("slow-op", "t", "d", ops=("later",))))
    *others, last = with_predictions(findings, Baseline.of(two_ops(), 700)).findings
    assert {finding.predicted for finding in others} == {bound}
    assert last.predicted is not None
    assert last.predicted.basis == WHAT_IF


def test_scaling_by_one_changes_nothing() -> None:
    program = two_ops()
    assert np.array_equal(scale_ops(program, [0, 1], 1.0).commands, program.commands)


def test_only_the_bytes_of_the_op_itself_are_scaled() -> None:
    steps = [Step(DMA, 3, route=READ, moved_bytes=400), Step(DMA, 3, route=WRITE, moved_bytes=80)]
    program = program_of(steps, routes=ROUTES)
    commands = program.commands.copy()
    commands["op"] = [0, 1]
    scaled = scale_ops(replace(program, commands=commands), [1], 0.5)
    assert scaled.commands["moved_bytes"].tolist() == [400, 40]
