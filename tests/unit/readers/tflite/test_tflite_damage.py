"""Damaged, hostile and impossible files: one line that says where."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from opscope.core.errors import ModelError
from opscope.readers.tflite import read_tflite
from support.models.tflite_build import BY_HAND, ModelBuilder, Operator, small_cnn


def patched(offset: int, value: int, layout: str = "<I") -> bytes:
    """The file typed by hand, with one number changed."""
    content = bytearray(BY_HAND)
    struct.pack_into(layout, content, offset, value)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "byte 0x0: the file is empty"),
        (b"TFL3", "byte 0x4: b'' is not a TensorFlow Lite file; expected b'TFL3'"),
        (b"\x08\x07\x12\x0bpytorch1", "byte 0x4: b'pyto' is not a TensorFlow Lite file"),
        (BY_HAND[:8], "byte 0x0: points to 0x14; the file ends at 0x8"),
        (BY_HAND[:0x20], "byte 0x14: table of 16 bytes reaches past the end of the file, 0x20"),
        (patched(0x14, 0x7FFFFFFF), r"byte 0x14: its vtable would be at -0x7fffffeb"),
        (patched(0x08, 3, "<H"), "byte 0x8: vtable of 3 bytes for a table of 16 cannot be"),
        (patched(0x0C, 99, "<H"), "byte 0x8: field 99 bytes into a table of 16"),
        (patched(0x18, 7), "byte 0x14: schema version 7; only version 3 exists"),
        (patched(0x24, 0xFFFFFFFF), "byte 0x24: 17179869180 bytes of elements reach past the end"),
        (patched(0x28, 0xFFFFFF), "byte 0x24: a table would be at 0x1000027"),
        (patched(0x3C, 0), "byte 0x14: no subgraph: the file holds no model"),
        (patched(0xA0, 0xFFFF), "byte 0xa0: 65535 bytes of elements reach past the end"),
        (patched(0x98, -5, "<i"), r"byte 0x7c: tensor 'x' has shape \[-5, 4\]; expected extents from 0"),
        (patched(0xB4, 9), "subgraph 0: tensor 9 does not exist; the subgraph has 2"),
        (patched(0xE4, 9), "subgraph 0 operator 0: tensor 9 does not exist; the subgraph has 2"),
        (patched(0xE4, -2, "<i"), "subgraph 0 operator 0: tensor -2 does not exist"),
    ],
)
def test_damage_is_reported_with_its_place(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "bad.tflite"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=rf"^{path}: ({problem})") as caught:
        read_tflite(path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.tflite: cannot be read: No such file or directory$"):
        read_tflite(tmp_path / "none.tflite")


def test_a_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be read: Is a directory$"):
        read_tflite(tmp_path)


def test_an_operator_code_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.operators[2].opcodeIndex = 77
    with pytest.raises(ModelError, match="subgraph 0 operator 2: operator code 77 does not exist; the file has 5"):
        model.graph(tmp_path)


def test_a_negative_operator_code_is_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.table.operatorCodes[0].builtinCode = model.table.operatorCodes[0].deprecatedBuiltinCode = -3
    with pytest.raises(ModelError, match=r"byte 0x[0-9a-f]+: operator code -3; expected 0 or more"):
        model.graph(tmp_path)


def test_a_shape_too_large_to_be_is_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.tensors[3].shape = [2**31 - 1] * 3
    with pytest.raises(ModelError, match=r"tensor 'conv' has shape \[2147483647, 2147483647, 2147483647\]; expected"):
        model.graph(tmp_path)


def test_a_shape_of_absurd_rank_is_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.tensors[3].shape = [1] * 65
    with pytest.raises(ModelError, match="shape of rank 65; expected at most 64"):
        model.graph(tmp_path)


def test_a_buffer_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.tensors[1].buffer = 500
    with pytest.raises(ModelError, match="buffer 500: does not exist; the file has 7"):
        model.graph(tmp_path)


def test_weights_cut_off_are_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.table.buffers[1].data, model.table.buffers[1].offset, model.table.buffers[1].size = None, 1 << 33, 64
    with pytest.raises(ModelError, match=r"buffer 1: 64 bytes at 0x200000000; the file ends at 0x"):
        model.graph(tmp_path)


def test_reading_before_writing_names_operator_and_tensor(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.operators.reverse()
    with pytest.raises(ModelError, match="subgraph 0 operator 0: SOFTMAX: reads tensor 10 'dense' before the operator"):
        model.graph(tmp_path)


def test_an_operator_that_reads_its_own_output_is_an_error(tmp_path: Path) -> None:
    model = ModelBuilder()
    y = model.main.tensor("y", (1,))
    model.main.op(Operator.ABS, [y], [y])
    with pytest.raises(ModelError, match="ABS: reads tensor 0 'y' before the operator that writes it"):
        model.graph(tmp_path)


def test_an_operator_without_output_is_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.operators[-1].outputs = []
    with pytest.raises(ModelError, match="operator 4: SOFTMAX: no output; expected at least one"):
        model.graph(tmp_path)


@pytest.mark.parametrize("inputs", [[], [0], [-1, 1, 2], [0, -1, 2]])
def test_a_convolution_without_data_or_weights_is_reported(tmp_path: Path, inputs: list[int]) -> None:
    model = small_cnn()
    model.main.operators[0].inputs = inputs
    with pytest.raises(ModelError, match="operator 0: CONV_2D: an input is missing; expected at least 2"):
        model.graph(tmp_path)


def test_weights_without_an_element_are_reported(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.tensors[1].shape = [0, 3, 3, 1]
    with pytest.raises(
        ModelError, match=r"operator 0: CONV_2D: input 1 of shape \[0, 3, 3, 1\]; expected at least one"
    ):
        model.graph(tmp_path)


def test_writing_twice_names_operator_and_tensor(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.operators.append(model.main.operators[-1])
    with pytest.raises(
        ModelError, match="operator 5: SOFTMAX: writes tensor 11 'probabilities', which is written already"
    ):
        model.graph(tmp_path)


def test_names_in_messages_are_made_safe(tmp_path: Path) -> None:
    model = small_cnn()
    model.main.tensors[10].name = b"\x1b[31m\nred"
    model.main.operators.reverse()
    with pytest.raises(ModelError) as caught:
        model.graph(tmp_path)
    assert r"'\\x1b[31m\\nred'" in str(caught.value)


def shared_vector(tensors: int, extents: int) -> bytes:
    """A file in which many tensors point at one long vector."""
    head = bytearray(BY_HAND[:0x64])
    struct.pack_into("<H", head, 0x4E, 0)  # the subgraph has no operators
    base = 0x64 + 4 + 4 * tensors
    vtable = struct.pack("<12H", 20, 8, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0)  # field 7 only: the signature
    table_at = base + len(vtable)
    body = bytearray(struct.pack("<I", tensors))
    body += b"".join(struct.pack("<I", table_at - (0x68 + 4 * i)) for i in range(tensors))
    body += (
        vtable
        + struct.pack("<iI", len(vtable), 4)
        + struct.pack("<I", extents)
        + struct.pack(f"<{extents}i", *[1] * extents)
    )
    empty_at = 0x64 + len(body)
    struct.pack_into("<I", head, 0x58, empty_at - 0x58)
    struct.pack_into("<I", head, 0x5C, empty_at - 0x5C)
    return bytes(head + body + struct.pack("<I", 0))


def test_a_vector_longer_than_any_graph_needs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.tflite"
    path.write_bytes(shared_vector(1, (1 << 20) + 1))
    with pytest.raises(ModelError, match="vector of 1048577 elements; expected at most 1048576"):
        read_tflite(path)


def test_one_vector_used_by_very_many_tensors_does_not_multiply_the_work(tmp_path: Path) -> None:
    path = tmp_path / "shared.tflite"
    path.write_bytes(shared_vector(100_000, 100_000))
    with pytest.raises(ModelError, match="the same bytes are used too many times; a sound file shares little"):
        read_tflite(path)
    path.write_bytes(shared_vector(10, 3))
    assert len(read_tflite(path).tensors) == 10
