from __future__ import annotations

import gzip
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from importer_samples import SAMPLES
from opscope.core.errors import ImportFileError, UsageError
from opscope.core.provenance import Provenance
from opscope.importers import formats as importers
from opscope.importers.formats import IMPORTERS, Importer, appearance, find_importer, read_profile
from opscope.recording.recording import Recording, empty_trace

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
    assert find_importer(disguised).name == form


@pytest.mark.parametrize(("name", "form"), FORMATS.items())
def test_a_packed_file_is_read_like_a_plain_one(name: str, form: str, tmp_path: Path) -> None:
    packed = tmp_path / "file"
    packed.write_bytes(gzip.compress((SAMPLES / name).read_bytes()))
    assert read_profile(packed).ops == read_profile(SAMPLES / name).ops


def test_every_format_has_a_name_of_its_own_and_describes_itself() -> None:
    names = [importer.name for importer in importers.importers()]
    assert len(set(names)) == len(names)
    assert all(isinstance(importer, Importer) and importer.describe for importer in importers.importers())


@pytest.mark.parametrize("name", FORMATS)
def test_one_format_alone_claims_a_file(name: str) -> None:
    head = (SAMPLES / name).read_bytes()
    assert sum(importer.looks_like(head, name) for importer in IMPORTERS) == 1


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
        find_importer(SAMPLES / "latency.txt", form="x")


def test_a_named_format_is_not_questioned() -> None:
    with pytest.raises(ImportFileError, match="no tables and no totals; expected lines"):
        read_profile(SAMPLES / "tensorrt_layers.json", form="stedgeai-text")


@pytest.mark.parametrize("path", [Path("/nowhere/at/all"), Path("/dev/null"), SAMPLES])
def test_what_is_no_file_is_an_error(path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"cannot be read|is no regular file"):
        read_profile(path)


class _Mine:
    name = "mine"
    describe = "of a plug-in"

    def looks_like(self, head: bytes, name: str) -> bool:
        return head.startswith(b'{"traceEvents": "mine"')

    def read(self, path: Path) -> Recording:
        return Recording("mine", Provenance.MEASURED, empty_trace(Provenance.MEASURED), source=str(path))


MINE = _Mine()


def _plug_in(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setitem(sys.modules, "a_plug_in", sys.modules[__name__])
    entry = EntryPoint("mine", value, importers.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: (entry,) if group == importers.GROUP else ())


def test_a_plug_in_comes_before_the_reader_of_any_timeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _plug_in(monkeypatch, "a_plug_in:MINE")
    path = tmp_path / "x"
    path.write_bytes(b'{"traceEvents": "mine"}')
    assert read_profile(path).maker == "mine"


@pytest.mark.parametrize(
    ("value", "words"), [("a_plug_in:nothing", "cannot be loaded"), ("a_plug_in:FORMATS", "no importer")]
)
def test_a_broken_plug_in_is_named(value: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _plug_in(monkeypatch, value)
    path = tmp_path / "x"
    path.write_bytes(b'{"traceEvents": "mine"}')
    with pytest.raises(UsageError, match=f"plug-in mine .*{words}"):
        find_importer(path)
    with pytest.raises(UsageError, match=f"plug-in mine .*{words}"):
        importers.importers()


def test_a_broken_plug_in_does_not_stop_a_file_of_a_format_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    _plug_in(monkeypatch, "a_plug_in:nothing")
    assert find_importer(SAMPLES / "latency.txt").name == "qaic-latency"


def test_appearance_of_long_lines_is_short() -> None:
    assert len(appearance(b"x" * 10_000)) < 120
