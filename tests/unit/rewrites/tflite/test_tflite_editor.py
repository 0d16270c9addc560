"""Files of TensorFlow Lite are changed and stay whole: ports, signatures, metadata, archives, sharing."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from opscope.core.errors import ModelError
from opscope.rewrites import catalogue
from opscope.rewrites.rewrite import in_groups
from opscope.rewrites.tflite import editor
from support.models.tflite_build import ModelBuilder, Operator, options, small_cnn
from support.rewrites.tflite_rewriting import assert_same, constant, operators, rewrite_file, rewritten

MERGE = catalogue.named("merge-transposes", "tflite")


def transposes(*orders: tuple[int, ...]) -> ModelBuilder:
    """Transposes of one input, one after the other; the last is the output."""
    model = ModelBuilder()
    main, shape = model.main, (2, 3, 4)
    x = main.input("x", shape)
    for number, order in enumerate(orders):
        shape = tuple(shape[axis] for axis in order)  # type: ignore[assignment]
        y = main.tensor(f"y{number}", shape)
        main.op(Operator.TRANSPOSE, [x, main.constant(f"order{number}", order)], [y], options("TransposeOptions"))
        x = y
    main.outputs = [x]
    return model


def test_what_is_not_changed_is_written_as_it_was(tmp_path: Path) -> None:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    model = small_cnn(signature=True)
    model.metadata("min_runtime_version", b"2.4.0")
    model.signature("serving_default", 0, {"image": 0})
    before.write_bytes(model.build())
    editor.save(editor.open_model(before), after)
    assert_same(before, after)
    old, new = (schema.ModelT.InitFromPackedBuf(path.read_bytes()) for path in (before, after))
    assert [bytes(entry.name) for entry in new.metadata] == [b"min_runtime_version"]
    assert bytes(new.buffers[new.metadata[0].buffer].data) == b"2.4.0"
    assert new.signatureDefs[0].signatureKey == b"serving_default"
    assert [list(op.inputs) for op in old.subgraphs[0].operators] == [
        list(op.inputs) for op in new.subgraphs[0].operators
    ]
    assert [t.name for t in old.subgraphs[0].tensors] == [t.name for t in new.subgraphs[0].tensors]
    assert [list(t.shapeSignature) for t in new.subgraphs[0].tensors if t.shapeSignature is not None]


def test_constants_lie_where_kernels_can_read_them(tmp_path: Path) -> None:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    before.write_bytes(small_cnn().build())
    editor.save(editor.open_model(before), after)
    content = after.read_bytes()
    file = schema.Model.GetRootAs(content, 0)
    places = [file.Buffers(number)._tab for number in range(1, file.BuffersLength())]
    assert [tab.Vector(tab.Offset(4)) % 16 for tab in places] == [0] * len(places)


def test_an_output_keeps_its_name_and_others_are_named_after_the_rewrite(tmp_path: Path) -> None:
    before, after, sites = rewritten(transposes((2, 0, 1), (0, 2, 1), (1, 0, 2)), "merge-transposes", tmp_path)
    assert_same(before, after)
    assert operators(after) == ["TRANSPOSE"]
    assert len(sites) == 2
    assert sites[0].removed[0] == "y1"
    assert sites[0].added == ("y1/merge-transposes/TRANSPOSE",)


def test_an_output_that_turns_out_to_be_the_input_is_copied(tmp_path: Path) -> None:
    before, after, _ = rewritten(transposes((2, 0, 1), (1, 2, 0)), "merge-transposes", tmp_path)
    assert_same(before, after)
    assert operators(after) == ["RESHAPE"]


def test_sites_change_nothing_and_groups_choose(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(transposes((2, 0, 1), (0, 2, 1)).build())
    model = editor.open_model(path)
    (site,) = editor.sites(model, MERGE)
    assert site.removed == ("y1", "y0")
    other, none = editor.apply(editor.copy(model), MERGE, in_groups(["another"]))
    assert none == ()
    changed, done = editor.apply(editor.copy(model), MERGE, in_groups([site.group]))
    assert [len(each.graphs[0].ops) for each in (model, other, changed)] == [2, 2, 1]
    assert done[0].group == site.group


def test_tensors_and_constants_that_nothing_reads_any_more_are_left_out(tmp_path: Path) -> None:
    _, after, _ = rewritten(transposes((2, 0, 1), (0, 2, 1)), "merge-transposes", tmp_path)
    table = schema.ModelT.InitFromPackedBuf(after.read_bytes())
    assert {tensor.name for tensor in table.subgraphs[0].tensors} == {b"x", b"y1", b"y1/merge-transposes/permutation"}
    assert len(table.buffers) == 2


def test_a_constant_that_two_tensors_share_is_stored_once(tmp_path: Path) -> None:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    before.write_bytes(small_cnn().build())
    model = editor.open_model(before)
    stored = [tensor.data for tensor in model.graphs[0].tensors if tensor.data is not None]
    editor.save(editor.copy(model), after)
    table = schema.ModelT.InitFromPackedBuf(after.read_bytes())
    assert len(table.buffers) == 1 + len({id(data) for data in stored})


def test_what_is_packed_behind_the_model_stays(tmp_path: Path) -> None:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    before.write_bytes(transposes((2, 0, 1), (0, 2, 1)).build())
    with zipfile.ZipFile(before, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    rewrite_file(before, "merge-transposes", after)
    assert zipfile.ZipFile(after).read("labels.txt") == b"cat\ndog\n"
    assert_same(before, after)


def test_plans_that_speak_of_tensors_by_number_go_with_a_change(tmp_path: Path) -> None:
    model = transposes((2, 0, 1), (0, 2, 1))
    model.metadata("OfflineMemoryAllocation", np.zeros(6, np.int32).tobytes())
    model.metadata("min_runtime_version", b"1.5.0")
    _, after, _ = rewritten(model, "merge-transposes", tmp_path)
    table = schema.ModelT.InitFromPackedBuf(after.read_bytes())
    assert [entry.name for entry in table.metadata] == [b"min_runtime_version"]


def test_results_come_before_their_readers(tmp_path: Path) -> None:
    """A split made where its first slice stood is read by operators before and after the others."""
    model = ModelBuilder()
    main = model.main
    x = main.input("x", (2, 4))
    first, second, total = main.tensor("a", (2, 2)), main.tensor("b", (2, 2)), main.tensor("total", (2, 2))
    size, doubled = main.constant("size", (2, 2)), main.tensor("doubled", (2, 2))
    main.op(Operator.SLICE, [x, main.constant("at0", (0, 0)), size], [first], options("SliceOptions"))
    main.op(Operator.ADD, [first, first], [doubled], options("AddOptions"))
    main.op(Operator.SLICE, [x, main.constant("at2", (0, 2)), size], [second], options("SliceOptions"))
    main.op(Operator.ADD, [doubled, second], [total], options("AddOptions"))
    main.outputs = [total]
    before, after, _ = rewritten(model, "slices-to-split", tmp_path)
    assert operators(after) == ["SPLIT", "ADD", "ADD"]
    assert_same(before, after)


@pytest.mark.parametrize(("cut", "message"), [(2000, "cut short|cannot be changed"), (6, "not a TensorFlow Lite file")])
def test_a_broken_file_is_named_with_the_place(cut: int, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.tflite"
    path.write_bytes(small_cnn().build()[:cut])
    with pytest.raises(ModelError, match=message):
        editor.open_model(path)


def test_every_rewrite_of_the_format_says_what_it_does() -> None:
    entries = catalogue.known("tflite")
    assert len({entry.name for entry in entries}) == len(entries) > 15
    assert all(callable(catalogue.rule_of(entry)) and entry.help and not entry.needs for entry in entries)
    page = Path(__file__).parents[4] / "docs" / "optimize-tflite.md"
    assert {entry.name for entry in entries} <= set(re.findall(r"`([\w-]+)`", page.read_text(encoding="utf-8")))


def test_weights_of_half_the_width_are_stored_as_they_are_read(tmp_path: Path) -> None:
    model = ModelBuilder()
    main = model.main
    x, wide = main.input("x", (2, 3)), main.tensor("wide", (2, 3))
    half = constant(main, np.array([[1, 0.5, 3], [7, -2, 0.1]], np.float16))
    total = main.tensor("total", (2, 3))
    main.op(Operator.DEQUANTIZE, [half], [wide], options("DequantizeOptions"))
    main.op(Operator.ADD, [x, wide], [total], options("AddOptions"))
    main.outputs = [total]
    before, after, _ = rewritten(model, "fold-dequantized-constants", tmp_path)
    assert operators(after) == ["ADD"]
    assert_same(before, after, tolerance=0)


def test_shapes_that_are_given_are_set_with_what_follows(tmp_path: Path) -> None:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"
    before.write_bytes(small_cnn(signature=True).build())
    editor.save(editor.open_model(before, {"image": (3, 8, 8, 3)}), after)
    table = schema.ModelT.InitFromPackedBuf(after.read_bytes()).subgraphs[0]
    shapes = {bytes(tensor.name): (list(tensor.shape), tensor.shapeSignature) for tensor in table.tensors}
    assert shapes[b"image"] == ([3, 8, 8, 3], None)
    assert shapes[b"probabilities"] == ([3, 10], None)
