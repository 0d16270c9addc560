"""Whatever the bytes, a TensorFlow Lite file is either a Graph or one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opscope.core.errors import ModelError
from opscope.graph.graph import Graph
from opscope.readers.tflite import read_tflite
from support.draws import draws
from support.models.tflite_build import ModelBuilder, Operator, options, small_cnn


def rich_model() -> bytes:
    """Control flow, a recurrent cell, constants that are parameters, metadata and signatures in one small file."""
    model = ModelBuilder()
    main = model.main
    x = main.input("x", (2, 3, 4), signature=(-1, 3, 4))
    turned = main.tensor("turned", (2, 4, 3), signature=(-1, 4, 3))
    main.op(Operator.TRANSPOSE, [x, main.constant("order", (0, 2, 1))], [turned])
    weights = [main.tensor(f"w{i}", (5, 4), data=bytes(80)) for i in range(4)]
    recurrent = [main.tensor(f"r{i}", (5, 5), data=bytes(100)) for i in range(4)]
    state = [main.tensor(f"s{i}", (2, 5), is_variable=True) for i in range(2)]
    y = main.tensor("y", (2, 3, 5))
    lstm = [x, *weights, *recurrent, -1, -1, -1, -1, -1, -1, -1, -1, -1, *state]
    main.op(Operator.UNIDIRECTIONAL_SEQUENCE_LSTM, lstm, [y], options("UnidirectionalSequenceLSTMOptions"))
    z = main.tensor("z", (2, 3, 5))
    main.op(Operator.WHILE, [y], [z], options("WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2))
    for name in ("cond", "body"):
        inner = model.subgraph(name)
        inner.op(Operator.ABS, [inner.input("in", (2, 3, 5))], [inner.tensor("out", (2, 3, 5))])
        inner.outputs = [1]
    main.op("ethos-u", [z], [main.tensor("compiled", (2, 3))])
    main.outputs = [z]
    model.metadata("min_runtime_version", b"2.5.0")
    model.signature("serving_default", 0, {"x": 0})
    return model.build()


MODELS = [small_cnn(signature=True).build(), rich_model()]


def outcome(folder: Path, content: bytes) -> Graph | str:
    path = folder / "fuzzed.tflite"
    path.write_bytes(content)
    try:
        return read_tflite(path)
    except ModelError as error:
        message = str(error)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def test_the_models_are_sound(folder: Path) -> None:
    assert all(isinstance(outcome(folder, content), Graph) for content in MODELS)


@pytest.mark.parametrize("content", MODELS)
def test_a_file_cut_anywhere_is_refused_or_read(folder: Path, content: bytes) -> None:
    refused = sum(isinstance(outcome(folder, content[:length]), str) for length in range(len(content)))
    assert refused > len(content) // 2


@settings(max_examples=draws(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.sampled_from(MODELS),
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 7)), min_size=1, max_size=8),
)
def test_flipped_bits_are_refused_or_read(folder: Path, content: bytes, flips: list[tuple[float, int]]) -> None:
    damaged = bytearray(content)
    for place, bit in flips:
        damaged[int(place * (len(content) - 1))] ^= 1 << bit
    outcome(folder, bytes(damaged))


@settings(max_examples=draws(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.sampled_from(MODELS),
    place=st.floats(0, 1),
    word=st.sampled_from([0, 1, 4, 0x7F, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]) | st.integers(0, 4096),
)
def test_a_word_of_any_value_anywhere_is_refused_or_read(folder: Path, content: bytes, place: float, word: int) -> None:
    start = int(place * (len(content) // 4 - 1)) * 4
    outcome(folder, content[:start] + word.to_bytes(4, "little") + content[start + 4 :])


@settings(max_examples=draws(3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tail=st.binary(max_size=512))
def test_random_bytes_behind_the_identifier_are_refused(folder: Path, tail: bytes) -> None:
    outcome(folder, b"\x08\0\0\0TFL3" + tail)
