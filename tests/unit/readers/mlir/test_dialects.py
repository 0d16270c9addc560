"""StableHLO, PyTorch's own operations and linalg's products as the kinds that they are, with their work."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.estimate.work import work_of
from opscope.graph.graph import Graph, Op, Role
from opscope.readers import read_model

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

ir = pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")


def read(folder: Path, arguments: dict[str, str], body: str, result: str) -> Graph:
    """A function whose last value is `%r`."""
    listed = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    path = folder / "m.mlir"
    path.write_text(f"func.func @main({listed}) -> {result} {{\n{body}\nreturn %r : {result}\n}}\n")
    return read_model(path)


def macs(graph: Graph) -> int:
    return sum(work_of(op, graph).macs for op in graph.ops)


def tensor(*extents: int, kind: str = "bf16") -> str:
    return f"tensor<{'x'.join(map(str, (*extents, kind)))}>"


def torch(*extents: int, kind: str = "bf16") -> str:
    return f"!torch.vtensor<[{','.join(map(str, extents))}],{kind}>"


# -- transforms


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "%r = stablehlo.fft %a, type = RFFT, length = [512]"
            " : (tensor<2x16x512xf32>) -> tensor<2x16x257xcomplex<f32>>",
            {"axes": (2,), "lengths": (512,)},
        ),
        (
            "%r, %i = tosa.rfft2d %a : (tensor<2x16x512xf32>) -> (tensor<2x16x257xf32>, tensor<2x16x257xf32>)",
            {"axes": (1, 2), "lengths": (16, 512)},
        ),
    ],
)
def test_transforms_say_their_axes_and_lengths(tmp_path: Path, body: str, expected: dict[str, object]) -> None:
    kind = "complex<f32>" if "stablehlo" in body else "f32"
    graph = read(tmp_path, {"a": tensor(2, 16, 512, kind="f32")}, body, tensor(2, 16, 257, kind=kind))
    assert (graph.ops[0].kind, graph.ops[0].attributes) == ("fft", expected)


# -- linalg


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("dot", ((128,), (128,), ()), 128),
        ("matvec", ((64, 128), (128,), (64,)), 64 * 128),
        ("vecmat", ((128,), (128, 32), (32,)), 128 * 32),
        ("batch_matvec", ((2, 64, 128), (2, 128), (2, 64)), 2 * 64 * 128),
        ("batch_vecmat", ((2, 128), (2, 128, 32), (2, 32)), 2 * 128 * 32),
        ("matmul", ((64, 128), (128, 32), (64, 32)), 64 * 128 * 32),
        ("batch_matmul", ((2, 64, 128), (2, 128, 32), (2, 64, 32)), 2 * 64 * 128 * 32),
        ("batch_reduce_matmul", ((2, 64, 128), (2, 128, 32), (64, 32)), 2 * 64 * 128 * 32),
        ("mmt4d", ((2, 3, 8, 4), (5, 3, 8, 4), (2, 5, 8, 8)), 2 * 5 * 3 * 8 * 8 * 4),
    ],
)
def test_every_named_product_has_its_macs(tmp_path: Path, name: str, shapes: Shapes, expected: int) -> None:
    a, b, c = (tensor(*shape, kind=kind) for shape, kind in zip(shapes, ("i8", "i8", "i32"), strict=True))
    body = f"%e = tensor.empty() : {c}\n%r = linalg.{name} ins(%a, %b : {a}, {b}) outs(%e : {c}) -> {c}"
    assert macs(read(tmp_path, {"a": a, "b": b}, body, c)) == expected


# -- StableHLO


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("add", "add"),
        ("subtract", "sub"),
        ("multiply", "mul"),
        ("divide", "div"),
        ("maximum", "maximum"),
        ("power", "pow"),
    ],
)
def test_elementwise_operations_are_what_they_are_called(tmp_path: Path, word: str, kind: str) -> None:
    x = tensor(4, 8)
    graph = read(tmp_path, {"a": x, "b": x}, f"%r = stablehlo.{word} %a, %b : {x}", x)
    assert [(op.kind, op.type) for op in graph.ops] == [(kind, f"stablehlo.{word}")]
    assert not graph.notes


@pytest.mark.parametrize(
    ("numbers", "shapes", "kind", "expected"),
    [
        ("contracting_dims = [1] x [0]", ((3, 4), (4, 5), (3, 5)), "matmul", 3 * 4 * 5),
        ("contracting_dims = [1] x [1]", ((3, 4), (5, 4), (3, 5)), "matmul", 3 * 4 * 5),
        ("batching_dims = [0] x [0], contracting_dims = [2] x [1]", ((2, 3, 4), (2, 4, 5), (2, 3, 5)), "matmul", 120),
        ("contracting_dims = [3, 2] x [1, 0]", ((1, 6, 4, 8), (4, 8, 5), (1, 6, 5)), "einsum", 6 * 4 * 8 * 5),
        ("contracting_dims = [0] x [0]", ((4,), (4,), ()), "einsum", 4),
    ],
)
def test_products_are_read_from_their_axes(
    tmp_path: Path, numbers: str, shapes: Shapes, kind: str, expected: int
) -> None:
    a, b, c = (tensor(*shape) for shape in shapes)
    graph = read(tmp_path, {"a": a, "b": b}, f"%r = stablehlo.dot_general %a, %b, {numbers} : ({a}, {b}) -> {c}", c)
    assert [op.kind for op in graph.ops] == [kind]
    assert macs(graph) == expected


def test_a_convolution_and_a_pool_have_their_windows(tmp_path: Path) -> None:
    data, weights, out, pooled = tensor(1, 8, 8, 4), tensor(3, 3, 4, 6), tensor(1, 4, 4, 6), tensor(1, 2, 2, 6)
    body = f"""\
%s = stablehlo.constant dense<0.0> : tensor<bf16>
%0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{stride = [2, 2], \
pad = [[0, 1], [0, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({data}, {weights}) -> {out}
%r = "stablehlo.reduce_window"(%0, %s) <{{window_dimensions = array<i64: 1, 2, 2, 1>, \
window_strides = array<i64: 1, 2, 2, 1>}}> ({{
^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
  %m = stablehlo.maximum %x, %y : tensor<bf16>
  stablehlo.return %m : tensor<bf16>
}}) : ({out}, tensor<bf16>) -> {pooled}"""
    conv, pool = read(tmp_path, {"a": data, "w": weights}, body, pooled).ops
    assert (conv.kind, conv.attributes["kernel"], conv.attributes["strides"]) == ("conv", (3, 3), (2, 2))
    assert (pool.kind, pool.attributes["kernel"], pool.attributes["channel_axis"]) == ("max_pool", (2, 2), 3)


def test_a_scalar_that_is_spread_and_an_element_of_a_tuple_are_no_work(tmp_path: Path) -> None:
    x = tensor(4, 8)
    body = f"""\
%c = stablehlo.constant dense<0.5> : tensor<bf16>
%0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<bf16>) -> {x}
%1 = stablehlo.tuple %a, %0 : tuple<{x}, {x}>
%2 = stablehlo.get_tuple_element %1[0] : (tuple<{x}, {x}>) -> {x}
%r = stablehlo.multiply %2, %0 : {x}"""
    graph = read(tmp_path, {"a": x}, body, x)
    (op,) = graph.ops
    assert [graph.tensors[t].role for t in op.inputs] == [Role.INPUT, Role.CONSTANT]
    alone = (
        "%c = stablehlo.constant dense<0.5> : tensor<bf16>\n"
        f"%r = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<bf16>) -> {x}"
    )
    (spread,) = read(tmp_path, {}, alone, x).ops  # what is returned has its shape
    assert spread.kind == "expand"


def test_what_is_not_known_is_named(tmp_path: Path) -> None:
    x = tensor(4)
    graph = read(tmp_path, {"a": x}, f"%r = stablehlo.custom_call @foo(%a) : ({x}) -> {x}", x)
    assert [op.kind for op in graph.ops] == ["custom"]
    assert [note.text for note in graph.notes] == ["operation stablehlo.custom_call has no known cost"]


# -- PyTorch


@pytest.mark.parametrize(
    ("word", "kind"), [("sin", "trigonometric"), ("cos", "trigonometric"), ("abs", "abs"), ("gelu", "gelu")]
)
def test_functions_of_pytorch_are_what_they_are_called(tmp_path: Path, word: str, kind: str) -> None:
    x = torch(1024, 32)
    text = f'%s = torch.constant.str "none"\n%r = torch.aten.gelu %a, %s : {x}, !torch.str -> {x}'
    graph = read(tmp_path, {"a": x}, text if word == "gelu" else f"%r = torch.aten.{word} %a : {x} -> {x}", x)
    assert [(op.kind, op.type) for op in graph.ops] == [(kind, f"torch.aten.{word}")]


def only(graph: Graph) -> Op:
    (op,) = graph.ops
    return op


def test_a_convolution_of_pytorch_has_its_strides_from_its_operands(tmp_path: Path) -> None:
    data, weights, out = torch(1, 4, 8, 8), torch(6, 2, 3, 3), torch(1, 6, 4, 4)
    ints = "!torch.list<int>"
    body = f"""\
%none = torch.constant.none
%false = torch.constant.bool false
%one = torch.constant.int 1
%two = torch.constant.int 2
%zero = torch.constant.int 0
%s = torch.prim.ListConstruct %two, %two : (!torch.int, !torch.int) -> {ints}
%p = torch.prim.ListConstruct %one, %one : (!torch.int, !torch.int) -> {ints}
%o = torch.prim.ListConstruct : () -> {ints}
%r = torch.aten.convolution %a, %w, %none, %s, %p, %p, %false, %o, %two : {data}, {weights}, !torch.none, {ints}, \
{ints}, {ints}, !torch.bool, {ints}, !torch.int -> {out}"""
    op = only(read(tmp_path, {"a": data, "w": weights}, body, out))
    assert op.kind == "conv"
    assert op.attributes == {
        "kernel": (3, 3),
        "strides": (2, 2),
        "dilations": (1, 1),
        "groups": 2,
        "channel_axis": 1,
    }


def test_axes_count_from_the_end_and_a_scalar_has_none(tmp_path: Path) -> None:
    ints = "!torch.list<int>"
    head = (
        "%last = torch.constant.int -1\n%none = torch.constant.none\n%false = torch.constant.bool false\n"
        f"%d = torch.prim.ListConstruct %last : (!torch.int) -> {ints}\n"
    )
    softmax = "%r = torch.aten.softmax.int %a, %last, %none : {0}, !torch.int, !torch.none -> {0}"
    op = only(read(tmp_path, {"a": torch(2, 8)}, head + softmax.format(torch(2, 8)), torch(2, 8)))
    assert (op.kind, op.name, op.attributes) == ("softmax", "softmax_0", {"axes": (1,)})
    scalar = only(read(tmp_path, {"a": torch()}, head + softmax.format(torch()), torch()))
    assert (scalar.kind, scalar.attributes) == ("softmax", {})
    out = torch(2)
    types = f"{torch(2, 8)}, {ints}, !torch.bool, !torch.none"
    mean = f"%r = torch.aten.mean.dim %a, %d, %false, %none : {types} -> {out}"
    op = only(read(tmp_path, {"a": torch(2, 8)}, head + mean, out))
    assert (op.kind, op.attributes) == ("reduce", {"axes": (1,)})


def test_products_and_lists_of_pytorch(tmp_path: Path) -> None:
    a, b, bias = torch(3, 4), torch(4, 5), torch(5)
    int_one = "%one = torch.constant.int 1\n"
    types = f"{bias}, {a}, {b}, !torch.int, !torch.int"
    body = f"{int_one}%r = torch.aten.addmm %c, %a, %b, %one, %one : {types} -> {torch(3, 5)}"
    graph = read(tmp_path, {"a": a, "b": b, "c": bias}, body, torch(3, 5))
    op = only(graph)
    assert [graph.tensors[t].name for t in op.inputs] == ["arg0", "arg1", "arg2"]  # data, weights, bias
    assert macs(graph) == 3 * 4 * 5
    listed = "!torch.list<vtensor>"
    body = (
        f"{int_one}%l = torch.prim.ListConstruct %a, %b : ({a}, {a}) -> {listed}\n"
        f"%r = torch.aten.cat %l, %one : {listed}, !torch.int -> {torch(3, 8)}"
    )
    op = only(read(tmp_path, {"a": a, "b": a}, body, torch(3, 8)))
    assert (op.kind, len(op.inputs), op.attributes) == ("concat", 2, {"axis": 1})
