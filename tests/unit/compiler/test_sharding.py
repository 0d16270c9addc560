"""Boxes of lanes, and what they send each other, by hand."""

from __future__ import annotations

import pytest

from opscope.compiler.sharding import (
    REDUCED,
    Cut,
    Exchange,
    Moved,
    Sharding,
    exchange,
    moved_by_exchange,
    sharding,
    whole,
)


def on(lanes: int, *cuts: Cut, devices: tuple[int, ...] = (0,), cores: int = 0) -> Sharding:
    cores = cores or lanes
    return sharding(cuts, lanes, devices, cores, cores)


def test_two_cuts_form_a_grid() -> None:
    """The example in the module."""
    grid = on(6, Cut(0, 2, 2, inner=3), Cut(1, 3, 3))
    rows = [(0.0, 0.5)] * 3 + [(0.5, 1.0)] * 3
    channels = [(0.0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1.0)] * 2
    assert grid.boxes == {
        lane: ((0, *of_rows), (1, *of_channels))
        for lane, (of_rows, of_channels) in enumerate(zip(rows, channels, strict=True))
    }
    assert grid.share(4) == pytest.approx(1 / 6)


def test_an_operand_without_the_second_cut_is_the_same_for_a_row_of_the_grid() -> None:
    grid = on(6, Cut(0, 2, 2, inner=3), Cut(1, 3, 3))
    rows = grid.only(grid.cuts[:1])
    assert [rows.boxes[lane] for lane in range(6)] == [((0, 0.0, 0.5),)] * 3 + [((0, 0.5, 1.0),)] * 3


def test_parts_are_whole_units() -> None:
    assert [high - low for low, high in map(Cut(0, 10, 4).interval, range(4))] == pytest.approx([0.2, 0.3, 0.2, 0.3])
    assert Cut(0, 10, 4).largest == pytest.approx(0.3)


def test_lanes_without_a_part_are_left_out() -> None:
    assert on(4, Cut(0, 3, 4)).lanes() == (1, 2, 3)


def test_a_halo_ends_at_the_edge() -> None:
    cut = Cut(1, 4, 4, before=1 / 8, after=1 / 4)
    assert [cut.interval(place) for place in range(4)] == [(0.0, 0.5), (0.125, 0.75), (0.375, 1.0), (0.625, 1.0)]


def test_sums_are_whole_when_they_have_been_added_up() -> None:
    split = on(4, Cut(0, 2, 2, inner=2), Cut(REDUCED, 8, 2))
    assert [split.share(lane) for lane in range(4)] == [0.25] * 4
    assert split.made.boxes == on(4, Cut(0, 2, 2, inner=2)).boxes


def test_equal_shardings_are_one() -> None:
    assert on(4, Cut(0, 8, 4)) is on(4, Cut(0, 8, 4))


# ---- exchanges ------------------------------------------------------------------------------------------------------


def test_a_gather_sends_every_part_once() -> None:
    held, needed = on(4, Cut(0, 4, 4)), on(4)
    others = {lane: tuple(other for other in range(4) if other != lane) for lane in range(4)}
    assert exchange(held, needed) == Exchange(dict.fromkeys(range(4), 0.25), {}, others)
    assert moved_by_exchange(held, needed) == Moved(bus=1.0, sender=0.25)


def test_columns_instead_of_rows_send_all_but_what_stays() -> None:
    """Each of four lanes has a sixteenth of what each needs; its own stays where it is."""
    held, needed = on(4, Cut(0, 4, 4)), on(4, Cut(1, 4, 4))
    assert exchange(held, needed).sent == pytest.approx(dict.fromkeys(range(4), 3 / 16))
    assert moved_by_exchange(held, needed).bus == pytest.approx(12 / 16)


def test_a_halo_goes_to_the_neighbours() -> None:
    held, needed = on(3, Cut(1, 3, 3)), on(3, Cut(1, 3, 3, before=1 / 9, after=1 / 9))
    found = exchange(held, needed)
    assert found.sources == {0: (1,), 1: (0, 2), 2: (1,)}
    assert found.sent == pytest.approx({0: 1 / 9, 1: 2 / 9, 2: 1 / 9})


def test_who_has_all_that_it_needs_receives_nothing() -> None:
    held, needed = on(4), on(4, Cut(0, 4, 4))
    assert exchange(held, needed) == Exchange({}, {}, {})
    assert not moved_by_exchange(held, needed)


def test_another_device_gets_what_it_needs_once_and_hands_it_around_itself() -> None:
    held = whole((0,), 2, 2)
    found = exchange(held, whole((0, 1), 2, 2))
    assert (found.sent, sum(found.linked.values())) == ({}, 1.0)
    assert set(found.sources) == {2, 3}
    assert moved_by_exchange(held, whole((0, 1), 2, 2)).link == 1.0


def test_halos_that_overlap_cross_a_link_once() -> None:
    held, needed = on(1), on(2, Cut(0, 2, 2, after=0.5), devices=(1,), cores=2)
    held = sharding((), 1, (0,), 2, 2)
    assert exchange(held, needed).linked == {0: 1.0}
    assert moved_by_exchange(held, needed).link == 1.0


def test_extents_that_are_cut_at_the_same_places_are_laid_out_alike() -> None:
    """768 channels in 8 parts are laid out as 3072 in 8 are; in 7, some of them have a channel more than others."""
    assert on(8, Cut(1, 768, 8)).layout is on(8, Cut(1, 3072, 8)).layout
    assert on(7, Cut(1, 768, 7)).layout is not on(7, Cut(1, 3072, 7)).layout
    assert not moved_by_exchange(on(8, Cut(1, 768, 8)), on(8, Cut(1, 3072, 8)))
