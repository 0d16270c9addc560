"""Damaged ONNX files: a Graph or a ModelError, nothing else, soon."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from opscope.core.errors import ModelError
from opscope.core.protobuf import varint
from opscope.graph.graph import Graph
from opscope.readers.onnx import looks_like_onnx, read_onnx
from opscope.readers.onnx.wire import Wire
from support.draws import draws

SETTINGS = settings(
    max_examples=draws(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


@cache
def sample() -> bytes:
    """A small model with a bit of everything: weights, a loop, a function, a Constant node."""
    node, value = helper.make_node, helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Add", ["s", "w"], ["t"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("s", TensorProto.FLOAT, [2, 3])],
        [value("on", TensorProto.BOOL, []), value("t", TensorProto.FLOAT, [2, 3])],
    )
    twice = helper.make_function("f", "F", ["a"], ["b"], [node("Exp", ["a"], ["b"])], [helper.make_opsetid("", 17)])
    graph = helper.make_graph(
        [
            node("Constant", [], ["m"], value=helper.make_tensor("m", TensorProto.INT64, [], [4])),
            node("Loop", ["m", "", "x"], ["h"], body=body),
            node("F", ["h"], ["e"], domain="f"),
            node("Softmax", ["e"], ["y"], axis=-1),
        ],
        "g",
        [value("x", TensorProto.FLOAT, [2, 3])],
        [value("y", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor("w", TensorProto.FLOAT, [3], [1, 2, 3])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    model = helper.make_model(graph, functions=[twice], opset_imports=imports, ir_version=10)
    content: bytes = model.SerializeToString()
    return content


def read(folder: Path, content: bytes) -> Graph | ModelError:
    path = folder / "fuzz.onnx"
    path.write_bytes(content)
    try:
        return read_onnx(path)
    except ModelError as error:
        assert str(error).startswith(str(path))  # noqa: PT017 - other errors must propagate
        assert "\n" not in str(error)  # noqa: PT017
        return error


def test_the_sample_itself_is_read(tmp_path: Path) -> None:
    assert isinstance(read(tmp_path, sample()), Graph)


def test_a_model_cut_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    for end in range(len(sample())):
        read(tmp_path, sample()[:end])


def test_one_byte_changed_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    for offset in range(len(sample())):
        for flip in (0x01, 0x80, 0xFF):
            content = bytearray(sample())
            content[offset] ^= flip
            read(tmp_path, bytes(content))


@SETTINGS
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=2, max_size=12))
def test_many_bytes_changed_are_refused_or_read(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    content = bytearray(sample())
    for offset, flip in changes:
        content[offset % len(content)] ^= flip
    read(tmp_path, bytes(content))


@SETTINGS
@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_read(tmp_path: Path, content: bytes) -> None:
    looks_like_onnx(content, len(content))
    read(tmp_path, content)


@SETTINGS
@given(st.binary(max_size=100))
def test_random_bytes_inside_a_graph_are_refused_or_read(tmp_path: Path, content: bytes) -> None:
    read(tmp_path, b"\x3a" + varint(len(content)) + content)


@given(st.integers(0, 2**64 - 1))
def test_a_varint_comes_back_as_it_was_written(number: int) -> None:
    content = varint(number)
    assert Wire(content, "").varint(0, len(content)) == (number, len(content))
