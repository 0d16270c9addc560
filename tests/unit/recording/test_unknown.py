"""Ops of unknown cost: how they are named, and what they leave of the totals."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from opscope.core.provenance import Provenance
from opscope.program.program import OpInfo
from opscope.recording.build import to_run, withheld
from opscope.recording.folder_reader import read_columns, read_run
from opscope.recording.recording import OpRecord, Recording, empty_trace
from opscope.recording.run import Run
from opscope.recording.summary import Energy, Latency, OpTotal, Summary
from opscope.recording.unknown import UnknownOp, in_a_line, named, unknown_of
from support.recording.run_build import write_run

PROVENANCE = Provenance.SIMULATED
KNOWN, ODD = OpInfo("a", "Conv", "conv", ""), OpInfo("b", "Odd", "custom", "", "nobody knows")


def total(name: str, number: int, ns: int) -> OpTotal:
    return OpTotal(name, "T", ns, ns, 0, 0.5, 1, 8, 8, 4, "HVX", "local", op=number)


def summary(latency: Latency) -> Summary:
    rows = (total("a", 0, 60), total("b", 1, 40))
    energy = Energy(1.0, None, None, PROVENANCE)
    return Summary(latency, 10.0, 1, ops=rows, energy=energy, samples_ns=(90, 100))


@pytest.mark.parametrize(
    ("latency", "least"),
    [
        (Latency(100, None, None, PROVENANCE), 100),
        (Latency(100, 90, 120, PROVENANCE), 90),
        (Latency(None, 90, None, PROVENANCE), 90),
        (Latency(None, None, None, PROVENANCE), None),
    ],
)
def test_a_total_with_an_unknown_part_is_at_least_what_the_rest_takes(latency: Latency, least: int | None) -> None:
    found = withheld(summary(latency), (KNOWN, ODD))
    assert found.latency == Latency(None, least, None, PROVENANCE)
    assert (found.throughput_per_s, found.energy, found.samples_ns) == (None, None, ())
    assert found.ops[0] == total("a", 0, 60)
    odd = found.ops[1]
    assert (odd.name, odd.wall_ns, odd.busy_ns, odd.share, odd.macs) == ("b", None, None, None, None)
    assert (odd.reason, odd.engine, odd.op) == ("nobody knows", "HVX", 1)
    assert withheld(found, (KNOWN, ODD)) == found


def test_totals_of_known_ops_are_as_they_are() -> None:
    before = summary(Latency(100, 90, 120, PROVENANCE))
    assert withheld(before, (KNOWN, KNOWN)) is before


def test_ops_are_named_by_reason_and_no_more_than_a_few() -> None:
    ops = [UnknownOp(name, "T", "shape" if name in "ace" else "custom") for name in "abcdefg"]
    assert list(named(ops[:3])) == ["a (T), c (T): shape", "b (T): custom"]
    assert list(named(ops)) == ["a (T), c (T), e (T): shape", "b (T), d (T): custom", "and 2 more"]
    assert in_a_line(ops[:1], 4) == "1 of 4 ops has no known cost: a (T): shape"
    assert in_a_line((), 4) == ""
    assert unknown_of((KNOWN, ODD)) == (UnknownOp("b", "Odd", "nobody knows"),)


def run_of(*ops: OpRecord) -> Run:
    latency = Latency(100, None, None, PROVENANCE)
    recording = Recording("test", PROVENANCE, empty_trace(PROVENANCE), ops=ops, latency=latency, batch=2)
    return to_run(recording, command=(), created="2026-01-01T00:00:00+00:00", sha256=None)


def test_whatever_the_source_a_run_with_such_an_op_is_open_above(tmp_path: Path) -> None:
    run = run_of(OpRecord("a", time_ns=60), OpRecord("b", "Odd", unknown="nobody knows"))
    assert run.summary.latency == Latency(None, 100, None, PROVENANCE)
    assert run.summary.throughput_per_s is None
    write_run(run, tmp_path / "run")
    assert read_run(tmp_path / "run").unknown_ops == run.unknown_ops == (UnknownOp("b", "Odd", "nobody knows"),)
    assert run_of(OpRecord("a", time_ns=60)).summary.throughput_per_s == pytest.approx(2e7)


def test_a_folder_from_before_says_nothing_of_unknown_costs(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_run(run_of(OpRecord("a", time_ns=60)), folder)
    table = pq.ParquetFile(folder / "ops.parquet").read()
    pq.write_table(table.drop_columns(["unknown"]), folder / "ops.parquet")
    assert read_run(folder).ops == read_columns(folder)[1] == (OpInfo("a", "", "", ""),)
