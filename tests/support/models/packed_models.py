"""Models inside of other files: gzip, zip, C source."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Mapping

from onnx import helper

from support.models.onnx_models import graph, model, value


def relu_onnx() -> bytes:
    """One ReLU of 1x4."""
    node = helper.make_node("Relu", ["x"], ["y"], "relu")
    return model(graph([node], [value("x", [1, 4])], [value("y", [1, 4])])).SerializeToString()


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def gzipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def c_array(
    content: bytes, declaration: str = "unsigned char model[]", form: str = "0x{:02x}", wide: int = 12
) -> bytes:
    """As `xxd -i` writes it, with the declaration and the form of numbers of other tools."""
    lines = [
        "  " + ", ".join(form.format(byte) for byte in content[at : at + wide]) for at in range(0, len(content), wide)
    ]
    return (f"{declaration} = {{\n" + ",\n".join(lines) + f"\n}};\nunsigned int model_len = {len(content)};\n").encode()
