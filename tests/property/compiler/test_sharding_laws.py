"""What lanes send each other, on random shardings: the fast price against the obvious way."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.compiler.sharding import Box, Cut, Sharding, exchange, moved_by_exchange, sharding

CLOSE = 1e-6


@st.composite
def shardings(draw: st.DrawFn, devices: int, cores: int, *, halo: bool = False, again: bool = True) -> Sharding:
    """Any cuts of up to two axes over some of the lanes; `again`: lanes may have the same parts as others."""
    chosen = draw(st.sampled_from([tuple(range(devices)), (0,), (devices - 1,)]))
    lanes, places = len(chosen) * cores, 1
    cuts = []
    for axis in draw(st.lists(st.integers(0, 2), max_size=2, unique=True)):
        extent = draw(st.sampled_from([2, 3, 4, 7, 8, 10]))
        parts = draw(st.integers(1, lanes // places))
        beyond = draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) if halo else (0, 0)
        cuts.append(Cut(axis, extent, parts, places, beyond[0] / extent, beyond[1] / extent))
        places *= parts
    if again:
        places *= draw(st.integers(1, lanes // places))
    return sharding(tuple(cuts), places, chosen, cores, cores)


@st.composite
def pairs(draw: st.DrawFn, *, halo: bool = False, again: bool = True) -> tuple[Sharding, Sharding]:
    devices, cores = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 2, 3, 7]))
    held = draw(shardings(devices, cores, again=again))
    return held, draw(shardings(devices, cores, halo=halo))


def volume(*boxes: Box) -> float:
    """Of what boxes have in common."""
    limits: dict[int, tuple[float, float]] = {}
    for box in boxes:
        for axis, low, high in box:
            own = limits.get(axis, (0.0, 1.0))
            limits[axis] = max(own[0], low), min(own[1], high)
    return prod(max(0.0, high - low) for low, high in limits.values())


def by_device(shares: dict[int, float], cores: int) -> float:
    """The largest sum of a device."""
    sums: dict[int, float] = {}
    for lane, share in shares.items():
        sums[lane // cores] = sums.get(lane // cores, 0.0) + share
    return max(sums.values(), default=0.0)


@given(pairs(halo=True))
def test_what_a_lane_has_and_what_it_receives_is_all_that_it_needs(pair: tuple[Sharding, Sharding]) -> None:
    held, needed = pair
    found = exchange(held, needed)
    for lane, wanted in needed.boxes.items():
        lanes = (lane, *found.sources.get(lane, ()))
        boxes = {held.boxes[other] for other in lanes if other in held.boxes}
        assert sum(volume(box, wanted) for box in boxes) == pytest.approx(volume(wanted))
    assert {s for sources in found.sources.values() for s in sources} == {*found.sent, *found.linked}


@given(pairs(halo=True))
def test_nothing_moves_where_the_price_says_so_and_only_there(pair: tuple[Sharding, Sharding]) -> None:
    found = exchange(*pair)
    assert bool(found.sent or found.linked) == bool(moved_by_exchange(*pair))


@given(pairs(again=False))
def test_the_price_is_of_what_is_moved(pair: tuple[Sharding, Sharding]) -> None:
    held, found, moved = pair[0], exchange(*pair), moved_by_exchange(*pair)
    assert moved.bus == pytest.approx(by_device(found.sent, held.of_cores))
    assert moved.sender == pytest.approx(max(found.sent.values(), default=0.0))
    assert moved.link == pytest.approx(by_device(found.linked, held.of_cores))


@given(pairs(halo=True))
def test_where_halos_overlap_or_senders_take_turns_the_price_is_no_less(pair: tuple[Sharding, Sharding]) -> None:
    held, found, moved = pair[0], exchange(*pair), moved_by_exchange(*pair)
    assert moved.sender >= max(found.sent.values(), default=0.0) - CLOSE
    assert moved.link >= by_device(found.linked, held.of_cores) - CLOSE


@given(pairs(halo=True))
def test_nobody_sends_more_than_it_has(pair: tuple[Sharding, Sharding]) -> None:
    held, found = pair[0], exchange(*pair)
    devices = 1 + max(pair[1].devices)
    assert all(share <= held.share(lane) + CLOSE for lane, share in found.sent.items())
    assert all(share <= held.share(lane) * devices + CLOSE for lane, share in found.linked.items())
