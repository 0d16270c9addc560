"""Products that more than one core computes whole."""

from __future__ import annotations

from dataclasses import replace

from opscope.analysis.repeated_work import repeated_work
from opscope.compiler.passes.parts import PartsChooser
from opscope.graph.graph import DType
from opscope.recording.run import CommandTable
from support.build import Sketch
from support.compiler.build import KB, build, small_target
from support.recording.analyse_build import run_of


def test_of_two_parts_of_a_batch_only_the_one_that_all_cores_compute_counts() -> None:
    """Two devices share three of four images, and both compute the fourth: 8 of 40 MACs are too many."""
    draw = Sketch(dtype=DType.F16)
    data = draw.input(4, 1, 8)
    turned = draw.op("transpose", (data,), (4, 8, 1), permutation=(0, 2, 1))
    product = draw.op("matmul", (data, turned), (4, 1, 1), k=8, n=1)
    target = small_target(local_bytes=24 * KB, weight_bytes=KB, activation_bytes=2 * KB)
    built = build(draw.graph(product), target, cores=1, devices=2, parts=lambda plan: PartsChooser(plan).parts(3))
    program = built.program
    assert int(program.commands["macs"].sum()) == 40
    (found,) = repeated_work(replace(run_of(), ops=program.ops, commands=CommandTable.of(program)))
    assert (found.times, found.macs, found.again_macs) == (2, 16, 8)
