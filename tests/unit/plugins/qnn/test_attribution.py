"""Which node of the model the kernels of a compiled graph belong to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.plugins.qnn.attribution import Attribution
from opscope.plugins.qnn.compilation import CompiledGraph
from opscope.plugins.qnn.importers.op_trace import MappedOp
from opscope.plugins.qnn.importers.schematic import CompiledOp, Schematic

EMPTY = Schematic("g", {}, {}, {}, (), {}, (), ())


def graph(
    nodes: dict[str, tuple[str, ...]], kernels: dict[str, tuple[str, ...]]
) -> tuple[CompiledGraph, dict[str, int]]:
    """Nodes with the nodes they read, and the kernels that bear the name of each; with the id of every kernel."""
    number = {name: place for place, name in enumerate(nodes, start=16)}
    before = {
        number[name]: CompiledOp(number[name], "q::Op", tuple(number[source] for source in sources), "Float16", (1,))
        for name, sources in nodes.items()
    }
    ids = {
        kernel: (place + 1 << 32) | number[name] for name, row in kernels.items() for place, kernel in enumerate(row)
    }
    ops = {op: CompiledOp(op, f"q::{kernel}", (), "Float16", (1,)) for kernel, op in ids.items()}
    schematic = replace(
        EMPTY,
        names={place: name for name, place in number.items()},
        before=before,
        ops=ops,
        flags=dict.fromkeys(ops, ("uses_hvx",)),
    )
    return CompiledGraph("graph", None, schematic, None), ids


def owners(
    nodes: dict[str, tuple[str, ...]],
    kernels: dict[str, tuple[str, ...]],
    types: dict[str, str],
    macs: dict[str, int] | None = None,
    mapped: tuple[MappedOp, ...] = (),
) -> tuple[dict[str, str], Attribution]:
    compiled, ids = graph(nodes, kernels)
    found = Attribution(compiled, mapped, types, macs)
    return {kernel: found.name(op) for kernel, op in ids.items()}, found


def test_the_convolution_of_a_fused_activation_is_the_convolution() -> None:
    chain = {"conv": (), "sig": ("conv",), "mul": ("conv", "sig")}
    kernels = {"mul": ("ConvLayer.fp16.s1.tcm", "ConvLayer.opt.weights_to_vtcm", "hnnx::BlockZapOp")}
    types = {"conv": "Conv", "sig": "Sigmoid", "mul": "Mul"}
    found, all_ = owners(chain, kernels, types, {"conv": 1000})
    assert set(found.values()) == {"conv"}
    assert all_.done_by == {"sig": "conv", "mul": "conv"}
    assert all_.macs("conv") == 1000


def test_a_kernel_of_its_own_type_stays_with_its_node() -> None:
    chain = {"softmax": (), "product": ("softmax",)}
    kernels = {"product": ("Softmax", "ConvLayer.fp16.s1.tcm", "Mul.fp16")}
    found, all_ = owners(chain, kernels, {"softmax": "Softmax", "product": "MatMul"}, {"product": 10})
    assert found == {"Softmax": "softmax", "ConvLayer.fp16.s1.tcm": "product", "Mul.fp16": "product"}
    assert all_.done_by == {}


def test_a_reshape_that_covers_a_product_is_the_product() -> None:
    chain = {"turn": (), "gemm": ("turn",), "shape": ("gemm",)}
    kernels = {"shape": ("ConvLayer.fp16.s1.tcm", "Concat", "ForceFormat_Crouton")}
    found, _ = owners(chain, kernels, {"turn": "Transpose", "gemm": "Gemm", "shape": "Reshape"}, {"gemm": 5})
    assert set(found.values()) == {"gemm"}


def test_without_counts_the_compilers_name_stays() -> None:
    found, all_ = owners({"conv": (), "relu": ("conv",)}, {"relu": ("ConvLayer.s1",)}, {"conv": "Conv", "relu": "Relu"})
    assert found == {"ConvLayer.s1": "relu"}
    assert all_.macs("relu") is None


def test_slices_of_a_gather_are_the_gather() -> None:
    chain = {"gather": (), "Transpose_token_7": ("gather",)}
    kernels = {"Transpose_token_7": ("SlicePad_shape_inplace", "Transpose_impl")}
    found, _ = owners(chain, kernels, {"gather": "Gather"}, mapped=(MappedOp("Transpose_token_7", "Transpose", ()),))
    assert found == {"SlicePad_shape_inplace": "gather", "Transpose_impl": "Transpose_token_7"}


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("qkv/MatMul/MatMulAddFusion_2", "qkv/MatMul"),
        ("Reshape_1_new_reshape", "Reshape_1"),
        ("Conv_token_12", "Conv"),
        ("Reshape_12", "Reshape_12"),  # not made of Reshape_1, nor of Reshape
        ("other", "other"),
    ],
)
def test_what_the_runtime_makes_of_a_node_bears_its_name(name: str, node: str) -> None:
    types = {"qkv/MatMul": "MatMul", "Reshape_1": "Reshape", "Reshape": "Reshape", "Conv": "Conv"}
    found, _ = owners({name: ()}, {name: ("Kernel",)}, types)
    assert found == {"Kernel": node}


def test_of_the_nodes_that_an_op_was_made_from_the_one_with_most_macs_counts() -> None:
    made = MappedOp("product_2", "MatMul", ("q", "product", "cast"))
    types = {"q": "DynamicQuantizeLinear", "cast": "Cast", "product": "MatMulInteger"}
    found, _ = owners({"product_2": ()}, {"product_2": ("Kernel",)}, types, {"product": 7}, (made,))
    assert found == {"Kernel": "product"}


def test_a_convolution_whose_padding_alone_bears_its_name_is_in_the_kernels_of_the_next() -> None:
    chain = {"conv": (), "relu": ("conv",)}
    kernels = {"conv": ("hnnx::BlockZapOp",), "relu": ("ConvLayer.fp16.s1.tcm",)}
    found, all_ = owners(chain, kernels, {"conv": "Conv", "relu": "Relu"}, {"conv": 9})
    assert set(found.values()) == {"conv"}
    assert all_.done_by == {"relu": "conv"}


def test_a_product_of_an_unknown_kernel_keeps_it_where_the_next_multiplies_nothing() -> None:
    chain = {"product": (), "add": ("product",)}
    kernels = {"product": ("fast_rows",), "add": ("Add.fp16",)}
    found, _ = owners(chain, kernels, {"product": "MatMul", "add": "Add"}, {"product": 9})
    assert found == {"fast_rows": "product", "Add.fp16": "add"}
