"""How much of a run an accelerator takes."""

from __future__ import annotations

from dataclasses import replace

from opscope.gate.offload import LeftToCpu, offload_of
from opscope.gate.run_figures import of_run
from support import fleet_cells


def test_time_and_ops_of_the_processor_are_told_apart() -> None:
    run = fleet_cells.recorded({"conv": 600, "soft": 300, "relu": 100}).run
    conv, soft, relu = sorted(run.summary.ops, key=lambda op: op.op or 0)
    ops = (conv, replace(soft, on_cpu=True, reason="no such kernel"), replace(relu, placed="fused"))
    run = replace(run, summary=replace(run.summary, ops=ops))
    found = offload_of(of_run(run, label=""), run)
    assert found.op_share == 0.5  # what is fused is nobody's
    assert found.time_share == 600 / 900
    assert found.left == (LeftToCpu("Op", 1, "no such kernel"),)
