"""Which op gives data to which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opscope.analysis.op_edges import op_edges
from opscope.recording.run import GRAPH_EDGE
from support.recording.page_build import small_run


def test_the_graph_follows_data_not_the_reuse_of_memory() -> None:
    run = small_run()
    graph = op_edges(run)
    assert list(zip(graph.sources, graph.targets, strict=True)) == [(0, 1), (1, 2), (2, 3)]
    order = run.trace.edges.copy()
    order["data"] = False
    bare = replace(run.commands, operands=((),) * len(run.commands.operands))
    assert op_edges(replace(run, trace=replace(run.trace, edges=order), commands=bare)).sources == ()


def test_the_graph_of_the_run_goes_before_what_commands_tell() -> None:
    run = replace(small_run(), graph=np.array([(0, 3), (3, 2), (1, 1), (9, 0)], GRAPH_EDGE))
    graph = op_edges(run)
    assert list(zip(graph.sources, graph.targets, strict=True)) == [(0, 3), (3, 2)]
