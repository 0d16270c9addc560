"""Figures of Hexagon parts: whole, ordered, with a source."""

from __future__ import annotations

import pytest

from opscope.machine.target import Figure
from opscope.plugins.qnn.hexagon import MB, Hexagon, computed_in, hexagon_of, least, product
from opscope.plugins.qnn.socs import SOCS, Soc, find_soc


def _figures(hexagon: Hexagon) -> list[Figure]:
    fixed = (hexagon.core_hz, hexagon.hmx_hz, hexagon.hvx_threads, hexagon.hvx_bytes_per_cycle)
    memory = (hexagon.vtcm_bytes_per_cycle, hexagon.ddr_bytes_per_s, hexagon.ddr_efficiency, hexagon.way_bytes_per_s)
    return [*fixed, *memory, *hexagon.macs_per_cycle.values()]


@pytest.mark.parametrize("soc", SOCS, ids=lambda soc: soc.label)
def test_every_part_has_figures_with_a_source_that_the_file_tells(soc: Soc) -> None:
    hexagon = hexagon_of(soc)
    assert {"i8", "i16"} <= set(hexagon.macs_per_cycle)
    for figure in _figures(hexagon):
        assert 0 < figure.smallest <= figure.value <= figure.largest
        assert len(hexagon.sources[figure.source]) > 20


def test_what_a_part_does_not_say_comes_from_its_version_and_size() -> None:
    x_elite = hexagon_of(find_soc("Snapdragon X Elite"))
    assert x_elite.core_hz.value == pytest.approx(1.373e9)  # its own
    assert x_elite.macs_per_cycle["i8"].value == 16384  # of v73 with 8 MB
    assert x_elite.hvx_bytes_per_cycle.value == 128  # of all


def test_published_tops_come_out() -> None:
    published = {"SC8380XP": 45, "93": 12, "66": 48, "82": 40, "86": 24, "78": 6, "SM8750": 77, "88": 80, "SW6100": 12}
    for name, tops in published.items():
        rate = hexagon_of(find_soc(name)).macs_per_s("i8")
        assert rate is not None
        assert 2 * rate.value / 1e12 == pytest.approx(tops, rel=0.01)


def test_limits_are_those_of_the_data_type_and_of_the_slower_way_to_memory() -> None:
    sa8255 = hexagon_of(find_soc("SA8255"))
    assert sa8255.limits("i8") == {
        "macs_per_s": pytest.approx(16384 * 1497.6e6),
        "outer_bytes_per_s": pytest.approx(0.9 * 51.1488e9),  # memory is slower than the way to it
        "vector_bytes_per_s": pytest.approx(4 * 128 * 1497.6e6),
    }
    assert sa8255.limits("f16")["macs_per_s"] == pytest.approx(4096 * 1497.6e6)
    assert hexagon_of(find_soc("AIC100")).outer_bytes_per_s.value == 32e9  # the way is slower than its memory


def test_a_type_that_does_not_run_has_no_limit() -> None:
    assert "macs_per_s" not in hexagon_of(find_soc("SAR2230P")).limits("f16")
    assert "macs_per_s" not in hexagon_of(find_soc("SA8255")).limits("")


def test_bounds_are_at_the_fast_end_and_per_cycle_of_the_core() -> None:
    part = hexagon_of(find_soc("SA8797"))
    bounds = part.bounds(unit="HMX 1", vtcm_bytes=16 * MB)
    assert bounds.memories[0].capacity_bytes == 16 * MB
    assert bounds.units[0].rate_of("i8") == pytest.approx(32768 * 1248 / 1708.8)


def test_ranges_of_products_and_of_the_slower_way() -> None:
    one, other = Figure(2, "a", 1, 4), Figure(10, "b")
    assert product(one, other) == Figure(20, "a, b", 10, 40)
    assert least(Figure(5, "a", 1, 9), Figure(6, "b", 4, 7)) == Figure(5, "a", 1, 7)


def test_the_data_type_of_most_ops_counts() -> None:
    assert computed_in({"QUInt16": 3, "QUInt8": 2, "QInt8": 2, "Int32": 50}) == "i8"
    assert computed_in({"Float16": 1}) == "f16"
    assert not computed_in({"Int32": 4})
