"""Where weights lie and what is read of them: laws of compression, of two kinds of flash, and of weights that stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope.core.errors import TargetError
from opscope.estimate.build_report import build_report
from opscope.estimate.cost import DECODE
from opscope.estimate.estimator import Estimate, estimate
from opscope.estimate.price import Machine
from opscope.estimate.traffic.stores import RESIDENT, Stores, filled, parameter_bytes
from opscope.graph.graph import Graph
from opscope.machine import catalogue
from opscope.machine.target import Compression, Figure, Holds, Memory, Scope, Target
from support.build import Sketch, engine, figure, memory, target

KB = 1024
SIZES = (0.01, 40, 110, 300, 700, 10_000)  # KB of the memory that is filled first


def network() -> Graph:
    """Products whose weights take 64, 32, 256, 16 and 64 KB."""
    sketch = Sketch()
    data = sketch.input(1, 128)
    for extent in (128, 64, 1024, 4, 4096):
        data = sketch.dense(data, extent, bias=False)
    return sketch.graph(data)


def flash(name: str, size_kb: float, rate: float) -> Memory:
    return memory(name, Holds.CONSTANTS, size=round(size_kb * KB), scope=Scope.DEVICE, bytes_per_cycle=figure(rate))


def machine(*memories: Memory, **parts: object) -> Machine:
    npu = engine(macs={"*": 8.0}, elements={"*": 8.0})
    ram = memory("RAM", Holds.ACTIVATIONS, scope=Scope.DEVICE, bytes_per_cycle=figure(8))
    return Machine(replace(target(npu, memories=(ram, *memories)), **parts))  # type: ignore[arg-type]


def cycles(found: Estimate) -> float:
    assert found.totals.cycles is not None
    return found.totals.cycles


def read(found: Estimate, *names: str) -> int:
    return sum(layer.traffic.get(name, 0) for layer in found.layers for name in names)


def test_memories_that_hold_constants_are_filled_one_behind_the_other() -> None:
    graph = network()
    assert parameter_bytes(graph) == 432 * KB
    stores = Stores(graph, machine(flash("inner", 100, 4), flash("outer", 1e6, 1)).target)
    assert [stores.of(op, graph) for op in graph.ops] == ["inner", "inner", "outer", "outer", "outer"]
    assert stores.used == {"inner": 96 * KB, "outer": 336 * KB}
    assert filled([10, 20, 5], 50) == [10, 20, 20]
    assert filled([10, 20, 5], 7) == [7, 0, 0]


def test_more_of_the_faster_memory_is_never_slower_and_all_bytes_are_read_once() -> None:
    found = [estimate(network(), machine(flash("inner", size, 4), flash("outer", 1e6, 0.5))) for size in SIZES]
    times = [cycles(each) for each in found]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]
    for each in found:
        assert read(each, "inner", "outer") == parameter_bytes(each.graph)
    inner = [read(each, "inner") for each in found]
    assert inner == sorted(inner)
    assert (inner[0], inner[-1]) == (0, 432 * KB)
    assert times[0] == cycles(estimate(network(), machine(flash("outer", 1e6, 0.5))))
    assert times[-1] == cycles(estimate(network(), machine(flash("inner", 1e6, 4))))


def test_the_report_shows_both_and_a_full_first_one_is_no_problem() -> None:
    found = build_report(network(), machine(flash("inner", 100, 4), flash("outer", 1000, 1)), sha256=None).memory
    assert [(use.name, use.required_bytes, use.fits) for use in found.uses[1:]] == [
        ("inner", 96 * KB, True),
        ("outer", 336 * KB, True),
    ]
    assert (found.status, found.issues, found.recommendations) == ("OK", (), ())
    small = build_report(network(), machine(flash("inner", 100, 4), flash("outer", 200, 1)), sha256=None).memory
    assert small.status == "DOES NOT FIT"
    assert "336.00 KB of outer for constants exceeds the 200.00 KB available" in small.issues[0]


def with_local(size_kb: float, share: float | None) -> Machine:
    local = memory("SRAM", Holds.TILES, size=round(size_kb * KB), scope=Scope.CORE, bytes_per_cycle=figure(64))
    kept = replace(local, resident_share=None if share is None else figure(share))
    return machine(flash("outer", 1e6, 0.5), kept)


def test_what_stays_in_local_memory_is_not_read_anew_and_the_rest_is() -> None:
    found = [estimate(network(), with_local(size, 1.0)) for size in SIZES]
    streamed = [read(each, "outer") for each in found]
    assert streamed == sorted(streamed, reverse=True)
    assert (streamed[0], streamed[-1]) == (432 * KB, 0)
    assert 0 < streamed[2] < 432 * KB
    times = [cycles(each) for each in found]
    assert times == sorted(times, reverse=True)
    for each in found:
        assert read(each, "SRAM") >= parameter_bytes(each.graph)  # each weight passes local memory


def test_without_a_share_all_of_the_weights_stay_or_none() -> None:
    assert {read(estimate(network(), with_local(size, None)), "outer") for size in SIZES} == {0, 432 * KB}


def test_a_share_of_nothing_streams_everything_and_tables_never_stay() -> None:
    assert read(estimate(network(), with_local(10_000, 0.0)), "outer") == 432 * KB
    sketch = Sketch()
    table, index = sketch.constant(1000, 16), sketch.input(1, 8)
    graph = sketch.graph(sketch.op("gather", [table, index], (1, 8, 16)))
    stores = Stores(graph, with_local(10_000, 1.0).target, resident_bytes=1e9)
    assert stores.of(graph.ops[0], graph) == "outer"


def compressed(ratio: Figure, rate: float | None = None) -> Machine:
    decoder = None if rate is None else figure(rate)
    return machine(flash("flash", 1e6, 0.5), compression=Compression(ratio, decoder))


def test_a_ratio_of_one_changes_nothing() -> None:
    plain, same = estimate(network(), machine(flash("flash", 1e6, 0.5))), estimate(network(), compressed(figure(1.0)))
    assert plain.totals == same.totals
    assert [layer.traffic for layer in plain.layers] == [layer.traffic for layer in same.layers]


def test_a_higher_ratio_stores_and_reads_less_and_is_never_slower() -> None:
    found = [estimate(network(), compressed(figure(ratio))) for ratio in (1.0, 1.3, 2.0, 4.0, 100.0)]
    for ratio, each in zip((1.0, 1.3, 2.0, 4.0, 100.0), found, strict=True):
        assert read(each, "flash") == pytest.approx(432 * KB / ratio, rel=1e-3)
        assert Stores(each.graph, each.machine.target).used["flash"] == pytest.approx(432 * KB / ratio)
    times = [cycles(each) for each in found]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]


def test_a_slow_decoder_rules_and_a_fast_one_hides() -> None:
    fast, slow = estimate(network(), compressed(figure(4.0), 1e6)), estimate(network(), compressed(figure(4.0), 0.1))
    assert cycles(fast) == cycles(estimate(network(), compressed(figure(4.0))))
    assert {layer.bound for layer in slow.layers} == {DECODE.name}
    assert cycles(slow) == pytest.approx(432 * KB / 0.1, rel=0.1)


def test_the_range_of_a_latency_has_that_of_the_ratio() -> None:
    found = estimate(network(), compressed(Figure(2.0, "sheet", 1.0, 4.0))).totals.latency_s
    ends = [estimate(network(), compressed(figure(ratio))).totals.latency_s for ratio in (4.0, 1.0)]
    assert found is not None
    assert [found.low, found.high] == pytest.approx([end.value for end in ends if end is not None])


def test_compressed_weights_leave_room_for_more_of_them() -> None:
    graph, plain = network(), with_local(1, None).target
    kept = []
    for ratio in (1.0, 2.0, 8.0):
        coded = replace(plain, compression=Compression(figure(ratio)))
        stores = Stores(graph, coded, resident_bytes=100 * KB)
        kept.append(sum(stores.of(op, graph) == RESIDENT for op in graph.ops))
    assert kept == [2, 2, 5]  # 64 and 32 KB; halved, the third with its 128 KB does not fit beside them either


FILE = """
schema = "opscope.target/1"
extends = "stm32n6"
name = "mine"
"""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[compression]\nratio = { value = 0, source = "sheet" }', "expected a number above 0"),
        ('[compression]\nrate = { value = 2, source = "sheet" }', "is not a key of the schema"),
        ('[[memories]]\nname = "NPU RAM"\nresident_share = { value = 1.5, source = "sheet" }', "of at most 1"),
    ],
)
def test_figures_that_mean_nothing_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE + text + "\n")
    with pytest.raises(TargetError, match=problem):
        catalogue.load(str(tmp_path / "mine.toml"))


def test_a_target_file_can_say_all_of_it(tmp_path: Path) -> None:
    text = """
[compression]
ratio = { value = 1.5, low = 1.2, high = 2, source = "sheet" }
decoded_bytes_per_cycle = { value = 8, source = "sheet" }

[[memories]]
name = "NPU RAM"
resident_share = { value = 0.5, source = "sheet" }

[[memories]]
name = "second flash"
scope = "device"
holds = ["constants"]
bytes = { value = 1e6, source = "sheet" }
bytes_per_second = { value = 1e8, source = "sheet" }
"""
    (tmp_path / "mine.toml").write_text(FILE + text)
    found: Target = catalogue.load(str(tmp_path / "mine.toml"))
    assert [each.name for each in found.stores] == ["flash", "second flash"]
    assert found.compression is not None
    assert found.compression.ratio.largest == 2
