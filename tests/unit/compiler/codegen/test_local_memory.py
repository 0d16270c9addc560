"""Addresses in local memory."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.compiler.codegen.local_memory import ALIGNMENT, LocalMemory


def everybody(commands: Iterable[int]) -> list[int]:
    return sorted(set(commands))


def memory(capacity: int) -> LocalMemory:
    return LocalMemory(capacity, everybody)


def test_a_place_that_was_freed_names_those_who_used_it() -> None:
    local = memory(1024)
    assert local.allocate(1024) == (0, ())
    local.release(0, (7, 9))
    assert local.allocate(100) == (0, (7, 9))
    assert local.allocate(100) == (ALIGNMENT, (7, 9))


def test_neighbours_that_are_free_become_one_and_keep_all_users() -> None:
    local = memory(256)
    first, second = local.allocate(128), local.allocate(128)
    assert first is not None
    assert second is not None
    local.release(first[0], (1,))
    local.release(second[0], (2,))
    assert local.allocate(256) == (0, (1, 2))


def test_the_place_that_was_left_longest_ago_is_taken() -> None:
    local = memory(4 * 128)
    for _ in range(4):
        local.allocate(128)
    local.release(0, (9,))
    local.release(256, (3,))
    assert local.allocate(128) == (256, (3,))


def test_a_block_across_two_gaps_waits_for_what_it_touches_alone() -> None:
    local = memory(4 * 128)
    for _ in range(4):
        local.allocate(128)
    for address, user in ((0, 1), (128, 2), (256, 3)):
        local.release(address, (user,))
    assert local.allocate(256) == (0, (1, 2))
    assert local.allocate(128) == (256, (3,))


def test_a_block_leaves_one_free_range_and_no_two() -> None:
    """What was left longest ago lies between others that are free: the end that is older is taken."""
    local = memory(5 * 128)
    for _ in range(5):
        local.allocate(128)
    for address, user in ((0, 9), (128, 3), (256, 5)):
        local.release(address, (user,))
    assert local.allocate(128) == (256, (5,))
    assert local.allocate(256) == (0, (3, 9))


def test_what_does_not_fit_gets_no_place() -> None:
    local = memory(256)
    assert local.allocate(257) is None
    assert local.allocate(200) == (0, ())
    assert local.allocate(1) is None
    assert (local.used, local.peak) == (256, 256)


def test_giving_back_what_was_not_given_out_is_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"^nothing is allocated at 0x80$"):
        memory(256).release(128, ())


@given(st.lists(st.one_of(st.integers(1, 900), st.none()), max_size=40))
def test_places_never_overlap_and_users_are_never_forgotten(steps: list[int | None]) -> None:
    """None frees the oldest place; a byte that was used names its last user to whoever gets it."""
    local, capacity = memory(4096), 4096
    taken: dict[int, int] = {}
    last_user = [-1] * capacity
    for number, size in enumerate(steps):
        if size is None:
            if taken:
                address = next(iter(taken))
                length = taken.pop(address)
                last_user[address : address + length] = [number] * length
                local.release(address, (number,))
            continue
        found = local.allocate(size)
        if found is not None:
            address, guards = found
            length = -(-size // ALIGNMENT) * ALIGNMENT
            assert all(address >= a + n or address + length <= a for a, n in taken.items())
            assert address + length <= capacity
            assert {user for user in last_user[address : address + length] if user >= 0} <= set(guards)
            taken[address] = length
    assert local.used == sum(taken.values())
