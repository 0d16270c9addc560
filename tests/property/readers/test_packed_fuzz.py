"""Whatever the bytes, a packed model is either a Graph or one line about the file that was given."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.core.errors import ModelError
from opscope.graph.graph import Graph
from opscope.readers import read_model
from support.draws import draws
from support.models.packed_models import c_array, gzipped, relu_onnx, zipped
from support.models.tflite_build import BY_HAND

PACKED = [
    gzipped(relu_onnx()),
    gzipped(BY_HAND),
    zipped({"a/net.onnx": relu_onnx(), "a/labels.txt": b"yes\nno\n"}),
    zipped({"net.tflite": BY_HAND, "other": bytes(50)}, zipfile.ZIP_STORED),
    c_array(BY_HAND, "alignas(8) const unsigned char g_model[] __attribute__((aligned(8)))"),
    c_array(relu_onnx(), form="{}"),
]
MANY = settings(max_examples=draws(3), deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packed")


def outcome(folder: Path, content: bytes) -> Graph | str:
    path = folder / "fuzzed"
    path.write_bytes(content)
    try:
        graph = read_model(path)
    except ModelError as error:
        message = str(error)
    else:
        assert graph.source == str(path)
        return graph
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert "opscope-model-" not in message  # the temporary folder is no business of the user's
    return message


@pytest.mark.parametrize("content", PACKED)
def test_whole_ones_are_read(folder: Path, content: bytes) -> None:
    assert isinstance(outcome(folder, content), Graph)


@MANY
@given(content=st.sampled_from(PACKED), share=st.floats(0, 1, exclude_max=True))
def test_cut_short(folder: Path, content: bytes, share: float) -> None:
    outcome(folder, content[: int(len(content) * share)])


@MANY
@given(data=st.data(), content=st.sampled_from(PACKED))
def test_bits_flipped(folder: Path, data: st.DataObject, content: bytes) -> None:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    outcome(folder, bytes(changed))


@MANY
@given(data=st.data(), content=st.sampled_from(PACKED), new=st.binary(max_size=8))
def test_bytes_replaced_near_the_directory(folder: Path, data: st.DataObject, content: bytes, new: bytes) -> None:
    """Sizes, offsets and counts of a zip archive stand at its end."""
    at = len(content) - data.draw(st.integers(0, min(200, len(content))))
    outcome(folder, content[:at] + new + content[at + len(new) :])


@MANY
@given(
    text=st.lists(
        st.sampled_from(["char m[]", "=", "{", "}", "0x14", ",", "/*", "*/", "//", "\n", "0", "TFL3", "#if", '"', "-1"])
    )
)
def test_any_source_text(folder: Path, text: list[str]) -> None:
    outcome(folder, "".join(text).encode())


@MANY
@given(magic=st.sampled_from([b"\x1f\x8b\x08", b"PK\x03\x04", b"PK\x05\x06"]), rest=st.binary(max_size=300))
def test_any_bytes_behind_the_magic(folder: Path, magic: bytes, rest: bytes) -> None:
    outcome(folder, magic + rest)
