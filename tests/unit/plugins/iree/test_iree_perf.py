from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.recording.trace import SpanKind
from support.plugins.torq_samples import imported, spans

SCHEMA = '{"schema_version":15,"record_type":"schema","format":"ireeperf-jsonl"}\n'
EVENT = (
    '{{"record_type":"host_execution_event","op":"{op}","key":{key},"submission_id":{run},'
    '"start_host_time_ns":{start},"end_host_time_ns":{end},"duration_ns":{length}}}\n'
)


def pool(at: int, size: int) -> str:
    return f'{{"record_type":"memory_event","host_time_ns":{at},"pool_id":7,"pool_bytes_reserved":{size}}}\n'


def event(op: str, start: int, end: int, *, key: str = "null", run: int = 1, length: int | None = None) -> str:
    return EVENT.format(op=op, key=key, run=run, start=start, end=end, length=end - start if length is None else length)


def test_a_profile_of_many_inferences_has_its_dispatches_times_and_memory(tmp_path: Path) -> None:
    """Twenty submissions as IREE writes them: allocations, seven dispatches, the pool's size after every step."""
    keys = [f"net$async_dispatch_{number}_conv" for number in range(7)]
    text = SCHEMA + '{"record_type":"device","physical_device_ordinal":0}\n'
    lasted: dict[str, list[int]] = {key: [] for key in keys}
    for run in range(20):
        now = 1_000_000 * (run + 1)
        text += event("alloca", now, now + 40, run=3 * run) + event("alloca", now + 50, now + 90, run=3 * run)
        begin = now = now + 100
        for number, key in enumerate(keys):
            lasted[key].append(10_000 * (number + 1) + 7 * run)
            text += event("dispatch", now, now + lasted[key][-1], key=f'"{key}"', run=3 * run + 1)
            now += lasted[key][-1] + 500
        text += event("execute", begin, now, run=3 * run + 1) + event("dealloca", now, now + 30, run=3 * run + 2)
        text += "".join(f'{{"record_type":"queue_event","op":"{op}"}}\n' for op in ("alloca", "execute"))
        text += "".join(pool(begin + step, 4096 * step) for step in range(8))
    found = imported(tmp_path, text)
    assert (found.maker, found.inferences) == ("iree-perf", 20)
    assert {op.name: (op.calls, op.time_ns, op.low_ns, op.high_ns) for op in found.ops} == {
        key: (1.0, round(sum(times) / 20), min(times), max(times)) for key, times in lasted.items()
    }
    assert (found.trace.spans["kind"] == SpanKind.OP).sum() == 7 * 20
    assert len(found.trace.samples) == 8 * 20
    assert max(found.trace.samples["value"]) == 7 * 4096
    assert all(check.holds for check in found.checks)
    assert any("1 device, 40 queue_event" in note for note in found.notes)


def test_a_submission_that_executes_is_an_inference(tmp_path: Path) -> None:
    text = SCHEMA + event("dispatch", 10, 20, key='"a"') + event("execute", 5, 30) + event("alloca", 0, 2, run=0)
    text += event("dispatch", 50, 54, key='"a"', run=2) + event("execute", 45, 60, run=2)
    found = imported(tmp_path, text)
    assert found.inferences == 2
    assert [(op.name, op.calls, op.time_ns, op.median_ns, op.low_ns, op.high_ns) for op in found.ops] == [
        ("a", 1.0, 7, 7, 4, 10)
    ]
    assert found.latency_ns == 20
    assert spans(found)[0] == ("queue 0 2", "a", 10, 20)


def test_lines_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    text = SCHEMA + "{broken\n" + event("dispatch", 20, 10, key='"a"') + event("execute", 5, 30) + '{"op": 1}\n'
    found = imported(tmp_path, text)
    note = next(note for note in found.notes if "could not be read" in note)
    assert note.startswith("3 records could not be read: line 2: ")
    assert "line 3: dispatch: no valid time of the host" in note


def test_a_duration_that_is_not_end_minus_start_violates_a_check(tmp_path: Path) -> None:
    found = imported(tmp_path, SCHEMA + event("execute", 5, 30, length=1))
    assert [check.holds for check in found.checks] == [False]


def test_a_profile_without_events_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="no host_execution_event among nothing"):
        imported(tmp_path, SCHEMA)


def test_a_profile_of_unreadable_lines_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        ImportFileError, match=r"no host_execution_event among nothing; 1 records could not be read: line 2"
    ):
        imported(tmp_path, SCHEMA + "{broken\n")
