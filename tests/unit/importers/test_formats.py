from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError, UsageError
from opscope.importers.formats import (
    UnknownFormatError,
    appearance,
    find_format,
    formats,
    load_importer,
    read_profile,
)
from support.models.packed_models import zipped
from support.plugins.importer_samples import SAMPLES

FORMATS = {
    "vela_per-layer.csv": "vela-layers",
    "vela_summary.csv": "vela-summary",
    "tflite_log.txt": "tflite-benchmark",
    "tflite_profile.csv": "tflite-benchmark",
    "stedgeai_info.json": "stedgeai-json",
    "latency.txt": "qaic-latency",
    "stedgeai_analyze.txt": "stedgeai-text",
    "stedgeai_n6.txt": "stedgeai-text",
    "stedgeai_validate.txt": "stedgeai-text",
    "stm32_console.txt": "stm32-console",
    "espdl_profile.txt": "espdl-log",
    "tflm_benchmark.txt": "tflm-log",
    "tflm_benchmark.csv": "tflm-log",
    "tensorrt_profile.json": "tensorrt-profile",
    "tensorrt_layers.json": "tensorrt-layers",
    "openvino_average.csv": "openvino-counters",
    "openvino_cpp.csv": "openvino-counters",
    "openvino_report.csv": "openvino-report",
    "qaic_compile_metrics.txt": "qaic-compile-metrics",
    "torq_compile_a.csv": "torq-compile-a",
    "torq_compile_b.csv": "torq-compile-b",
    "torq_compile_c.csv": "torq-compile-c",
    "torq_runtime.csv": "torq-runtime",
    "torq_host_h1.csv": "torq-host-h1",
    "torq_host_h2.csv": "torq-host-h2",
    "torq_host_h3.csv": "torq-host",
    "iree_perf.jsonl": "iree-perf",
}


@pytest.mark.parametrize(("name", "form"), FORMATS.items())
def test_content_decides_and_not_the_suffix(name: str, form: str, tmp_path: Path) -> None:
    disguised = tmp_path / "a.bin"
    disguised.write_bytes((SAMPLES / name).read_bytes())
    assert find_format(disguised).name == form


@pytest.mark.parametrize(("name", "form"), FORMATS.items())
def test_a_packed_file_is_read_like_a_plain_one(name: str, form: str, tmp_path: Path) -> None:
    packed = tmp_path / "file"
    packed.write_bytes(gzip.compress((SAMPLES / name).read_bytes()))
    assert read_profile(packed).ops == read_profile(SAMPLES / name).ops


def test_every_format_has_a_name_of_its_own_describes_itself_and_has_an_importer_of_that_name() -> None:
    names = [form.name for form in formats()]
    assert len(set(names)) == len(names)
    assert all(form.describe for form in formats())
    assert [getattr(load_importer(form), "name", None) for form in formats()] == names


@pytest.mark.parametrize("name", FORMATS)
def test_one_format_alone_claims_a_file(name: str) -> None:
    head = (SAMPLES / name).read_bytes()
    assert sum(form.fits(head, name) for form in formats() if not form.is_generic) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file"),
        (b"PK\x03\x04 and more", "a ZIP archive"),
        (b"\x00\x01\x02\x03\xff\xfe", "binary data"),
        (b'{"something": 1}', "a JSON object"),
        (b"a,b,c\n1,2,3\n", "a table that starts with 'a,b,c'"),
        (b"hello \x1b[31m\n", "text that starts with 'hello \\\\x1b[31m'"),
        (b"\x1f\x8b\x08broken", "damaged gzip"),
    ],
)
def test_an_unknown_file_is_described(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "what.dat"
    path.write_bytes(content)
    with pytest.raises(ImportFileError) as caught:
        read_profile(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: looks like {words}")
    assert "known are onnxruntime, kineto" in message
    assert message.isprintable()


def test_a_format_that_nobody_knows_lists_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"format 'x': not known; expected one of onnxruntime"):
        find_format(SAMPLES / "latency.txt", form="x")


def test_a_named_format_is_not_questioned() -> None:
    with pytest.raises(ImportFileError, match="no tables and no totals; expected lines"):
        read_profile(SAMPLES / "tensorrt_layers.json", form="stedgeai-text")


@pytest.mark.parametrize("path", [Path("/nowhere/at/all"), Path("/dev/null"), SAMPLES])
def test_what_is_no_file_is_an_error(path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"cannot be read|is no regular file"):
        read_profile(path)


def test_appearance_of_long_lines_is_short() -> None:
    assert len(appearance(b"x" * 10_000)) < 120


HINTS = {
    "a.ireeprof": (b"IRPF\x01\0\x06\0" + bytes(64), "iree-profile export --format=ireeperf-jsonl"),
    "stats.json": (b'{\n"stream-aggregate": {\n  "global": {}}}', "`opscope profile`"),
    "m.vmfb": (bytes(4) + b"IREE" + bytes(64), "the model that it was compiled from"),
    "dump.mlir": (
        b'module {\n  "torq_hw.slice_profiling"() : () -> ()\n}\n',
        "`opscope annotate DUMP RUNTIME.csv OUT`",
    ),
    "m.dlc": (b"\xd5\n\x04\0\0\0\0\0\x18\0\0\0NETD" + bytes(64), "`opscope profile MODEL.onnx --backend htp`"),
    "old.dlc": (zipped({"model": b"x", "dlc.metadata": b"y"}), "`opscope profile MODEL.onnx --backend htp`"),
}


@pytest.mark.parametrize(("name", "content", "words"), [(name, *case) for name, case in HINTS.items()])
def test_a_file_that_a_plug_in_knows_gets_the_command_that_takes_it(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    for path in (tmp_path / name, tmp_path / "a.bin"):  # content decides
        path.write_bytes(content)
        with pytest.raises(ImportFileError) as caught:
            find_format(path)
        assert type(caught.value) is not UnknownFormatError
        assert words in str(caught.value)
        assert "known are" not in str(caught.value)


def test_times_that_lie_further_apart_than_any_recording_are_refused(tmp_path: Path) -> None:
    """A folder of a run could hold them and not be read again."""
    events = [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": ts, "dur": 1} for ts in (0, 2**45)]
    (tmp_path / "trace.json").write_text(json.dumps(events))
    with pytest.raises(ImportFileError, match=r"trace\.json: times of it lie \d+ ns apart; expected less than"):
        read_profile(tmp_path / "trace.json")
