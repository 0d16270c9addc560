from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.gate import baseline
from opscope.gate.baseline import decode_baseline, encode_baseline
from opscope.gate.bootstrap import spread_of
from opscope.gate.compare import compare
from opscope.gate.figures import NS, Figure, Figures, Row
from opscope.gate.limits import parse_limit
from support.recording.compare_build import LABELS, figures, op

NAMES = st.text(max_size=12)
TIMES = st.one_of(st.none(), st.integers(0, 10**12))
SAMPLES = st.one_of(st.none(), st.lists(st.integers(1, 10**9), min_size=2, max_size=20))


@st.composite
def runs(draw: st.DrawFn) -> Figures:
    ops = [
        replace(
            op(draw(NAMES), draw(TIMES), kind=draw(NAMES), location=draw(NAMES), own=draw(TIMES)),
            spread=None if (s := draw(SAMPLES)) is None else spread_of(s, most=9),
        )
        for _ in range(draw(st.integers(0, 4)))
    ]
    return figures(
        ops,
        latency=draw(TIMES),
        peak=draw(TIMES),
        target=draw(NAMES),
        provenance="measured",
        samples=draw(SAMPLES),
        sha256="ab",
        model=draw(NAMES),
    )


def encoded(run: Figures) -> bytes:
    return encode_baseline(run, labels=LABELS)


@given(runs())
def test_what_is_read_is_what_was_written(run: Figures) -> None:
    found = decode_baseline(encoded(run), source="b.json", label="run")
    by_name = sorted(run.metrics, key=lambda metric: metric.name)
    assert replace(found, metrics=tuple(sorted(found.metrics, key=lambda m: m.name))) == replace(
        run, metrics=tuple(by_name)
    )


@given(runs())
def test_the_same_figures_give_the_same_bytes_with_sorted_keys(run: Figures) -> None:
    data = encoded(run)
    assert data == encoded(decode_baseline(data, source="b.json", label="elsewhere"))
    fields = json.loads(data)
    assert list(fields) == sorted(fields)
    assert list(fields["metrics"]) == sorted(fields["metrics"])
    assert fields["schema"] == "opscope.baseline/1"


def test_a_baseline_reads_like_this() -> None:
    run = figures(
        [op("a", 60, own=50), op("b", 40, kind="Add", spread=spread_of([39, 40, 41]))], samples=[999, 1000, 1003]
    )
    assert (
        encoded(run).decode()
        == """\
{
 "batch": 1,
 "caveats": [],
 "cores": 1,
 "devices": 1,
 "metrics": {
  "latency": {"provenance": "simulated", "unit": "ns", "value": 1000},
  "peak_memory": {"provenance": "simulated", "unit": "bytes", "value": 4096}
 },
 "model": "net",
 "op_columns": ["name", "type", "engine", "location", "wall_ns", "own_ns", "samples", "module", "work", "row"],
 "ops": [
  ["a", "MatMul", "HMX", "", 60, 50],
  ["b", "Add", "HMX", "", 40, 40, [3, 3, 1, 39, 40, 41]]
 ],
 "provenance": "simulated",
 "rollups": {
  "engine:HMX": 90,
  "layer:a": 50,
  "layer:b": 40,
  "type:Add": 40,
  "type:MatMul": 50
 },
 "samples": {"count": 3, "effective": 3, "mad": 1, "median": 1000, "tick": 1, "values": [999, 1000, 1003]},
 "schema": "opscope.baseline/1",
 "sha256": null,
 "target": "chip"
}
"""
    )


@given(runs(), runs())
def test_comparing_with_the_file_is_comparing_with_the_run(base: Figures, new: Figures) -> None:
    new = replace(new, target=base.target)
    limits = [parse_limit("latency>5%"), parse_limit("peak_memory>0")]
    read = decode_baseline(encoded(base), source="b.json", label=base.label)
    results = [
        compare(one, new, limits=limits, allow=("model",), labels=LABELS)
        for one in (base, replace(read, metrics=base.metrics))
    ]
    assert read.metric("latency") == base.metric("latency")
    assert results[0] == results[1]


def test_the_cheapest_of_very_many_ops_are_kept_as_one_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "MOST_OPS", 2)
    run = figures([op("a", 5), op("b", 70), op("c", 20), op("d", 3)])
    read = decode_baseline(encoded(run), source="b.json", label="run")
    rows = [(o.name, o.wall_ns, o.row) for o in read.ops]
    assert rows == [("b", 70, Row.OP), ("c", 20, Row.OP), ("(other ops)", 8, Row.OTHERS)]
    found = compare(read, run, labels=LABELS)
    assert [row.own.change for row in found.ops] == [0, 0, 0]


def test_what_a_row_is_of_is_written_down_and_told_by_its_name_in_earlier_files_only() -> None:
    run = figures([op("(no op)", 5), replace(op("nobody", 7, kind=""), row=Row.NO_OP)])
    data = encoded(run)
    assert [o.row for o in decode_baseline(data, source="b.json", label="run").ops] == [Row.OP, Row.NO_OP]
    earlier = data.replace(b', "row"]', b"]").replace(b', null, "", {}, "no-op"]', b"]")
    assert [o.row for o in decode_baseline(earlier, source="b.json", label="run").ops] == [Row.NO_OP, Row.OP]


def test_a_model_of_hundreds_of_ops_stays_below_fifty_kilobytes() -> None:
    ops = [
        op(f"/encoder/layer.{n // 27}/attention/output/dense_{n % 27}/MatMul", 12_345_678 + n, location=f"node {n}")
        for n in range(325)
    ]
    assert len(encoded(figures(ops))) < 50_000


GOOD = encoded(figures([op("a")]))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a baseline"),
        (b"[]", "not a baseline"),
        (b"{}", "schema is ''"),
        (b'{"schema": "opscope.run/1"}', "schema is 'opscope.run/1'; expected opscope.baseline/1"),
        (b'{"schema": "opscope.report/1"}', "or the folder that `opscope profile MODEL -o RUN` leaves"),
        (b'{"schema": "\\u001b[31m"}', "schema is"),
        (GOOD[: len(GOOD) // 2], "not a baseline"),
        (GOOD.replace(b'"latency"', b'"speed"'), "'speed' is not known"),
        (GOOD.replace(b"60", b'"x"').replace(b"100, 100", b'"x", 1'), "not a baseline"),
        (GOOD.replace(b"100, 100", b"100, 100, [1]"), "samples need"),
        (GOOD.replace(b"100, 100", b"100, 100, [2, 9, 0, 1, 2]"), "spread"),
        (GOOD.replace(b'"samples": null', b'"samples": {"count": 0, "effective": 1, "values": [1]}'), "spread"),
        (GOOD.replace(b"4096", b"1" + b"0" * 400), "'peak_memory': a value is out of range"),
        (GOOD.replace(b"100, 100", b"1" + b"0" * 80 + b", 1"), "'a': a value is out of range"),
        (GOOD.replace(b"100, 100", b"100, 100, [1e300, 1e300, 0, 1, 2]"), "spread"),
        (b"\xff\xfe" + GOOD, "not a baseline"),
        (b'{"schema":' * 5000, "not a baseline"),
    ],
)
def test_a_damaged_baseline_is_an_error_of_one_line(data: bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        decode_baseline(data, source="b.json", label="b")
    assert words in str(caught.value)
    assert str(caught.value).startswith("b.json: ")
    assert str(caught.value).isprintable()


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_a_flipped_byte_is_read_or_named_and_nothing_else(place: int, value: int) -> None:
    data = GOOD[:place] + bytes([value]) + GOOD[place + 1 :]
    with suppress(UsageError):
        decode_baseline(data, source="b.json", label="b")


def test_causes_of_a_file_of_the_version_before_are_its_occupancy() -> None:
    parts = {"compute": 80, "transfer only": 15, "statistics only": 0, "nothing moves": 5}
    written = [Figure(f"cause:{name}", value, NS, "simulated") for name, value in parts.items()]
    found = decode_baseline(encoded(replace(figures([op("a")]), metrics=tuple(written))), source="b", label="run")
    assert {metric.name: metric.value for metric in found.metrics} == {f"occupancy:{k}": v for k, v in parts.items()}


def test_causes_of_a_file_of_today_are_causes() -> None:
    written = (Figure("cause:compute", 80, NS, "simulated"), Figure("occupancy:transfer only", 3, NS, "simulated"))
    found = decode_baseline(encoded(replace(figures([op("a")]), metrics=written)), source="b", label="run")
    assert found.metrics == written
