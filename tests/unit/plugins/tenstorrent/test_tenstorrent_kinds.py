"""Ops of tt-metal in the words of our graphs, as rows that a target is fitted to."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope import api
from opscope.calibration.measurements import read_measurements
from opscope.graph.graph import Graph, Role
from opscope.plugins.tenstorrent.kinds import kind_of, shapes_of, types_of
from opscope.plugins.tenstorrent.rows import Row, Tensor
from support.plugins.importer_samples import SAMPLES

WINDOW = "'sliding_window_config': 'SlidingWindowConfig(input_hw=(8;10); window_hw=(3;3); stride_hw=(2;2))'"


def tensor(
    *shape: int, type_: str = "BFLOAT16", is_input: bool = True, memory: str = "DEV_0_DRAM_INTERLEAVED"
) -> Tensor:
    return Tensor(is_input, 0, shape, shape, type_, memory)


def row(code: str, *tensors: Tensor, attributes: str = "") -> Row:
    nothing = (None,) * 4
    return Row(code, 0, "", None, None, None, 1, *nothing[:3], 64, 64, "HiFi4", "wormhole_b0", "", attributes, tensors)


@pytest.mark.parametrize(
    ("code", "attributes", "kind"),
    [
        ("Matmul", "", "matmul"),
        ("MatmulDeviceOperation", "", "matmul"),
        ("MinimalMatmulOp", "", "matmul"),
        ("OptimizedConvNew", "", "conv"),
        ("BinaryNgDeviceOperation", "{'binary_op_type': 'BinaryOpType::MUL'}", "mul"),
        ("BinaryNgDeviceOperation", "{'binary_op_type': 'BinaryOpType::LOGADDEXP'}", "binary"),
        ("UnaryDeviceOperation", "op_type=UnaryOpType::RECIP;param={}", "reciprocal"),
        ("UnaryDeviceOperation", "op_type=UnaryOpType::MISH", "mish"),
        ("UnaryDeviceOperation", "op_type=UnaryOpType::CBRT", "unary"),
        ("LayerNormDeviceOperation", "{'norm_type': 'LayerNormType::RMSNORM'}", "rms_norm"),
        ("LayerNormDeviceOperation", "{'norm_type': 'LayerNormType::LAYERNORM'}", "layer_norm"),
        ("Pool2D", "'pool_type_': 'Pool2DType::MAX_POOL2D'", "max_pool"),
        ("Pool2D", "", ""),
        ("TilizeWithValPadding", "", "pad"),
        ("HaloDeviceOperation", "", ""),  # only changes how a tensor lies
        ("AllGatherAsyncDeviceOperation", "", ""),  # of several devices
    ],
)
def test_names_of_all_releases_have_a_kind_where_our_graphs_have_a_word(code: str, attributes: str, kind: str) -> None:
    assert kind_of(row(code, attributes=attributes)) == kind


def test_a_convolution_has_the_image_and_the_window_that_its_attributes_tell() -> None:
    rows = (tensor(1, 1, 120, 4), tensor(1, 1, 36, 16, type_="BFLOAT8_B"), tensor(1, 1, 20, 16, is_input=False))
    told = row("Conv2dDeviceOperation", *rows, attributes="'input_tensor_shape': '{1; 8; 10; 3}'; " + WINDOW)
    assert shapes_of(told) == "1x3x8x10;16x3x3x3->1x16x20x1"
    assert types_of(told) == "bf16;bfp8->bf16"


def test_a_result_that_was_made_before_the_op_is_no_input() -> None:
    made = row("UnaryDeviceOperation", tensor(1, 1, 32, 64), tensor(1, 1, 32, 64), tensor(1, 1, 32, 64, is_input=False))
    assert shapes_of(made) == "1x1x32x64->1x1x32x64"


def test_ops_of_an_imported_table_are_rows_with_types_places_and_cores(tmp_path: Path) -> None:
    api.import_profile([SAMPLES / "tenstorrent_ops.csv"], tmp_path / "run")
    product, *_ = read_measurements([tmp_path / "run"])
    graph = product.model
    assert isinstance(graph, Graph)
    assert (product.network, product.cores) == ("matmul 1x1x500x1024, 1x1x1024x2048, 1x1x500x2048", 64)
    assert [tensor.dtype.label for tensor in graph.tensors] == ["bf16", "bfp8", "bf16"]
    assert [tensor.role for tensor in graph.tensors] == [Role.INPUT, Role.CONSTANT, Role.ACTIVATION]
    assert graph.outputs == ()  # it stays in local memory
    assert product.seconds == pytest.approx(40.03e-6)  # of one device: two ran it at once
