"""Shares of time, on timelines typed by hand."""

from __future__ import annotations

from opscope.plugins.qnn.node_path import Order
from opscope.plugins.qnn.node_times import node_cycles
from support.plugins.qnn.htp_samples import schematic, timeline

A, B, JOIN = 0x10, 0x20, 0x30


def test_wall_is_not_a_sum_over_threads_and_overlap_is_told_apart() -> None:
    line = timeline((A, "HVX 1", 0, 10, False), (A, "HVX 2", 0, 10, False), (B, "DMA", 5, 15, False))
    cycles = node_cycles(line, [0, 0, 1])
    assert cycles.wall == {0: 10, 1: 10}
    assert cycles.alone == {0: 5, 1: 5}
    assert cycles.busy[0]["HVX"] == 20


def test_waits_of_the_foreground_thread_go_to_the_node_it_goes_on_with() -> None:
    line = timeline((A, "FG", 2, 4, False), (JOIN, "FG", 9, 10, True), (B, "FG", 10, 12, False))
    cycles = node_cycles(line, [0, 1, 2])
    assert cycles.wait == {0: 2, 1: 5 + 1}
    assert sum(cycles.wait.values()) + (4 - 2) + (12 - 10) == line.end


def test_the_dominant_path_goes_through_what_ended_last_and_fills_the_whole_time() -> None:
    line = timeline(
        (A, "FG", 0, 1, True),
        (B, "FG", 1, 2, True),
        (A, "HVX 1", 1, 30, False),
        (B, "DMA", 2, 8, False),
        (JOIN, "FG", 31, 40, False),
    )
    order = Order(line, schematic((1, A, ()), (2, B, ()), (3, JOIN, (1, 2))))
    path = [(int(line.work["id"][part.span]), part.begin, part.end) for part in order.dominant_path()]
    assert path == [(A, 0, 1), (A, 1, 30), (JOIN, 30, 40)]


def test_constraints_are_followed_through_steps_without_a_span() -> None:
    line = timeline((A, "HVX 1", 0, 5, False), (B, "HVX 1", 6, 9, False))
    order = Order(line, schematic((1, A, ()), (2, 0x99, (1,)), (3, B, (2,))))
    assert list(order.producers(B, of_work=True)) == [0]


def test_a_timeline_without_work_has_no_path() -> None:
    assert Order(timeline(), schematic()).dominant_path() == ()
