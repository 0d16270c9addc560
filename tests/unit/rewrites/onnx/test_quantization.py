"""Rewrites of quantised models, on drawn shapes and grids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opscope.rewrites.onnx import editor, quantization
from opscope.rewrites.rewrite import RewriteContext, RewriteError
from support.rewrites.rewriting import assert_same, operators, rewrite_file
from support.rewrites.weighted_models import drawn, model, rewrite_to

GRIDS = st.tuples(st.sampled_from([0.02, 0.05]), st.integers(-20, 20))
MOVES = st.sampled_from(
    [
        "{y} = Reshape({x}, shape)",
        "{y} = Transpose <perm = [0, 2, 3, 1]> ({x})",
        "{y} = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> ({x})",
        "{y} = Concat <axis = 1> ({x}, {x})",
        "{y} = Slice({x}, one, three, one)",
        "{y} = SpaceToDepth <blocksize = 2> ({x})",
    ]
)
PAIR = "{y}_q = QuantizeLinear({x}, {s}, {z}) {y} = DequantizeLinear({y}_q, {s}, {z})"


def _model(grid: tuple[float, int], move: str, before: str, after: str) -> onnx.ModelProto:
    """x, maybe on a grid, moved, maybe on a grid again."""
    scale, zero = grid
    pairs = {"same": PAIR.format(x="{x}", y="{y}", s="s", z="z"), "other": PAIR.format(x="{x}", y="{y}", s="t", z="z")}
    first = pairs.get(before, "{y} = Relu({x})").format(x="x", y="a")
    last = pairs.get(after, "{y} = Relu({x})").format(x="b", y="c")
    body = f"{first} {move.format(x='a', y='b')} {last} y = Neg(c)"
    constants = {"s": np.array(scale), "t": np.array(scale * 1.5), "z": np.array(zero, np.int8)}
    return model("T[1,4,6,6] x", "T[] y", body, shape=[4, 36], one=[1], three=[3], **constants)


@settings(max_examples=8)
@given(GRIDS, MOVES)
def test_a_pair_on_the_same_grid_comes_and_goes(grid: tuple[float, int], move: str) -> None:
    kind = move.split()[2].partition("(")[0]
    pair = ["QuantizeLinear", "DequantizeLinear"]
    bare = [*pair, kind, "Relu", "Neg"]
    assert rewrite_to(_model(grid, move, "same", "none"), "pairs-around-moves", tolerance=0) == [
        *pair,
        kind,
        *pair,
        "Relu",
        "Neg",
    ]
    assert rewrite_to(_model(grid, move, "same", "same"), "pairs-off-moves", tolerance=0) == [*pair, kind, "Neg"]
    for rewrite in ("pairs-off-moves", "pairs-before-moves"):
        assert rewrite_to(_model(grid, move, "same", "none"), rewrite, tolerance=0) == bare


@settings(max_examples=8)
@given(GRIDS, MOVES)
def test_what_is_quantised_after_it_is_moved_is_so_before(grid: tuple[float, int], move: str) -> None:
    found = rewrite_to(_model(grid, move, "none", "same"), "pairs-before-moves", tolerance=0)
    kind = move.split()[2].partition("(")[0]
    pairs = 2 if kind == "Concat" else 1
    assert sorted(found) == sorted(["Relu", *["QuantizeLinear", "DequantizeLinear"] * (pairs + 1), kind, "Neg"])


def test_pairs_on_another_grid_stay() -> None:
    made = _model((0.02, 3), "{y} = Reshape({x}, shape)", "same", "other")
    for rewrite in ("pairs-around-moves", "pairs-off-moves", "pairs-before-moves"):
        assert rewrite_to(made, rewrite, tolerance=0) == [
            *["QuantizeLinear", "DequantizeLinear", "Reshape"],
            *["QuantizeLinear", "DequantizeLinear", "Neg"],
        ]


@settings(max_examples=10)
@given(st.integers(1, 4), st.booleans(), st.booleans(), st.booleans())
def test_scales_of_the_run_are_given_up(rows: int, by_column: bool, swapped: bool, convolution: bool) -> None:
    by_column = by_column and not convolution
    body = """d, e, f = DynamicQuantizeLinear(x)
        m = {} (d, w, f, z) c = Cast <to = 1> (m) s = Mul({}) y = Mul({})"""
    kind, shape = ("ConvInteger", [1, 16, rows, 4]) if convolution else ("MatMulInteger", [rows, 16])
    made = model(
        f"T{shape} x",
        "T[] y",
        body.format(kind, "k, e" if swapped else "e, k", "s, c" if swapped else "c, s"),
        w=np.random.default_rng(1).integers(0, 255, (6, 16, 1, 1) if convolution else (16, 6)).astype(np.uint8),
        z=np.full(6 if by_column else (), 120, np.uint8),
        k=np.linspace(0.01, 0.03, 6) if by_column else np.array(0.02),
    )
    assert rewrite_to(made, "dynamic-to-float", tolerance=0.02) == ["Conv" if convolution else "MatMul"]


@settings(max_examples=8)
@given(
    st.sampled_from(["Sigmoid", "HardSigmoid", "Tanh", "Softmax"]),
    st.sampled_from([np.int8, np.uint8, np.int16]),
)
def test_a_bounded_function_has_a_grid_without_calibration(kind: str, dtype: type[np.integer]) -> None:
    opset = 21 if dtype is np.int16 else 17
    body = f"{PAIR.format(x='x', y='a', s='s', z='z')} b = {kind}(a) y = Neg(b)"
    made = model("T[2,6] x", "T[] y", body, opset=opset, s=np.array(0.02), z=np.array(7, dtype))
    pair = ["QuantizeLinear", "DequantizeLinear"]
    found = rewrite_to(made, "pairs-after-bounded", tolerance=1 / 64)
    assert found == [*pair, kind, *pair, "Neg"]


def test_a_fused_product_is_a_product_and_a_sum(tmp_path: Path) -> None:
    node = onnx.helper.make_node(
        "DynamicQuantizeMatMul", ["x", "w", "k", "z", "b"], ["y"], domain="com.microsoft", name="fused"
    )
    constants = {
        "w": np.random.default_rng(1).integers(-63, 63, (8, 4)).astype(np.int8),
        "k": np.array(0.02, np.float32),
        "z": np.array(0, np.int8),
        "b": drawn(4).astype(np.float32),
    }
    ports = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [3, 8]), ("y", [3, 4]))]
    held = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:], held)
    imports = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8), before)
    assert rewrite_file(before, "dynamic-to-float", after)
    assert operators(after) == ["MatMul", "Add"]
    assert_same(before, after, tolerance=0.02)


@pytest.mark.parametrize("directions", [1, 2])
def test_an_lstm_quantised_at_run_time_is_one_in_floats(directions: int, tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    hidden, kind = 5, "forward" if directions == 1 else "bidirectional"
    weights = {"w": drawn(directions, 4 * hidden, 6), "r": drawn(directions, 4 * hidden, hidden, seed=2)}
    body = f'y, h, c = LSTM <hidden_size = {hidden}, direction = "{kind}"> (x, w, r)'
    onnx.save(model("T[3,2,6] x", "T[] y, T[] h", body, **weights), tmp_path / "float.onnx")
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    quantize_dynamic(tmp_path / "float.onnx", before, op_types_to_quantize=["LSTM"])
    assert operators(before) == ["DynamicQuantizeLSTM"]
    assert rewrite_file(before, "dynamic-to-float", after)
    assert operators(after) == ["LSTM"]
    assert_same(before, after, tolerance=0.05)
    assert_same(tmp_path / "float.onnx", after, tolerance=0.05)


def _quantized(tmp_path: Path, reach: float | None) -> float:
    """A convolution quantised by data of a reach, or by none; the largest number that its input can be."""
    made = model("T[1,4,8,8] x", "T[] y", "c = Conv(x, w) y = Relu(c)", w=drawn(4, 4, 3, 3))
    onnx.save(made, tmp_path / "float.onnx")
    samples = np.random.default_rng(0).uniform(-1, 1, (2, 4, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=samples / abs(samples).max() * (reach or 1))
    data = None if reach is None else tmp_path / "data.npz"
    found = quantization.quantize_static(editor.open_model(tmp_path / "float.onnx"), RewriteContext(data))
    editor.save(found, tmp_path / "quantized.onnx")
    first = next(node for node in found.graph if node.op_type == "QuantizeLinear" and node.inputs[0].name == "x")
    return float(first.inputs[1].const_value.numpy()) * 127.5


@pytest.mark.slow  # a process of its own calibrates
def test_a_model_is_calibrated_with_what_is_given(tmp_path: Path) -> None:
    assert _quantized(tmp_path, 3.0) == pytest.approx(3.0, rel=0.02)
    assert _quantized(tmp_path, 0.5) == pytest.approx(0.5, rel=0.02)
    assert _quantized(tmp_path, None) == pytest.approx(1.0, rel=0.02)  # as random samples are


@pytest.mark.slow
def test_a_model_that_is_quantised_already_is_refused(tmp_path: Path) -> None:
    _quantized(tmp_path, 3.0)
    with pytest.raises(RewriteError, match="quantised"):
        quantization.quantize_static(editor.open_model(tmp_path / "quantized.onnx"), RewriteContext())


@pytest.mark.slow
def test_scales_of_the_run_become_fixed_ones(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    onnx.save(model("T[2,8] x", "T[] y", "m = MatMul(x, w) y = Relu(m)", w=drawn(8, 8)), tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "before.onnx")
    assert "MatMulInteger" in operators(tmp_path / "before.onnx")
    found = quantization.quantize_static(editor.open_model(tmp_path / "before.onnx"), RewriteContext())
    kinds = {node.op_type for node in found.graph}
    assert {"QuantizeLinear", "DequantizeLinear", "MatMul"} <= kinds
    assert not {"DynamicQuantizeLinear", "MatMulInteger"} & kinds


def test_data_that_does_not_fit_is_told(tmp_path: Path) -> None:
    onnx.save(model("T[1,4] x", "T[] y", "y = Relu(x)"), tmp_path / "float.onnx")
    opened = editor.open_model(tmp_path / "float.onnx")
    with pytest.raises(RewriteError, match=r"none\.npz"):
        quantization.quantize_static(opened, RewriteContext(tmp_path / "none.npz"))
