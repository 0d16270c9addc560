"""Files that are no models that can be read are refused in one line: what the file is, and what to do."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from opscope.core.errors import ModelError
from opscope.program.wire import PROGRAM_MAGIC, STATS_MAGIC
from opscope.readers import read_model
from opscope.readers.unsupported import ARCHIVES, FILES, FOLDERS
from support.models.packed_models import zipped


def field(number: int, content: bytes | int) -> bytes:
    """Of a protocol buffer: a varint, or bytes with their length."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


OP = field(1, b"Conv2D") + field(2, field(1, b"input"))
SAVED_MODEL = field(1, 1) + field(2, field(1, field(2, field(1, OP) * 30) + field(4, b"serve")) + field(2, bytes(9)))
FROZEN = field(1, field(1, b"net/input") + field(2, b"Placeholder") + field(5, bytes(40))) * 3
CORE_ML = field(1, 4) + field(2, field(1, field(1, b"image") + field(3, bytes(30)))) + field(500, bytes(100))

FILE_CASES = {
    "ORT's own format (.ort)": struct.pack("<I", 24) + b"ORTM" + bytes(64),
    "a Qualcomm deep learning container (.dlc)": b"\xd5\n\x04\0\0\0\0\0" + struct.pack("<I", 24) + b"NETD" + bytes(64),
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n",
    "a program that opscope compiled": PROGRAM_MAGIC + bytes(100),
    "a stats buffer": STATS_MAGIC + bytes(100),
    "a GGUF file": b"GGUF" + struct.pack("<IQQ", 3, 291, 24),
    "a safetensors file": struct.pack("<Q", 20) + b'{"w":{"dtype":"F32"}' + bytes(8),
    "a Python pickle": b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.",
    "an HDF5 file": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "a TensorFlow SavedModel": SAVED_MODEL,
    "a TensorFlow graph (.pb)": FROZEN,
    "a Core ML model (.mlmodel)": CORE_ML,
    "a TensorRT engine": b"ftrt" + bytes(100),
    "an ExecuTorch program (.pte)": struct.pack("<I", 24) + b"ET12" + bytes(64),
    "a compiled IREE module (.vmfb)": struct.pack("<II", 100, 8) + b"IREE" + bytes(64),
    "an ncnn graph (.param)": b"7767517\n75 83\nInput data 0 1 data\n",
    "an OpenVINO graph (.xml)": b'<?xml version="1.0"?>\n<net name="m" version="11">\n',
    "a web page": b"\n<!DOCTYPE html><html><head><title>404</title>",
    "an XML file": b'<?xml version="1.0"?>\n<other/>\n',
    "a JSON file": b'{"format": "graph-model"}',
    "an array (.npy)": b"\x93NUMPY\x01\x00",
    "an archive": bytes(257) + b"ustar\x0000" + bytes(248),
}
ARCHIVE_CASES = {
    "a Qualcomm deep learning container (.dlc)": ["model", "model.params", "dlc.metadata"],
    "a compiled IREE module (.vmfb)": ["module.fb"],
    "a PyTorch file": ["net/data.pkl", "net/version", "net/data/0"],
    "a Keras model (.keras)": ["metadata.json", "config.json", "model.weights.h5"],
    "a TensorFlow SavedModel, zipped": ["net/saved_model.pb", "net/variables/variables.index"],
    "a Core ML package (.mlpackage), zipped": ["net.mlpackage/Data/com.apple.CoreML/model.mlmodel"],
    "arrays (.npz)": ["x.npy", "y.npy"],
}
FOLDER_CASES = {
    "a TensorFlow SavedModel": ["saved_model.pb", "assets"],
    "the folder of a run": ["run.json", "ops.parquet"],
    "a folder with a compiled program": ["programqpc.bin"],
    "a Core ML package (.mlpackage)": ["Manifest.json", "Data"],
}


def refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "; expected " in message
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("suffix", ["", ".onnx", ".tflite", ".mlir"])
@pytest.mark.parametrize(("what", "content"), FILE_CASES.items(), ids=FILE_CASES)
def test_a_file_says_what_it_is(tmp_path: Path, what: str, content: bytes, suffix: str) -> None:
    path = tmp_path / f"net{suffix}"
    path.write_bytes(content)
    assert refusal(path).startswith(what.replace("ORT's", "a model in ONNX Runtime's"))


@pytest.mark.parametrize(("what", "names"), ARCHIVE_CASES.items(), ids=ARCHIVE_CASES)
def test_an_archive_says_what_it_is(tmp_path: Path, what: str, names: list[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(zipped(dict.fromkeys(names, b"\x08\x01")))  # which, as a file, could be the head of ONNX
    assert refusal(path).startswith(what)


@pytest.mark.parametrize(("what", "names"), FOLDER_CASES.items(), ids=FOLDER_CASES)
def test_a_folder_says_what_it_is(tmp_path: Path, what: str, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert refusal(tmp_path).startswith(what)


def test_every_row_of_the_tables_has_a_case() -> None:
    for rows, cases in ((FILES, FILE_CASES), (ARCHIVES, ARCHIVE_CASES), (FOLDERS, FOLDER_CASES)):
        assert len(rows) == len(cases)
        assert len({row.what for row in rows}) == len(rows)


def test_what_is_not_known_is_shown_by_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\xff\x00\x01\x02\x03\x04\x05\x06\x07")
    expected = "expected ONNX, TensorFlow Lite, MLIR or PyTorch (.pt2)"
    assert refusal(path) == f"byte 0x0: not a model; it starts with the bytes ff 00 01 02 03 04 05 06; {expected}"
    path.write_bytes(b"")
    assert refusal(path) == f"byte 0x0: the file is empty; {expected}"
    assert refusal(tmp_path) == "a folder; expected a model file"


def test_a_keras_file_with_arrays_of_numpy_is_told_from_a_real_archive_of_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    assert refusal(tmp_path / "a.npz") == "arrays (.npz); expected a model file"
