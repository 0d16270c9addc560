"""Sets of moments against Python's own sets, and the laws that the shares of time obey."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.plugins.torq.annotate.overlap import HAL, Busy, Part, UnitClass, join, shares

intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=12)
NAMES = (
    ("DMA_IN", Part.MOVE, "DMA"),
    ("DMA_OUT", Part.MOVE, "DMA"),
    ("CDMA", Part.MOVE, ""),
    ("SLICE_0", Part.COMPUTE, "SLICE"),
    ("SLICE_1", Part.COMPUTE, "SLICE"),
    ("SLICE_2", Part.COMPUTE, "SLICE"),
    ("CSS", Part.COMPUTE, ""),
    ("NSS", Part.SEQUENCE, ""),
    ("HAL", Part.HOST, HAL),
    ("HOST", Part.HOST, "HOST"),
)


def moments(rows: list[tuple[int, int]]) -> set[int]:
    """The slow way: every nanosecond by itself."""
    return {moment for start, end in rows for moment in range(start, end)}


def busy(rows: list[tuple[int, int]]) -> Busy:
    table = np.array(rows, np.int64).reshape(-1, 2)
    return Busy.of(table[:, 0], table[:, 1])


def told(found: Busy) -> set[int]:
    assert (found.end > found.start).all()
    assert (found.start[1:] > found.end[:-1]).all()
    return moments(list(zip(found.start.tolist(), found.end.tolist(), strict=True)))


@given(intervals, intervals)
def test_operations_are_those_of_sets(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    a, b = busy(one), busy(other)
    assert told(a) == moments(one)
    assert told(a | b) == moments(one) | moments(other)
    assert told(a & b) == moments(one) & moments(other)
    assert told(a - b) == moments(one) - moments(other)
    assert a.length == len(moments(one))


@given(intervals, intervals)
def test_inclusion_and_exclusion(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    a, b = busy(one), busy(other)
    assert (a | b).length == a.length + b.length - (a & b).length
    assert a.length == (a - b).length + (a & b).length


@given(st.lists(intervals, max_size=4))
def test_a_join_is_the_union_of_all(parts: list[list[tuple[int, int]]]) -> None:
    assert told(join(busy(rows) for rows in parts)) == set().union(*(moments(rows) for rows in parts))


@given(st.lists(intervals, min_size=len(NAMES), max_size=len(NAMES)))
def test_shares_are_those_of_counting_every_nanosecond(parts: list[list[tuple[int, int]]]) -> None:
    classes = [UnitClass(name, part, busy(rows), group) for (name, part, group), rows in zip(NAMES, parts, strict=True)]
    found = {share.name: share.time_ns for share in shares(classes)}
    sets = {name: moments(rows) for (name, _, _), rows in zip(NAMES, parts, strict=True)}
    moves = sets["DMA_IN"] | sets["DMA_OUT"] | sets["CDMA"]
    slices = sets["SLICE_0"] | sets["SLICE_1"] | sets["SLICE_2"]
    computes, every = slices | sets["CSS"], set().union(*sets.values())
    whole = max(every) + 1 - min(every) if every else 0
    device = moves | computes | sets["NSS"]
    window = device | sets["HOST"]
    npu = (max(window) + 1 - min(window) if window else 0) - len(sets["HOST"] - device)
    assert found == {name: len(members) for name, members in sets.items() if name != "NSS"} | {
        "OVERALL": whole,
        "TOTAL_NPU_OPERATIONS": npu,
        "DMA": len(sets["DMA_IN"] | sets["DMA_OUT"]),
        "DMA_COMBINED": len(moves),
        "SLICE": len(slices),
        "COMPUTE_COMBINED": len(computes),
        "DMA_ONLY": len(moves - computes),
        "COMPUTE_ONLY": len(computes - moves),
        "DMA_COMPUTE_OVERLAP": len(moves & computes),
        "IDLE": whole - len(every),
    }


@given(st.lists(intervals, min_size=len(NAMES), max_size=len(NAMES)))
def test_shares_add_up_and_stay_within_bounds(parts: list[list[tuple[int, int]]]) -> None:
    classes = [UnitClass(name, part, busy(rows), group) for (name, part, group), rows in zip(NAMES, parts, strict=True)]
    found = {share.name: share for share in shares(classes)}
    time = {name: share.time_ns for name, share in found.items()}
    assert time["DMA_ONLY"] + time["DMA_COMPUTE_OVERLAP"] == time["DMA_COMBINED"]
    assert time["COMPUTE_ONLY"] + time["DMA_COMPUTE_OVERLAP"] == time["COMPUTE_COMBINED"]
    assert max(time["DMA_IN"], time["DMA_OUT"]) <= time["DMA"] <= time["DMA_IN"] + time["DMA_OUT"]
    assert all(0 <= ns <= time["OVERALL"] for ns in time.values())
    for share in found.values():
        if time["OVERALL"]:
            assert share.percent is not None
            assert 0 <= share.percent <= 100
        else:
            assert share.percent is None
