"""Files that are often given for a model and are none that can be read: what each is, and what to do instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_EXPORT = "its export (torch.export.save, or torch.onnx.export), or package.module:factory"
_FROM_TENSORFLOW = "its conversion, by tf.lite.TFLiteConverter or `python -m tf2onnx.convert`"


class FileKind(NamedTuple):
    """A kind of file that is not read."""

    pattern: bytes  # a regular expression, of the first bytes of a file or of names
    what: str
    expected: str


_FROM_ONNX = (
    "the ONNX model that it was converted from, for `opscope profile MODEL.onnx --backend htp`; or the profile that a "
    "device leaves when it runs it, for `opscope import`"
)
_CONTAINER = "a Qualcomm deep learning container (.dlc)"

# The first that fits decides; a pattern matches at the beginning of the file, and `.` is any byte.
FILES = (
    FileKind(rb".{4}ORTM", "a model in ONNX Runtime's own format (.ort)", "the .onnx file that it was made from"),
    FileKind(rb"\xd5\n[\x02-\x04]\0|.{4}(NETD|NETP|NR64)", _CONTAINER, _FROM_ONNX),
    FileKind(rb"version https://git-lfs", "a Git LFS pointer, not the file that it stands for", "`git lfs pull` first"),
    FileKind(rb"OPSCPROG", "a program that opscope compiled", "the model; `opscope run` takes the program"),
    FileKind(rb"OPSCSTAT", "a stats buffer", "the model; `opscope opstats` takes the buffer"),
    FileKind(rb"GGUF", "a GGUF file: weights of a language model", "an ONNX export of the model"),
    FileKind(rb".{5}\0{3}\{\s*\"", "a safetensors file: weights without a graph", "an ONNX export of the model"),
    FileKind(rb"\x80[\x02-\x05]", "a Python pickle, such as an old PyTorch checkpoint", _EXPORT),
    FileKind(rb"\x89HDF\r\n\x1a\n", "an HDF5 file, such as a Keras model", _FROM_TENSORFLOW),
    FileKind(
        rb"\x08\x01\x12[\x80-\xff]*[\0-\x7f]\n[\x80-\xff]*[\0-\x7f]\x12", "a TensorFlow SavedModel", _FROM_TENSORFLOW
    ),
    FileKind(rb"\n[\x80-\xff]?[\0-\x7f]\n[\0-\x7f][\w/.:-]+\x12.[A-Z]", "a TensorFlow graph (.pb)", _FROM_TENSORFLOW),
    FileKind(
        rb"\x08.\x12[\x80-\xff]*[\0-\x7f]\n", "a Core ML model (.mlmodel)", "the model that it was converted from"
    ),
    FileKind(rb"[fp]trt", "a TensorRT engine", "the ONNX model that it was built from"),
    FileKind(rb".{4}ET1\d", "an ExecuTorch program (.pte)", "an ONNX export of the model"),
    FileKind(rb".{4,8}IREE", "a compiled IREE module (.vmfb)", "the MLIR, ONNX or TensorFlow Lite file it is made of"),
    FileKind(rb"7767517\s", "an ncnn graph (.param)", "the ONNX model that it was converted from"),
    FileKind(
        rb"\s*+(<\?xml[^>]*>)?\s*+<net\b", "an OpenVINO graph (.xml)", "the ONNX model that it was converted from"
    ),
    FileKind(rb"(?i)\s*+(<!doctype html|<html)", "a web page", "the model itself: download it again"),
    FileKind(rb"\s*+<", "an XML file", "a model file"),
    FileKind(
        rb"\s*[\[{]\s*[\[{\]}\"\d-]", "a JSON file", "a model file; `opscope import` takes profiles of other tools"
    ),
    FileKind(rb"\x93NUMPY", "an array (.npy)", "a model file"),
    FileKind(
        rb".{257}ustar|BZh\d|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!", "an archive", "the model itself: unpack it"
    ),
)

# Of zip archives: looked for in the names of their files, one to a line.
ARCHIVES = (
    FileKind(rb"^(model\.params(\.bin)?|dlc\.metadata[^\n/]*)$", _CONTAINER, _FROM_ONNX),
    FileKind(
        rb"^module\.fb$", "a compiled IREE module (.vmfb)", "the MLIR, ONNX or TensorFlow Lite file it is made of"
    ),
    FileKind(rb"^([^\n]*/)?data\.pkl$", "a PyTorch file (.pt, .pth): weights, or TorchScript", _EXPORT),
    FileKind(rb"^model\.weights\.h5$", "a Keras model (.keras)", _FROM_TENSORFLOW),
    FileKind(rb"^([^\n]*/)?saved_model\.pb$", "a TensorFlow SavedModel, zipped", _FROM_TENSORFLOW),
    FileKind(rb"com\.apple\.CoreML/", "a Core ML package (.mlpackage), zipped", "the model that it was converted from"),
    FileKind(rb"\A([^\n]+\.npy\n)+\Z", "arrays (.npz)", "a model file"),
)

# Of folders: names of files that they hold.
FOLDERS = (
    FileKind(rb"^saved_model\.pb$", "a TensorFlow SavedModel", _FROM_TENSORFLOW),
    FileKind(rb"^run\.json$", "the folder of a run", "the model; `opscope analyze` takes the run"),
    FileKind(rb"^programqpc\.bin$", "a folder with a compiled program", "the model; `opscope run` takes the folder"),
    FileKind(rb"^Manifest\.json$", "a Core ML package (.mlpackage)", "the model that it was converted from"),
)


def unsupported(head: bytes) -> FileKind | None:
    """What a file is that starts with `head`; None: not known."""
    return next((row for row in FILES if re.match(row.pattern, head, re.DOTALL)), None)


def unsupported_archive(names: Iterable[str]) -> FileKind | None:
    """What a zip archive with files of these names is; None: not known."""
    return _by_names(ARCHIVES, names)


def unsupported_folder(names: Iterable[str]) -> FileKind | None:
    """What a folder with files of these names is; None: not known."""
    return _by_names(FOLDERS, names)


def _by_names(rows: tuple[FileKind, ...], names: Iterable[str]) -> FileKind | None:
    lines = "".join(f"{name}\n" for name in names).encode("utf-8", "replace")
    return next((row for row in rows if re.search(row.pattern, lines, re.MULTILINE)), None)
