"""The emitter leaves out dependencies that others imply, and none that they do not."""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.compiler.codegen.emit import CommandSpec, Emitter
from opscope.core.errors import UsageError
from opscope.core.meaning import Does
from opscope.program.program import NO_OP, NO_ROUTE, TRUE, Detail

CORES, GROUPS, ROUTES = 2, 2, 2


def order(core: int, group: int, route: int = NO_ROUTE) -> CommandSpec:
    return CommandSpec(
        core, group, "kind", Does.COMPUTE, NO_OP, 0, 5.0, route=route, moved_bytes=10.0 if route != NO_ROUTE else 0.0
    )


def kept_dependencies(emitter: Emitter) -> list[list[tuple[int, int]]]:
    """Of every command, in the order of emission: what it waits for, with the kind of dependency."""
    pairs = iter(zip(emitter.sources, emitter.kinds_of_dependency, strict=True))
    return [list(islice(pairs, count)) for count in emitter.dependency_counts]


COMMANDS = st.tuples(
    st.integers(0, CORES - 1),
    st.integers(0, GROUPS - 1),
    st.integers(NO_ROUTE, ROUTES - 1),
    st.lists(st.integers(0, 30), max_size=4),
)


def done_before(wait_for: list[list[int]], lanes: list[int], routes: list[int]) -> list[set[int]]:
    """For every command, all that are surely done when it starts; by hand, from whole lists of dependencies."""
    known: list[set[int]] = []
    for number, sources in enumerate(wait_for):
        before: set[int] = set()
        earlier = [c for c in range(number) if lanes[c] == lanes[number]]
        if earlier:
            before |= known[earlier[-1]]
            if routes[earlier[-1]] == NO_ROUTE:
                before.add(earlier[-1])
        for source in sources:
            same = [c for c in range(source + 1) if (lanes[c], routes[c]) == (lanes[source], routes[source])]
            before |= known[source] | set(same)  # of one lane and route, all are done in order
        known.append(before)
    return known


@given(st.lists(COMMANDS, max_size=25))
def test_leaving_out_dependencies_changes_no_order(drawn: list[tuple[int, int, int, list[int]]]) -> None:
    emitter = Emitter(cores=CORES, groups=GROUPS)
    asked: list[list[int]] = []
    for number, (core, group, route, sources) in enumerate(drawn):
        needs = sorted({source % number for source in sources}) if number else []
        asked.append(needs)
        assert emitter.emit(order(core, group, route), needs) == number
    lanes = [core * GROUPS + group for core, group, _, _ in drawn]
    routes = [route for _, _, route, _ in drawn]
    kept = [[source for source, _ in pairs] for pairs in kept_dependencies(emitter)]
    assert all(set(few) <= set(many) for few, many in zip(kept, asked, strict=True))
    full, short = done_before(asked, lanes, routes), done_before(kept, lanes, routes)
    for many, few, needs in zip(full, short, asked, strict=True):
        assert few == many
        assert set(needs) <= few


def test_what_was_waited_for_on_a_lane_is_not_waited_for_again() -> None:
    emitter = Emitter(cores=1, groups=2)
    emitter.emit(order(0, 1, 0))
    emitter.emit(order(0, 1, 0))
    emitter.emit(order(0, 0), [1])
    emitter.emit(order(0, 0), [0, 1, 2])
    assert kept_dependencies(emitter) == [[], [], [(1, TRUE)], []]


def test_however_many_routes_there_are_none_is_taken_for_the_lane_behind() -> None:
    for route in range(127):
        emitter = Emitter(cores=2, groups=1)
        emitter.emit(order(0, 0, route))
        emitter.emit(order(1, 0), [0])
        assert kept_dependencies(emitter) == [[], [(0, TRUE)]]


def test_the_latest_of_each_stream_stand_for_all() -> None:
    emitter = Emitter(cores=1, groups=2)
    for route in (NO_ROUTE, 0, NO_ROUTE, 0, 1):
        emitter.emit(order(0, 1, route))
    assert emitter.latest(range(5)) == [2, 3, 4]


def test_columns_are_sorted_by_lane_and_dependencies_follow() -> None:
    emitter = Emitter(cores=2, groups=1)
    emitter.emit(order(1, 0))
    emitter.emit(order(0, 0), [0])
    emitter.emit(order(1, 0), [1])
    columns = emitter.columns()
    assert columns.commands["core"].tolist() == [0, 1, 1]
    assert columns.commands["ordinal"].tolist() == [0, 0, 1]
    assert columns.offsets.tolist() == [0, 1, 1, 2]
    assert columns.sources.tolist() == [1, 0]


def test_nothing_emitted_is_an_empty_table() -> None:
    columns = Emitter(cores=1, groups=1).columns()
    assert len(columns.commands) == 0
    assert columns.offsets.tolist() == [0]
    assert columns.sources.dtype == np.uint32


def test_a_command_that_takes_longer_than_a_program_can_say_is_refused_by_name() -> None:
    emitter = Emitter(cores=1, groups=1)
    detail = emitter.detail(lambda: Detail("conv/__0", "", "", "", (), ""))
    emitter.emit(CommandSpec(0, 0, "conv", Does.COMPUTE, 0, detail, 2.0**32))
    with pytest.raises(UsageError, match=r"^conv/__0: cycles of one command is 4294967296; expected at most "):
        emitter.columns()


def test_details_that_are_alike_are_one() -> None:
    emitter = Emitter(cores=1, groups=1)
    for name in ("conv/__0", "conv/__1", "conv/__0"):
        number = emitter.detail(partial(Detail, name, "", "", "", (), ""))
        emitter.emit(CommandSpec(0, 0, "conv", Does.COMPUTE, 0, number, 1.0))
    columns = emitter.named_columns()
    assert [detail.name for detail in columns.details] == ["conv/__0", "conv/__1"]
    assert columns.commands["detail"].tolist() == columns.detail_of.tolist() == [0, 1, 0]
