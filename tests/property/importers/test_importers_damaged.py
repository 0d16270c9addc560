"""Files of every format with values of another kind in them: a result or an error, and the good rows stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope import api
from opscope.core.errors import ProfilerError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile
from opscope.recording.build import to_run
from opscope.recording.recording import Recording
from opscope.recording.recording_file import decode_recording, encode_recording

SAMPLES = Path(__file__).parents[2] / "samples"
JSON = sorted(path for path in SAMPLES.iterdir() if path.suffix == ".json")
TEXT = sorted(path for path in SAMPLES.iterdir() if path.suffix in (".txt", ".csv"))
DEEP: object = json.loads("[" * 300 + "]" * 300)
VALUES = [
    None,
    True,
    "",
    "x",
    "1",
    -1,
    0,
    1.5,
    1e308,
    -1e308,
    2**62,
    2**63,
    2**64,
    10**30,
    [],
    {},
    [[]],
    {"a": 1},
    DEEP,
]
CELLS = [
    "",
    "-",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 40,
    "-1",
    "0",
    "\x00",
    "%",
    "[",
    "(",
    ";;;",
    "\t",
    "=====",
    "N/A",
    "1.5.5",
    "0x10",
    "1,2,3",
    "٣",
    " " * 50,
]
quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def whole_way(path: Path) -> Recording | None:
    """What `opscope import` does; None: an error that a user can read."""
    try:
        imported = combine([read_profile(path)])
    except ProfilerError:
        return None
    run = to_run(imported, command=("import",), created="now", sha256=None)
    back = decode_recording(encode_recording(imported), run, source="recording.json")
    assert back.ops == imported.ops
    assert all(op.time_ns is None or 0 <= op.time_ns < 2**62 for op in imported.ops)
    return imported


def places(value: object, so_far: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield so_far
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*so_far, key))


def put(value: object, place: tuple[str | int, ...], new: object) -> object:
    if not place:
        return new
    copy: dict[str | int, object] | list[object] = dict(value) if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
    copy[place[0]] = put(copy[place[0]], place[1:], new)  # type: ignore[index]
    return copy


NUMBERS = [
    ("vela_per-layer.csv", ",320000,"),
    ("stedgeai_info.json", "896"),
    ("stedgeai_info.json", "16000"),
    ("tensorrt_profile.json", "0.06,"),
    ("tensorrt_times.json", "1.309"),
    ("openvino_npu.json", "5.125"),
    ("qnn_timeline.json", "1200000"),
    ("tenstorrent_ops.csv", "14168404359928"),
    ("tenstorrent_ops.csv", "40000"),
    ("tflite_log.txt", "3.640"),
    ("openvino_average.csv", "0.014"),
    ("vela_per-layer.csv", "12992"),
    ("latency.txt", "23"),
    ("stm32_console.txt", "26011387"),
    ("stm32_console.txt", "250.100"),
    ("espdl_profile.txt", "1500"),
    ("tflm_benchmark.txt", "224622"),
]


@pytest.mark.parametrize(("name", "number"), NUMBERS)
@pytest.mark.parametrize("new", ["-7", str(2**49), str(2**53), str(2**63), "9" * 30])
def test_a_run_with_a_gigantic_number_can_be_read_again(name: str, number: str, new: str, tmp_path: Path) -> None:
    text = (SAMPLES / name).read_text()
    assert number in text
    (tmp_path / name).write_text(text.replace(number, number.replace(number.strip(","), new), 1))
    try:
        api.import_profile([tmp_path / name], tmp_path / "run")
    except ProfilerError:
        return
    assert api.check(tmp_path / "run")


@pytest.mark.parametrize("path", JSON, ids=lambda path: path.name)
@given(data=st.data())
@quick
def test_a_value_of_another_kind_ends_in_an_error_or_a_result(path: Path, tmp_path: Path, data: st.DataObject) -> None:
    body: object = json.loads(path.read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        body = put(body, data.draw(st.sampled_from(list(places(body)))), data.draw(st.sampled_from(VALUES)))
    text = json.dumps(body)
    if data.draw(st.booleans()):  # a key that comes twice
        text = text.replace("{", '{"name": 7, ', 1)
    (tmp_path / path.name).write_text(text)
    whole_way(tmp_path / path.name)


@pytest.mark.parametrize("path", TEXT, ids=lambda path: path.name)
@given(data=st.data())
@quick
def test_a_cell_of_another_kind_ends_in_an_error_or_a_result(path: Path, tmp_path: Path, data: st.DataObject) -> None:
    lines = path.read_text().split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        number, mark = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.sampled_from(",;\t :"))
        cells = lines[number].split(mark)
        cells[data.draw(st.integers(0, len(cells) - 1))] = data.draw(st.sampled_from(CELLS))
        lines[number] = mark.join(cells)
    (tmp_path / path.name).write_text("\n".join(lines))
    whole_way(tmp_path / path.name)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("tensorrt_profile.json", ()),
        ("tensorrt_times.json", ()),
        ("tensorrt_layers.json", ("Layers",)),
        ("stedgeai_info.json", ("graphs", 0, "nodes")),
        ("openvino_detailed.json", ("detailed_performance", 0, "nodes")),
    ],
)
@given(data=st.data())
@quick
def test_one_bad_entry_costs_no_other(
    name: str, where: tuple[str | int, ...], tmp_path: Path, data: st.DataObject
) -> None:
    body = json.loads((SAMPLES / name).read_text())
    (tmp_path / name).write_text(json.dumps(body))
    before = whole_way(tmp_path / name)
    entries = body
    for key in where:
        entries = entries[key]
    place = data.draw(st.integers(0, len(entries)))
    bad = data.draw(st.sampled_from([None, 7, [], {"Name": 7, "name": 7}]))
    changed = put(body, where, [*entries[:place], bad, *entries[place:]])
    (tmp_path / name).write_text(json.dumps(changed))
    after = whole_way(tmp_path / name)
    assert before is not None
    assert after is not None
    assert [op.name for op in after.ops] == [op.name for op in before.ops]
    assert any("could not be read" in note for note in after.notes)
