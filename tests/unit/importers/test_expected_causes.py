"""What a measured job is bound by, as the estimate of the same program has it."""

from __future__ import annotations

import numpy as np
import pytest

from opscope.core.meaning import Does
from opscope.core.provenance import Provenance
from opscope.importers.column_trace import SpanColumns, column_trace
from opscope.importers.expected_causes import PARTS, divide, expected_shares
from opscope.recording.trace import Lane, SpanKind, Trace

DMA, SLICE = 0, 1


def modelled(*rows: tuple[int, int, int, int]) -> tuple[Trace, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Rows of lane, start, end and measured op; a trace starts at its first span."""
    lane, start, end, op = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    columns = SpanColumns(
        lane,
        lane,
        start,
        end,
        kind=np.where(lane == DMA, SpanKind.TRANSFER, SpanKind.OP).astype(np.int64),
        does=np.where(lane == DMA, Does.MOVE, Does.COMPUTE).astype(np.int64),
    )
    lanes = (Lane(0, 0, "DMA In"), Lane(0, 0, "Slice 0"))
    return column_trace(columns, lanes, ("dma", "slice"), provenance=Provenance.ESTIMATED), op


def shares(found: np.ndarray[tuple[int, int], np.dtype[np.float64]], op: int) -> dict[Does, float]:
    return {part: share for part, share in zip(PARTS, found[op].tolist(), strict=True) if share}


def test_transfers_alone_and_engines_alone_count_as_what_they_are() -> None:
    trace, op = modelled((DMA, 0, 60, 0), (SLICE, 60, 90, 0), (DMA, 90, 100, 0))
    assert shares(expected_shares(trace, op, 1), 0) == pytest.approx({Does.MOVE: 0.7, Does.COMPUTE: 0.3})


def test_where_both_work_the_longer_one_decides() -> None:
    trace, op = modelled((DMA, 0, 100, 0), (SLICE, 20, 50, 0))
    assert shares(expected_shares(trace, op, 1), 0) == {Does.MOVE: 1.0}
    trace, op = modelled((DMA, 0, 30, 0), (SLICE, 10, 100, 0))
    assert shares(expected_shares(trace, op, 1), 0) == pytest.approx({Does.MOVE: 0.1, Does.COMPUTE: 0.9})


def test_what_is_read_ahead_for_the_next_job_falls_into_this_one() -> None:
    trace, op = modelled((SLICE, 0, 100, 0), (DMA, 0, 100, 1), (SLICE, 100, 150, 1))
    found = expected_shares(trace, op, 2)
    assert shares(found, 1) == {Does.COMPUTE: 1.0}  # its transfer is done when the first job ends
    assert sum(shares(found, 0).values()) == 1.0


def test_a_gap_is_nobodys() -> None:
    trace, op = modelled((DMA, 0, 40, 0), (SLICE, 60, 100, 0))
    assert shares(expected_shares(trace, op, 1), 0)[Does.MIXED] == pytest.approx(0.2)


def jobs(*rows: tuple[int, int, int], does: Does = Does.MIXED) -> Trace:
    """Rows of start, end and op."""
    start, end, op = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    zero = np.zeros(len(rows), np.int64)
    columns = SpanColumns(zero, zero, start, end, op, does=int(does))
    return column_trace(columns, (Lane(0, 0, "jobs"),), ("job",), provenance=Provenance.MEASURED)


def test_a_measured_job_is_divided_as_its_estimate_and_keeps_its_time() -> None:
    trace, op = modelled((DMA, 0, 60, 0), (SLICE, 60, 100, 0))
    measured = jobs((0, 1000, 0), (1000, 1500, 1), (1500, 1700, 0))
    found = divide(measured, expected_shares(trace, op, 2))
    rows = [(int(row["start_ns"]), int(row["end_ns"]), int(row["op"]), Does(row["does"])) for row in found.spans]
    assert rows == [
        (0, 600, 0, Does.MOVE),
        (600, 1000, 0, Does.COMPUTE),
        (1000, 1500, 1, Does.MIXED),  # which no estimate tells of
        (1500, 1620, 0, Does.MOVE),
        (1620, 1700, 0, Does.COMPUTE),
    ]


def test_what_tells_by_itself_what_it_does_is_left_alone() -> None:
    trace, op = modelled((DMA, 0, 60, 0), (SLICE, 60, 100, 0))
    measured = jobs((0, 1000, 0), does=Does.COMPUTE)
    assert divide(measured, expected_shares(trace, op, 1)) is measured
    nothing = jobs((0, 0, 0))  # 0 us: shorter than the clock tells
    (row,) = divide(nothing, expected_shares(trace, op, 1)).spans
    assert (int(row["start_ns"]), int(row["end_ns"])) == (0, 0)
