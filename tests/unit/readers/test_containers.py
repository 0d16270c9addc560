"""Packed models are read as what is inside of them, and said to be the file that the user gave."""

from __future__ import annotations

import gzip
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from opscope import api
from opscope.core.errors import ModelError
from opscope.graph.graph import Graph
from opscope.readers import containers, read_model, unpacked
from opscope.readers.c_arrays import MOST_ARRAYS
from opscope.workflows import profiling
from opscope.zoo import Recipe, make
from support.models.onnx_models import graph, model, value
from support.models.packed_models import c_array, gzipped, relu_onnx, zipped
from support.models.tflite_build import BY_HAND, small_cnn

ARRAYS = {  # declaration → how a number is written
    "unsigned char model_tflite[]": "0x{:02x}",
    "alignas(16) const unsigned char g_model[]": "0x{:02X}",
    'const uint8_t model_data[512] __attribute__((section(".rodata"), aligned(8)))': "{}",
    "const unsigned char DATA_ALIGN_ATTRIBUTE g_model [ MODEL_BYTES ] PROGMEM": "0x{:x}U",
    "constexpr std::array<uint8_t, 512> model": "0x{:02x}",
    "static const unsigned char m[]": "0{:03o}",
}
PREAMBLE = b"""/* Generated; braces in comments { 1, 2 } do not matter. */
#ifndef MODEL_H_
#define MODEL_H_
#include <cstdint>
namespace {
const int8_t samples[] = {-1, 2, 0x7f};  // not a model
const float scales[2] = {0.5f, 1.0f};
}
#ifdef __has_attribute
#define HAVE_ATTRIBUTE(x) __has_attribute(x)
#endif
"""

EXPECTED = "expected ONNX, TensorFlow Lite, MLIR or PyTorch (.pt2)"


def read(folder: Path, name: str, content: bytes) -> Graph:
    path = folder / name
    path.write_bytes(content)
    graph = read_model(path)
    assert (graph.source, graph.name) == (str(path), "net")
    return graph


def refusal(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        read_model(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.fixture(params=["onnx", "tflite"])
def zoo_model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"net.{request.param}"
    make(Recipe("kws-cnn", format=request.param), path)
    return path


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("net{}.gz", gzipped),
        ("net.zip", lambda content: zipped({"folder/": b"", "folder/some.model": content, "labels.txt": b"yes\nno\n"})),
        ("net{}.zip", lambda content: zipped({"a.bin": content}, zipfile.ZIP_STORED)),
        ("net.cc", lambda content: PREAMBLE + c_array(content, "alignas(8) const unsigned char g_net[]")),
        ("net.h", c_array),
        ("net", gzipped),
    ],
)
def test_a_packed_model_is_read_as_the_model_is(zoo_model: Path, name: str, pack) -> None:  # type: ignore[no-untyped-def]
    plain = read_model(zoo_model)
    found = read(zoo_model.parent, name.format(zoo_model.suffix), pack(zoo_model.read_bytes()))
    assert (found.framework, found.file_bytes) == (plain.framework, plain.file_bytes)
    assert (found.ops, found.tensors) == (plain.ops, plain.tensors)


@pytest.mark.parametrize(("declaration", "form"), ARRAYS.items())
def test_arrays_are_read_however_they_are_declared(tmp_path: Path, declaration: str, form: str) -> None:
    assert read(tmp_path, "net.cc", PREAMBLE + c_array(BY_HAND, declaration, form)).ops[0].kind == "relu"


def test_comments_and_signs_inside_of_an_array_are_read_over(tmp_path: Path) -> None:
    signed = ", ".join(str(byte - 256 if byte > 127 else byte) for byte in BY_HAND[8:])
    text = f"int8_t m[] = {{ // root }}\n0x14, 0, 0, 0, /* }} TFL3 */ 0x54, 0x46, 0x4c, 0x33, {signed},\n}};"
    assert read(tmp_path, "net.c", text.encode()).ops[0].kind == "relu"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PREAMBLE, "source text, and no array in it is a model (comments, samples, scales); expected one that is"),
        (
            c_array(BY_HAND, "const char a[]") + c_array(BY_HAND, "const char b[]"),
            "holds 2 models (a, b); expected one",
        ),
        (c_array(BY_HAND)[:-100], "array model: the text ends before the array does; expected a closing brace"),
        (
            c_array(BY_HAND).replace(b"0x78", b"0x178"),
            "array model: '0x178' is no byte; expected numbers from 0x00 to 0xff",
        ),
        (
            c_array(BY_HAND).replace(b"0x78", b"\n#ifdef X\n0x78"),
            r"array model: '#ifdef X\n0x78' is no byte; expected numbers from 0x00 to 0xff",
        ),
        (b"int a[] = {1};\n" * (MOST_ARRAYS + 1), "more than 1000 arrays; expected source with one model in it"),
        (
            b"int main() { return 0; }\n",
            f"byte 0x0: a text file; {EXPECTED}",
        ),
    ],
)
def test_source_without_one_whole_model_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(tmp_path, "net.c", content) == message


def test_an_archive_with_several_models_lists_them(tmp_path: Path) -> None:
    content = zipped({"a/one.onnx": relu_onnx(), "two.tflite": BY_HAND})
    expected = "expected one: unpack it, and name the one to read"
    assert refusal(tmp_path, "net.zip", content) == f"holds 2 models (a/one.onnx, two.tflite); {expected}"


def test_a_file_that_could_be_a_model_does_not_hide_the_one_that_is_called_so(tmp_path: Path) -> None:
    content = zipped({"backup": relu_onnx(), "new.onnx": relu_onnx()})
    assert read(tmp_path, "net.zip", content).ops[0].kind == "relu"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            zipped({}),
            f"byte 0x0: a zip archive without a model (it is empty); {EXPECTED}",
        ),
        (
            zipped({"a.txt": b"a", "b.txt": b"b"}),
            f"byte 0x0: a zip archive without a model (a.txt, b.txt); {EXPECTED}",
        ),
        (
            zipped({"a.onnx": relu_onnx()}, zipfile.ZIP_LZMA),
            "a.onnx: packed by method 14; expected deflate, as every tool can, or none",
        ),
        (zipped({"a.onnx": relu_onnx()})[:60], "cannot be unpacked (File is not a zip file); expected a whole file"),
        (gzipped(b"hello"), "a gzip file, and inside is no model; expected a model"),
        (gzipped(bytes(257) + b"ustar" + bytes(200)), "a gzip file, and inside is an archive; expected a model"),
        (
            gzipped(relu_onnx())[:-4],
            "cannot be unpacked (Compressed file ended before the end-of-stream marker was reached); "
            "expected a whole file",
        ),
    ],
)
def test_archives_without_a_whole_model_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    assert refusal(tmp_path, "net", content) == message


def test_a_locked_archive_says_so(tmp_path: Path) -> None:
    content = bytearray(zipped({"a.onnx": relu_onnx()}))
    content[content.index(b"PK\x01\x02") + 8] |= 1  # general purpose bit 0 of the central directory
    assert refusal(tmp_path, "net.zip", bytes(content)).startswith("a.onnx: locked with a password; ")


def test_damage_inside_is_said_of_the_file_given_and_of_the_place_in_it(tmp_path: Path) -> None:
    damaged = BY_HAND[:8] + b"\xff" * 40
    direct = refusal(tmp_path, "net.tflite", damaged)
    assert refusal(tmp_path, "net.gz", gzipped(damaged)) == direct
    assert refusal(tmp_path, "net.zip", zipped({"a.tflite": damaged})) == f"a.tflite: {direct}"
    assert refusal(tmp_path, "net.c", c_array(damaged)) == f"array model: {direct}"


@pytest.mark.parametrize("pack", [gzipped, lambda content: zipped({"a.onnx": content})])
def test_a_file_that_unpacks_to_more_than_the_limit_is_refused_before_it_fills_the_disk(
    tmp_path: Path,
    pack,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setattr(containers, "ALWAYS_BYTES", 1 << 16)  # of a model whose documentation is 4 MiB of zeros
    expected = "bytes; expected a model: unpack it by hand if it is"
    assert refusal(tmp_path, "net", pack(relu_onnx() + b"\x32\x80\x80\x80\x02" + bytes(1 << 22))).endswith(expected)


def test_a_list_of_files_without_end_is_not_read(tmp_path: Path) -> None:
    content = zipped({"x" * 60_000 + str(number): b"" for number in range(20)})
    assert "cannot be unpacked (a list of files of" in refusal(tmp_path, "net.zip", content)


def test_nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    read(tmp_path, "net.gz", gzipped(BY_HAND))
    refusal(tmp_path, "net.zip", zipped({"a": BY_HAND[:100]}))
    assert not list(scratch.iterdir())


def test_weights_beside_a_zipped_model_are_unpacked_with_it(tmp_path: Path) -> None:
    array = np.arange(2000, dtype=np.float32).reshape(1, 2000)
    weights = numpy_helper.from_array(array, "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    whole = model(graph([node], [value("x", [1, 2000])], [value("y", [1, 2000])], [weights]))
    (tmp_path / "data").mkdir()
    onnx.save(whole, str(tmp_path / "inner.onnx"), save_as_external_data=True, location="data/w.bin", size_threshold=0)
    members = {f"m/{name}": (tmp_path / name).read_bytes() for name in ("inner.onnx", "data/w.bin")}
    path = tmp_path / "net.zip"
    path.write_bytes(zipped({**members, "m/../../escaped": b"x", "elsewhere": b"y"}))
    with unpacked(path) as file:
        names = {place.relative_to(file.parent).as_posix() for place in file.parent.rglob("*") if place.is_file()}
    assert names == {"net.onnx", "data/w.bin"}
    api.compile_model(path, "aic100-std", tmp_path / "build", cores=1)
    x = np.ones((1, 2000), np.float32)
    ran = api.run(tmp_path / "build", inputs={"x": x}, save_outputs=True, out_dir=tmp_path, num_iter=1)
    assert np.array_equal(np.load(tmp_path / "output-y.npy"), array + 1)
    assert ran.outputs is not None


def test_backends_are_given_the_model_and_the_profile_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite.gz"
    path.write_bytes(gzipped(small_cnn().build()))
    found = profiling.profile(path, backend="litert", options={"repeats": 1, "warmup": 0})
    assert (found.model, found.network or Path(found.model or "").stem) == (str(path), "net")


def test_a_plain_model_is_handed_on_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(relu_onnx())
    for place in (path, tmp_path, tmp_path / "absent"):
        with unpacked(place) as file:
            assert file == place


def test_gzip_in_members_is_read_whole(tmp_path: Path) -> None:
    content = relu_onnx()
    assert read(tmp_path, "net.gz", gzip.compress(content[:20]) + gzip.compress(content[20:])).ops[0].kind == "relu"
