"""Replays of timelines that are typed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.plugins.qnn.hexagon import hexagon_of
from opscope.plugins.qnn.importers.schematic import CompiledOp
from opscope.plugins.qnn.importers.timeline import DMA, ENGINES, HMX, HVX
from opscope.plugins.qnn.parts.scaling import Rates, scaled
from opscope.plugins.qnn.socs import find_soc
from support.plugins.qnn.htp_samples import MHZ, schematic, timeline

A, B, JOIN = 0x10, 0x20, 0x30
BASE = Rates(MHZ * 1e6, {"i8": 1e12, "f16": 1e12}, 1e11, 1e10)


def test_each_engine_has_its_own_rate_and_work_waits_for_what_it_waited_for() -> None:
    line = timeline(
        (A, "HVX 1", 0, 100, False),
        (B, "DMA", 10, 60, False),
        (JOIN, "HVX 1", 104, 154, False),
        engines=tuple(map(ENGINES.index, (HVX, DMA, HVX))),
    )
    line.work["dram_read"] = (0, 4096, 0)
    plan = schematic((1, A, ()), (2, B, ()), (3, JOIN, (1, 2)))
    slow_memory = scaled(line, plan, BASE, replace(BASE, outer=BASE.outer / 4))
    assert slow_memory.work[["start", "end"]].tolist() == [
        (0, 100),
        (10, 210),
        (214, 264),
    ]  # nobody waited for B before
    half = scaled(line, plan, BASE, replace(BASE, vector=BASE.vector / 2))
    assert half.work[["start", "end"]].tolist() == [(0, 200), (10, 60), (204, 304)]


def test_a_slower_clock_is_told_by_the_clock_and_memory_keeps_its_time() -> None:
    line = timeline((A, "FG", 0, 10, False), (B, "DMA", 10, 30, False), engines=(0, ENGINES.index(DMA)))
    line.work["dram_read"] = (0, 4096)
    found = scaled(line, schematic((1, A, ()), (2, B, (1,))), BASE, replace(BASE, clock_hz=BASE.clock_hz / 2))
    assert found.clock_hz == BASE.clock_hz / 2
    assert found.work[["start", "end"]].tolist() == [(0, 10), (10, 20)]  # 20 ns each


def test_a_wait_lasts_until_what_it_is_for_is_done() -> None:
    line = timeline((A, "HVX 1", 5, 50, False), (JOIN, "FG", 2, 52, True), engines=(ENGINES.index(HVX), 0))
    line = replace(line, work=line.work[np.argsort(line.work["start"])])
    found = scaled(line, schematic((1, A, ()), (2, JOIN, (1,))), BASE, replace(BASE, vector=BASE.vector / 2))
    assert found.work[["start", "end"]].tolist() == [(2, 97), (5, 95)]


def test_products_go_by_the_rate_of_their_data_type() -> None:
    line = timeline((A, "FG", 0, 10, False), (B, "FG", 10, 20, False), engines=(ENGINES.index(HMX),) * 2)
    ops = {A: CompiledOp(A, "conv", (), "QUInt8", ()), B: CompiledOp(B, "conv", (), "Float16", ())}
    plan = replace(schematic((1, A, ()), (2, B, (1,))), ops=ops)
    found = scaled(line, plan, BASE, replace(BASE, matrix={"i8": 2e12, "f16": 0.5e12}))
    assert found.work[["start", "end"]].tolist() == [(0, 5), (5, 25)]


def test_use_of_memory_moves_with_the_spans_around_it() -> None:
    line = timeline((A, "HVX 1", 0, 100, False))
    line = replace(line, usage=np.array([(0, 64), (50, 32), (100, 0)]))
    found = scaled(line, schematic((1, A, ())), BASE, replace(BASE, vector=BASE.vector / 2))
    assert found.usage.tolist() == [[0, 64], [100, 32], [200, 0]]


@pytest.mark.parametrize("name", ["SA8255", "SM8650", "QCS6490", "SM8850"])
def test_rates_at_the_ends_of_figures_enclose_the_typical_ones(name: str) -> None:
    part = hexagon_of(find_soc(name))
    slow, typical, fast = (Rates.of(part, end=end) for end in ("smallest", "value", "largest"))
    for key in ("clock_hz", "vector", "outer"):
        assert getattr(slow, key) <= getattr(typical, key) <= getattr(fast, key)
    assert all(slow.matrix[dtype] <= rate <= fast.matrix[dtype] for dtype, rate in typical.matrix.items())


def test_what_macs_do_not_explain_does_not_go_by_the_rate_of_products() -> None:
    line = timeline((A, "FG", 0, 100, False), engines=(ENGINES.index(HMX),))
    ops = {A: CompiledOp(A, "conv", (), "QUInt8", ())}  # at 1e12 MACs/s and 1 GHz: 1,000 a cycle
    plan = replace(schematic((1, A, ())), ops=ops)
    narrow = replace(BASE, matrix={"i8": 0.25e12})
    full, quarter, unknown = (scaled(line, plan, BASE, narrow, np.array([macs])).end for macs in (1e5, 25e3, np.nan))
    assert (full, quarter, unknown) == (400, 25 * 4 + 75, 400)
    assert scaled(line, plan, BASE, narrow, np.array([9e9])).end == 400  # more than the peak allows is the peak
