from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.plugins.torq.importers.host import jobs_of
from opscope.plugins.torq.importers.host_log import read_actions
from support.plugins.torq_samples import FUSED, imported, spans, written

H12 = "actionIndex, elapsed_time(us), timestamp(us), event, location\n"
H3 = "dispatch_name,invocation_id,action_id,timestamp_us,event\n"


def test_the_current_form_is_read_whole(tmp_path: Path) -> None:
    rows = [
        ("net_dispatch_0", 0, -1, 5000, "INIT_BEGIN"),
        ("net_dispatch_0", 0, -1, 5020, "INIT_HW_OPEN_BEGIN"),
        ("net_dispatch_0", 0, -1, 5080, "INIT_HW_OPEN_END"),
        ("net_dispatch_0", 0, -1, 5090, "INIT_END"),
        ("__HAL_QUEUE_EXECUTE__", 1, -1, 5300, "HAL_CALL_BEGIN"),
        ("net_dispatch_0", 2, -1, 5310, "DISPATCH_BEGIN"),
        ("net_dispatch_0", 2, 0, 5312, "NSS_START_BEGIN"),
        ("net_dispatch_0", 2, 0, 5318, "NSS_START_END"),
        ("net_dispatch_0", 2, 1, 5318, "NSS_WAIT_BEGIN"),
        ("net_dispatch_0", 2, 1, 5550, "NSS_WAIT_END"),
        ("net_dispatch_0", 2, -1, 5560, "DISPATCH_END"),
        ("__HAL_QUEUE_EXECUTE__", 1, -1, 5575, "HAL_CALL_END"),
    ]
    found = imported(tmp_path, H3 + "".join(",".join(map(str, row)) + "\n" for row in rows))
    assert found.maker == "torq-host"
    assert spans(found) == [
        ("Init", "INIT", 0, 90_000),
        ("Init 2", "INIT_HW_OPEN", 20_000, 80_000),
        ("HAL", "HAL_CALL", 300_000, 575_000),
        ("Dispatch", "DISPATCH", 310_000, 560_000),
        ("NSS Programs", "NSS_START", 312_000, 318_000),
        ("NSS Programs", "NSS_WAIT", 318_000, 550_000),
        ("NSS Jobs", "job", 312_000, 550_000),
    ]
    assert [(op.name, op.time_ns, op.engines) for op in found.ops] == [("net_dispatch_0 action 0", 238_000, ("NPU",))]


@pytest.mark.parametrize(("form", "location"), [("h1", FUSED), ("h2", f'"{FUSED}"')])
def test_the_two_earlier_forms_differ_in_their_quotes_alone(form: str, location: str, tmp_path: Path) -> None:
    rows = [(0, "NSS_START"), (2, "NSS_START_END"), (2, "NSS_WAIT_START"), (90, "NSS_WAIT_END")]
    text = H12 + "".join(f"{n // 2},{time},{7000 + time},{event},{location}\n" for n, (time, event) in enumerate(rows))
    found = imported(tmp_path, text)
    assert found.maker == f"torq-host-{form}"
    assert spans(found) == [
        ("NSS Programs", "NSS_START", 0, 2_000),
        ("NSS Programs", "NSS_WAIT", 2_000, 90_000),
        ("NSS Jobs", "job", 0, 90_000),
    ]
    assert [(op.name, op.time_ns) for op in found.ops] == [(FUSED[4:-1], 90_000)]


def test_host_programs_and_copies_are_ops_of_the_host(tmp_path: Path) -> None:
    text = H12 + "".join(
        f"{n // 2},{n},{n},{event},\n"
        for n, event in enumerate(["HOST_COPY_START", "HOST_COPY_END", "HOST_PROGRAM_START", "HOST_PROGRAM_END"])
    )
    found = imported(tmp_path, text)
    assert [(op.name, op.type, op.engines) for op in found.ops] == [
        ("action 0", "HOST_COPY", ("host",)),
        ("action 1", "HOST_PROGRAM", ("host",)),
    ]


def test_an_event_without_an_end_is_drawn_and_named(tmp_path: Path) -> None:
    text = (
        H3 + "d,0,-1,100,DISPATCH_BEGIN\nd,0,0,110,NSS_START_BEGIN\nd,0,0,120,NSS_START_END\nd,0,1,120,NSS_WAIT_BEGIN\n"
    )
    log = read_actions(written(tmp_path, text), "H3")
    assert log.ended.tolist() == [False, True, False]
    assert log.end_ns.tolist() == [120_000, 120_000, 120_000]
    assert log.notes == (
        "2 events without an end, drawn to the end of what they are part of: line 2: DISPATCH; line 5: NSS_WAIT",
    )


def test_an_end_without_a_begin_is_left_out_and_named(tmp_path: Path) -> None:
    log = read_actions(
        written(tmp_path, H3 + "d,0,0,110,NSS_START_END\nd,0,1,1,ALLOC_BEGIN\nd,0,1,2,ALLOC_END\n"), "H3"
    )
    assert log.types == ("NSS_START", "ALLOC")
    assert log.type.tolist() == [1]
    assert log.notes == ("1 events without a begin, left out: line 2: NSS_START",)


def test_the_same_thing_twice_in_an_invocation_is_two_spans(tmp_path: Path) -> None:
    rows = [(1, "BEGIN"), (2, "END"), (5, "BEGIN"), (9, "END")]
    text = H3 + "".join(f"__HAL__,0,-1,{time},HAL_QUEUE_WAIT_{end}\n" for time, end in rows)
    log = read_actions(written(tmp_path, text), "H3")
    assert list(zip(log.start_ns.tolist(), log.end_ns.tolist(), strict=True)) == [(1_000, 2_000), (5_000, 9_000)]


def test_rows_grouped_by_dispatch_are_paired_as_well(tmp_path: Path) -> None:
    text = H3 + "b,1,0,500,ALLOC_BEGIN\nb,1,0,600,ALLOC_END\na,0,0,100,ALLOC_BEGIN\na,0,0,200,ALLOC_END\n"
    assert spans(imported(tmp_path, text)) == [("Memory", "ALLOC", 400_000, 500_000), ("Memory", "ALLOC", 0, 100_000)]


def test_events_that_are_neither_begin_nor_end_are_counted(tmp_path: Path) -> None:
    log = read_actions(written(tmp_path, H3 + "a,0,0,1,ALLOC_BEGIN\na,0,0,2,ODD\na,0,0,3,ALLOC_END\n"), "H3")
    assert log.notes == ("1 rows could not be read: line 3: neither begin nor end: ODD",)
    assert len(log.type) == 1


def test_truncated_rows_are_counted_and_named_by_line(tmp_path: Path) -> None:
    log = read_actions(written(tmp_path, H3 + "a,0,0,1,ALLOC_BEGIN\na,0,0\na,0,0,3,ALLOC_END\na,0,0,x,ALLOC_END"), "H3")
    assert log.notes == ("2 rows could not be read: line 3: a,0,0; line 5: a,0,0,x,ALLOC_END",)


def test_a_dispatch_name_with_commas_is_kept_whole(tmp_path: Path) -> None:
    log = read_actions(written(tmp_path, H3 + "a,b,0,0,1,ALLOC_BEGIN\na,b,0,0,3,ALLOC_END\n"), "H3")
    assert log.dispatches == ("a,b",)


def test_a_timestamp_that_wrapped_is_put_right(tmp_path: Path) -> None:
    text = H3 + f"a,0,0,{2**31 - 1},ALLOC_BEGIN\na,0,0,{-(2**31) + 4},ALLOC_END\n"
    log = read_actions(written(tmp_path, text), "H3")
    assert (log.end_ns - log.start_ns).tolist() == [5_000]


@pytest.mark.parametrize("form", ["torq-host-h1", "torq-host-h2", "torq-host"])
def test_an_empty_run_leaves_a_file_without_a_header(form: str, tmp_path: Path) -> None:
    found = imported(tmp_path, "", form=form)
    assert not len(found.trace.spans)
    assert any("nothing was run" in note for note in found.notes)


def test_a_header_alone_is_a_run_of_nothing(tmp_path: Path) -> None:
    assert any("nothing was run" in note for note in imported(tmp_path, H3).notes)


def test_a_log_of_another_form_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"line 1: no header of form H3; expected dispatch_name,invocation_id"):
        imported(tmp_path, H12, form="torq-host")


def test_jobs_that_overlap_are_joined_first_with_first(tmp_path: Path) -> None:
    events = [(0, 0, "NSS_START"), (1, 10, "NSS_START"), (2, 20, "NSS_WAIT"), (3, 40, "NSS_WAIT")]
    rows = [
        row
        for action, time, kind in events
        for row in (f"a,0,{action},{time},{kind}_BEGIN", f"a,0,{action},{time + 5},{kind}_END")
    ]
    log = read_actions(
        written(tmp_path, H3 + "\n".join(rows) + "\na,1,0,99,NSS_START_BEGIN\na,1,0,99,NSS_START_END\n"), "H3"
    )
    start, wait = jobs_of(log)
    assert list(zip(log.start_ns[start].tolist(), log.end_ns[wait].tolist(), strict=True)) == [
        (0, 25_000),
        (10_000, 45_000),
    ]


@pytest.mark.parametrize(
    ("field", "number"),
    [(1, 2**31), (1, 10**17), (1, 2**63 - 1), (1, -(2**63)), (2, 2**31), (2, 2**63 - 1), (2, -2)],
)
def test_numbers_that_no_counter_reaches_are_rows_that_cannot_be_read(field: int, number: int, tmp_path: Path) -> None:
    rows = [
        ["d", "0", "0", "5", "NSS_START_BEGIN"],
        ["d", "0", "1", "6", "ALLOC_BEGIN"],
        ["d", "0", "1", "7", "ALLOC_END"],
    ]
    rows[0][field] = str(number)
    found = imported(tmp_path, H3 + "".join(f"{','.join(row)}\n" for row in rows))
    assert len(found.trace.spans) == 1
    assert found.notes[0].startswith("1 rows could not be read: line 2: d,")


def test_the_largest_numbers_take_no_memory_of_their_own(tmp_path: Path) -> None:
    most = 2**31 - 1
    text = f"d,{most},{most},5,NSS_START_BEGIN\nd,0,0,6,ALLOC_BEGIN\nd,{most},-1,9,DISPATCH_BEGIN\n"
    found = imported(tmp_path, H3 + text)
    assert [op.name for op in found.ops] == [f"d action {most}"]
    assert found.notes[0].startswith("3 events without an end")


def log_of(*dispatches: str) -> str:
    """Dispatches of 30 us, 100 us after each other, each with one job."""
    events = (
        (-1, 0, "DISPATCH_BEGIN"),
        (0, 5, "NSS_START_BEGIN"),
        (0, 5, "NSS_START_END"),
        (1, 5, "NSS_WAIT_BEGIN"),
        (1, 25, "NSS_WAIT_END"),
        (-1, 30, "DISPATCH_END"),
    )
    rows = ((name, n, *event) for n, name in enumerate(dispatches) for event in events)
    return H3 + "".join(f"{name},{n},{action},{100 * n + at},{event}\n" for name, n, action, at, event in rows)


def test_dispatches_that_come_in_turn_make_inferences(tmp_path: Path) -> None:
    found = imported(tmp_path, log_of(*"ababab"))
    assert (found.inferences, found.latency_ns) == (3, 130_000)
    assert [(op.name, op.time_ns, op.calls) for op in found.ops] == [
        ("a action 0", 20_000, 1),
        ("b action 0", 20_000, 1),
    ]
    assert "3 inferences: each of 2 dispatches is taken to run once in every one" in found.notes
    jobs = found.trace.spans[found.trace.spans["op"] >= 0]
    assert jobs["inference"].tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("order", ["aab", "abba", "aba"])
def test_dispatches_in_no_such_order_tell_no_inferences(order: str, tmp_path: Path) -> None:
    found = imported(tmp_path, log_of(*order))
    assert (found.inferences, found.latency_ns) == (None, None)


def test_a_log_of_events_that_neither_begin_nor_end_is_an_error_and_not_an_empty_run(tmp_path: Path) -> None:
    words = "no row that can be read; 2 rows could not be read: line 2: neither begin nor end: EVEN, ODD and 1 more"
    with pytest.raises(ImportFileError, match=words):
        read_actions(written(tmp_path, H3 + "a,0,0,1,ODD\na,0,0,2,EVEN\n"), "H3")
