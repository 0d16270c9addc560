"""`recording.json`: what was told comes back, and what earlier versions left is still read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.core.provenance import Provenance
from opscope.recording.build import to_run
from opscope.recording.finding import Finding
from opscope.recording.recording import Check, Metric, OpRecord, Placed, Recording, empty_trace
from opscope.recording.recording_file import decode_recording, encode_recording, read_recording
from opscope.recording.run import Run

TOLD = Recording(
    "mine",
    Provenance.MEASURED,
    empty_trace(Provenance.MEASURED),
    (OpRecord("a", "Conv", placed=Placed.CPU, busy_cycles={"NPU": 3}), OpRecord("b", time_ns=0)),
    metrics=(Metric("latency", 5, "ns"), Metric("rpc", None, "us", None, "only a device can tell")),
    causes=(Finding("slow-op", "a is slow", "so it is", ("a",), 3),),
    checks=(Check("a = b", True, "1 and 1"),),
    notes=("one row left out",),
)
RUN: Run = to_run(TOLD, command=(), created="", sha256=None)


def test_what_was_told_comes_back_and_unknown_fields_of_ops_are_left_out() -> None:
    raw = encode_recording(TOLD)
    back = decode_recording(raw, RUN, source="recording.json")
    assert (back.ops, back.metrics, back.causes, back.checks, back.notes) == (
        TOLD.ops,
        TOLD.metrics,
        TOLD.causes,
        TOLD.checks,
        TOLD.notes,
    )
    assert json.loads(raw)["ops"][1] == {
        "name": "b",
        "time_ns": 0,
        "spill_bytes": 0,
        "fill_bytes": 0,
    }


def test_an_op_without_a_name_comes_back() -> None:
    told = replace(TOLD, ops=(OpRecord("", "Conv"),))
    run = to_run(told, command=(), created="", sha256=None)
    assert decode_recording(encode_recording(told), run, source="recording.json").ops == told.ops


def test_files_of_earlier_versions_are_read_under_the_rules_of_today(tmp_path: Path) -> None:
    assert read_recording(tmp_path, RUN) is None
    causes = [{"id": rule, "title": "t", "detail": "d"} for rule in ("slow-node", "conversions", "local-spill", "wait")]
    (tmp_path / "profile.json").write_text(json.dumps({"backend": "theirs", "causes": causes, "nodes": []}))
    told = read_recording(tmp_path, RUN)
    assert told is not None
    assert [cause.id for cause in told.causes] == ["slow-op", "layout", "spill", "wait"]
    checks = [{"name": "a = b", "holds": False, "detail": "1 and 2"}]
    (tmp_path / "imported.json").write_text(json.dumps({"format": "mine", "checks": checks, "notes": ["n"]}))
    told = read_recording(tmp_path, RUN)
    assert told is not None
    assert (told.maker, told.checks, told.notes) == ("mine", (Check("a = b", False, "1 and 2"),), ("n",))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "recording.json").write_text('{"maker": 1}')
    with pytest.raises(ImportFileError, match=r"recording\.json: .*`\$\.maker`; expected the fields of this format"):
        read_recording(tmp_path, RUN)
