"""MLIR modules through MLIR's own parser: TOSA, linalg and ONNX operators become the graph that they describe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opscope.core.errors import ModelError, UsageError
from opscope.graph.graph import ABSENT, DType, Graph, Role
from opscope.graph.kinds import KINDS, Family
from opscope.readers import read_model
from opscope.zoo import Recipe, make

ir = pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")

HEAD = "module {\n"


def read(folder: Path, text: str | bytes, name: str = "model.mlir") -> Graph:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_model(path)


def function(body: str, arguments: str, results: str) -> str:
    return f"module {{\n  func.func @main({arguments}) -> {results} {{\n{body}\n  }}\n}}\n"


def only(graph: Graph) -> tuple[str, dict[str, object]]:
    (op,) = graph.ops
    return op.kind, dict(op.attributes)


# -- TOSA

CONV = """\
module {
  func.func @main(%arg0: tensor<1x8x8x4xi8>) -> tensor<1x4x4x6xi8> {
    %w = "tosa.const"() <{values = dense<1> : tensor<6x3x3x4xi8>}> : () -> tensor<6x3x3x4xi8>
    %b = "tosa.const"() <{values = dense<1> : tensor<6xi32>}> : () -> tensor<6xi32>
    %z = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
    %m = "tosa.const"() <{values = dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi32>}> : () -> tensor<6xi32>
    %s = "tosa.const"() <{values = dense<38> : tensor<6xi8>}> : () -> tensor<6xi8>
    %i = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
    %0 = tosa.conv2d %arg0, %w, %b, %z, %z {acc_type = i32, dilation = array<i64: 1, 1>, \
pad = array<i64: 0, 1, 0, 1>, stride = array<i64: 2, 2>} : (tensor<1x8x8x4xi8>, tensor<6x3x3x4xi8>, tensor<6xi32>, \
tensor<1xi8>, tensor<1xi8>) -> tensor<1x4x4x6xi32>
    %1 = tosa.rescale %0, %m, %s, %i, %z {input_unsigned = false, output_unsigned = false, per_channel = true, \
rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<1x4x4x6xi32>, tensor<6xi32>, tensor<6xi8>, tensor<1xi32>, \
tensor<1xi8>) -> tensor<1x4x4x6xi8>
    return %1 : tensor<1x4x4x6xi8>
  }
}
"""


def test_a_module_typed_by_hand_is_read_as_it_stands(tmp_path: Path) -> None:
    graph = read(tmp_path, CONV)
    conv, rescale = graph.ops
    assert (conv.kind, conv.type, conv.name) == ("conv", "tosa.conv2d", "conv2d_0")
    assert conv.attributes == {
        "kernel": (3, 3),
        "strides": (2, 2),
        "dilations": (1, 1),
        "groups": 1,
        "channel_axis": 3,
    }
    data, weights, bias = (graph.tensors[t] for t in conv.inputs)  # zero points are no operands
    assert (data.name, data.shape, data.dtype, data.role) == ("arg0", (1, 8, 8, 4), DType.I8, Role.INPUT)
    assert (weights.shape, weights.role) == ((6, 3, 3, 4), Role.CONSTANT)
    assert (bias.shape, bias.dtype) == ((6,), DType.I32)
    assert rescale.kind == "quantize"
    assert [graph.tensors[t].shape for t in rescale.inputs] == [(1, 4, 4, 6), (6,)]  # one multiplier a channel
    assert conv.location == f'loc("{tmp_path}/model.mlir":9:10)'
    assert graph.outputs == rescale.outputs
    assert graph.framework == "MLIR"
    assert graph.details == {"function": "main", "dialects": "tosa"}


def test_every_operation_of_tosa_has_a_rule() -> None:
    from iree.compiler.dialects import tosa as dialect

    from opscope.readers.mlir.build import _CONSTANTS, _RETURNS
    from opscope.readers.mlir.tosa import RULES

    names = {
        found.OPERATION_NAME
        for found in vars(dialect).values()
        if isinstance(found, type) and str(getattr(found, "OPERATION_NAME", "")).startswith("tosa.")
    }
    silent = {*_CONSTANTS, *_RETURNS, "tosa.variable", "tosa.variable_read", "tosa.variable_write", "tosa.apply_scale"}
    silent |= {name for name in names if name.endswith("_shape") or name == "tosa.dim"}  # they make no tensors
    assert len(names) > 60
    assert {name for name in names - silent if name.removeprefix("tosa.") not in RULES} == set()
    assert all(rule.kind in KINDS for rule in RULES.values())


def test_a_dense_layer_is_a_product_although_tosa_calls_it_a_convolution(tmp_path: Path) -> None:
    make(Recipe("fc", precision=None, format="tosa", options={"features": 24, "units": 10}), tmp_path / "fc.mlir")
    product = next(op for op in read_model(tmp_path / "fc.mlir").ops if op.family is Family.CONTRACTION)
    assert (product.kind, product.attributes) == ("matmul", {"k": 24, "n": 10})


@pytest.mark.parametrize(
    ("line", "kind", "attributes"),
    [
        ("%0 = tosa.transpose %a {perms = array<i32: 0, 2, 1>} : (T) -> T", "transpose", {"permutation": (0, 2, 1)}),
        ("%0 = tosa.argmax %a {axis = 1 : i32} : (T) -> tensor<2x4xi32>", "argmax", {"axes": (1,)}),
        ("%0 = tosa.reduce_sum %a {axis = 2 : i32} : (T) -> tensor<2x4x1xf32>", "reduce", {"axes": (2,)}),
        ("%0 = tosa.concat %a, %a {axis = 0 : i32} : (T, T) -> tensor<4x4x4xf32>", "concat", {"axis": 0}),
        ("%0 = tosa.clamp %a {min_val = 0.0 : f32, max_val = 6.0 : f32} : (T) -> T", "clip", {}),
        ("%0 = tosa.sigmoid %a : (T) -> T", "sigmoid", {}),
        ("%0 = tosa.cast %a : (T) -> tensor<2x4x4xi8>", "cast", {}),
    ],
)
def test_tosa_attributes_become_the_graphs(line: str, kind: str, attributes: dict[str, object], tmp_path: Path) -> None:
    result = (
        line.rpartition("-> ")[2].replace("T", "tensor<2x4x4xf32>") if "-> T" in line else line.rpartition("-> ")[2]
    )
    text = line.replace("(T, T)", "(tensor<2x4x4xf32>, tensor<2x4x4xf32>)").replace("(T)", "(tensor<2x4x4xf32>)")
    text = text.replace("-> T", "-> tensor<2x4x4xf32>")
    graph = read(tmp_path, function(f"{text}\n    return %0 : {result}", "%a: tensor<2x4x4xf32>", result))
    assert only(graph) == (kind, attributes)


# -- linalg


def linalg(line: str, *arguments: str, result: str) -> str:
    named = ", ".join(f"%{letter}: {kind}" for letter, kind in zip("abc", arguments, strict=False))
    zero = f"%e = tensor.empty() : {result}\n    %z = arith.constant 0.0 : f32\n"
    fill = f"    %o = linalg.fill ins(%z : f32) outs(%e : {result}) -> {result}\n"
    return function(f"    {zero}{fill}    {line}\n    return %0 : {result}", named, result)


def test_a_named_product_takes_its_extents_from_its_maps(tmp_path: Path) -> None:
    types = "tensor<4x8xf32>, tensor<8x16xf32>"
    line = f"%0 = linalg.matmul ins(%a, %b : {types}) outs(%o : tensor<4x16xf32>) -> tensor<4x16xf32>"
    graph = read(tmp_path, linalg(line, "tensor<4x8xf32>", "tensor<8x16xf32>", result="tensor<4x16xf32>"))
    assert only(graph) == ("matmul", {"k": 8, "n": 16})  # neither tensor.empty nor the fill of zeros is work
    assert graph.inputs == graph.ops[0].inputs


def test_what_a_product_adds_to_is_its_bias(tmp_path: Path) -> None:
    line = (
        "%0 = linalg.batch_matmul ins(%a, %b : tensor<2x4x8xf32>, tensor<2x8x16xf32>) "
        "outs(%c : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>"
    )
    types = ("tensor<2x4x8xf32>", "tensor<2x8x16xf32>", "tensor<2x4x16xf32>")
    graph = read(tmp_path, linalg(line, *types, result=types[2]))
    assert only(graph) == ("matmul", {"k": 8, "n": 16})
    assert graph.ops[0].inputs == graph.inputs


@pytest.mark.parametrize(
    ("name", "data", "weights", "out", "groups", "axis", "kernel"),
    [
        ("conv_2d_nhwc_hwcf", "1x8x8x4", "3x3x4x6", "1x6x6x6", 1, 3, (3, 3)),
        ("conv_2d_nchw_fchw", "1x4x8x8", "6x4x3x3", "1x6x6x6", 1, 1, (3, 3)),
        ("depthwise_conv_2d_nhwc_hwc", "1x8x8x4", "3x5x4", "1x6x4x4", 4, 3, (3, 5)),
        ("conv_1d_nwc_wcf", "1x8x4", "3x4x6", "1x6x6", 1, 2, (3,)),
    ],
)
def test_a_convolution_says_its_layout_by_name(  # noqa: PLR0917
    name: str, data: str, weights: str, out: str, groups: int, axis: int, kernel: tuple[int, ...], tmp_path: Path
) -> None:
    a, b, result = (f"tensor<{shape}xf32>" for shape in (data, weights, out))
    line = f"%0 = linalg.{name} ins(%a, %b : {a}, {b}) outs(%o : {result}) -> {result}"
    kind, attributes = only(read(tmp_path, linalg(line, a, b, result=result)))
    assert kind == "conv"
    assert (attributes["groups"], attributes["channel_axis"], attributes["kernel"]) == (groups, axis, kernel)


GENERIC = """\
#ident = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d1)>
#kept = affine_map<(d0, d1) -> (d0)>
module {{
  func.func @main(%a: tensor<4x4xf32>, %r: tensor<4xf32>) -> {result} {{
    %e = tensor.empty() : {result}
    %0 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}} ins({ins}) outs(%e : {result}) {{
    ^bb0({args}):
{body}
    }} -> {result}
    return %0 : {result}
  }}
}}
"""
ONE = "%a : tensor<4x4xf32>"
SAME, BOTH = "tensor<4x4xf32>", '"parallel", "parallel"'


@pytest.mark.parametrize(
    ("maps", "loops", "body", "result", "kind", "attributes"),
    [
        ("#ident, #ident", BOTH, "%1 = math.tanh %i : f32\nlinalg.yield %1 : f32", SAME, "tanh", {}),
        ("#ident, #ident", BOTH, "%1 = arith.mulf %i, %i : f32\nlinalg.yield %1 : f32", SAME, "mul", {}),
        (
            "#ident, #ident",
            BOTH,
            "%c = arith.constant 0.0 : f32\n%1 = arith.cmpf ugt, %i, %c : f32\n"
            "%2 = arith.select %1, %i, %c : f32\nlinalg.yield %2 : f32",
            SAME,
            "clip",
            {},
        ),
        (
            "#ident, #ident",
            BOTH,
            "%c = arith.constant 1.0 : f32\n%1 = arith.negf %i : f32\n%2 = math.exp %1 : f32\n"
            "%3 = arith.addf %2, %c : f32\n%4 = arith.divf %c, %3 : f32\nlinalg.yield %4 : f32",
            SAME,
            "sigmoid",
            {},
        ),
        ("#turned, #ident", BOTH, "linalg.yield %i : f32", SAME, "transpose", {"permutation": (1, 0)}),
        (
            "#ident, #kept",
            '"parallel", "reduction"',
            "%1 = arith.addf %i, %o : f32\nlinalg.yield %1 : f32",
            "tensor<4xf32>",
            "reduce",
            {"axes": (1,)},
        ),
    ],
)
def test_a_structured_operation_is_what_its_maps_and_its_body_make_it(  # noqa: PLR0917
    maps: str, loops: str, body: str, result: str, kind: str, attributes: dict[str, object], tmp_path: Path
) -> None:
    text = GENERIC.format(maps=maps, loops=loops, ins=ONE, args="%i: f32, %o: f32", body=body, result=result)
    assert only(read(tmp_path, text)) == (kind, attributes)


def test_an_empty_body_over_a_smaller_operand_repeats_it(tmp_path: Path) -> None:
    text = GENERIC.format(
        maps="#row, #ident",
        loops=BOTH,
        ins="%r : tensor<4xf32>",
        args="%i: f32, %o: f32",
        body="linalg.yield %i : f32",
        result=SAME,
    )
    assert only(read(tmp_path, text))[0] == "expand"


def test_a_contraction_that_is_no_matrix_product_keeps_its_equation(tmp_path: Path) -> None:
    text = """\
#a = affine_map<(d0, d1, d2) -> (d2, d0)>
#b = affine_map<(d0, d1, d2) -> (d1, d2)>
#o = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @main(%a: tensor<8x4xf32>, %b: tensor<16x8xf32>, %o: tensor<4x16xf32>) -> tensor<4x16xf32> {
    %0 = linalg.generic {indexing_maps = [#a, #b, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x4xf32>, tensor<16x8xf32>) outs(%o : tensor<4x16xf32>) {
    ^bb0(%i: f32, %j: f32, %k: f32):
      %1 = arith.mulf %i, %j : f32
      %2 = arith.addf %1, %k : f32
      linalg.yield %2 : f32
    } -> tensor<4x16xf32>
    return %0 : tensor<4x16xf32>
  }
}
"""
    from opscope.estimate.work import work_of

    graph = read(tmp_path, text)
    assert only(graph) == ("einsum", {"equation": "ca,bc->ab"})
    assert work_of(graph.ops[0], graph).macs == 4 * 16 * 8


@pytest.mark.parametrize("name", ["conv-small", "fc"])
def test_iree_lowers_tosa_to_linalg_that_does_the_same_work(name: str, tmp_path: Path) -> None:
    """Two descriptions of one network, the second written by IREE's own input pipeline."""
    from iree.compiler.tools.binaries import find_tool

    from opscope.estimate.work import work_of

    recipe = Recipe(name, precision=None, format="tosa", options={"units": 30} if name == "fc" else {"channels": 4})
    make(recipe, tmp_path / "tosa.mlir")
    command = [
        find_tool("iree-compile"),
        "tosa.mlir",
        "--iree-hal-target-device=local",
        "--compile-to=input",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "-o",
        "linalg.mlir",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    tosa, lowered = (read_model(tmp_path / f"{form}.mlir") for form in ("tosa", "linalg"))
    assert "linalg" in lowered.details["dialects"]
    macs = [sum(work_of(op, graph).macs for op in graph.ops) for graph in (tosa, lowered)]
    assert macs[0] == macs[1] > 0
    assert not [op for op in lowered.ops if op.kind == "custom"]


# -- ONNX operators in torch-mlir's dialect


def test_a_model_reads_the_same_as_onnx_and_as_the_mlir_made_from_it(tmp_path: Path) -> None:
    make(Recipe("kws-cnn", precision="int8", options={"channels": 8}), tmp_path / "kws.onnx")
    tool = Path(sys.executable).with_name("iree-import-onnx")
    if not tool.exists():
        pytest.skip("iree-import-onnx is not beside this Python")
    subprocess.run([tool, "kws.onnx", "-o", "kws.mlir"], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    onnx, mlir = read_model(tmp_path / "kws.onnx"), read_model(tmp_path / "kws.mlir")

    def look(graph: Graph) -> list[object]:
        return [
            (
                op.kind,
                op.attributes,
                [graph.tensors[t].shape if t != ABSENT else None for t in (*op.inputs, *op.outputs)],
            )
            for op in graph.ops
        ]

    assert look(mlir) == look(onnx)
    assert mlir.quantize_ops_annotate
    assert all(op.location.startswith('loc("') for op in mlir.ops)


def test_an_absent_operand_stays_in_its_place(tmp_path: Path) -> None:
    tensor = "!torch.vtensor<[2,3],f32>"
    text = f"""\
func.func @main(%a: {tensor}, %b: !torch.vtensor<[],f32>) -> {tensor}
    attributes {{torch.onnx_meta.opset_version = 17 : si64}} {{
  %none = torch.constant.none
  %0 = torch.operator "onnx.Clip"(%a, %none, %b) : ({tensor}, !torch.none, !torch.vtensor<[],f32>) -> {tensor}
  return %0 : {tensor}
}}
"""
    (op,) = read(tmp_path, text).ops
    assert op.kind == "clip"
    assert op.inputs[1] == ABSENT


# -- functions, control flow, what is not known


def test_calls_are_read_as_the_body_they_stand_for(tmp_path: Path) -> None:
    text = """\
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tosa.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
    graph = read(tmp_path, text)
    assert [op.kind for op in graph.ops] == ["add", "add"]
    assert graph.ops[1].inputs == (graph.ops[0].outputs[0],) * 2


def test_bodies_of_conditions_stand_behind_them(tmp_path: Path) -> None:
    text = """\
func.func @main(%c: i1, %a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = scf.if %c -> tensor<4xf32> {
    %1 = tosa.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    scf.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
"""
    graph = read(tmp_path, text)
    assert [(op.kind, op.scope) for op in graph.ops] == [("if", ""), ("exp", "if_0")]
    assert [note.code for note in graph.notes] == ["both-branches"]


def test_an_operation_of_an_unknown_dialect_has_no_known_cost(tmp_path: Path) -> None:
    line = '%0 = "mine.blend"(%a) : (tensor<4xf32>) -> tensor<4xf32>'
    graph = read(tmp_path, function(f"{line}\nreturn %0 : tensor<4xf32>", "%a: tensor<4xf32>", "tensor<4xf32>"))
    assert only(graph)[0] == "custom"
    assert [note.text for note in graph.notes] == ["operation mine.blend has no known cost"]


def test_names_come_from_locations_that_have_them(tmp_path: Path) -> None:
    line = '%0 = tosa.exp %a : (tensor<4xf32>) -> tensor<4xf32> loc("encoder/exp"("net.py":3:1))'
    graph = read(tmp_path, function(f"{line}\nreturn %0 : tensor<4xf32>", "%a: tensor<4xf32>", "tensor<4xf32>"))
    assert graph.ops[0].name == "encoder/exp"
    assert graph.ops[0].location == 'loc("encoder/exp"("net.py":3:1))'


def test_other_public_functions_are_named_and_left_alone(tmp_path: Path) -> None:
    one = "func.func @{0}(%a: tensor<4xf32>) -> tensor<4xf32> {{ return %a : tensor<4xf32> }}\n"
    graph = read(tmp_path, one.format("first") + one.format("second"))
    assert graph.details["function"] == "first"
    assert graph.notes[0].text == "1 more public function(s) are not looked at: second"


def test_open_extents_leave_a_shape_unknown(tmp_path: Path) -> None:
    line = "%0 = tosa.exp %a : (tensor<?x4xf32>) -> tensor<?x4xf32>"
    graph = read(tmp_path, function(f"{line}\nreturn %0 : tensor<?x4xf32>", "%a: tensor<?x4xf32>", "tensor<?x4xf32>"))
    assert graph.tensors[graph.inputs[0]].shape is None
    assert graph.notes[-1].code == "unknown-shape"


def test_a_constant_of_any_size_is_never_expanded(tmp_path: Path) -> None:
    kind = "tensor<300000x300000xf32>"  # 360 GB, if it were
    line = f'%0 = "tosa.const"() <{{values = dense<1.0> : {kind}}}> : () -> {kind}'
    graph = read(tmp_path, function(f"{line}\nreturn %0 : {kind}", "%a: tensor<4xf32>", kind))
    assert graph.tensors[graph.outputs[0]].bytes == 4 * 300000**2


def test_bytecode_is_read_as_text_is(tmp_path: Path) -> None:
    text = read(tmp_path, CONV)
    with ir.Context() as context:
        module = ir.Module.parseFile(str(tmp_path / "model.mlir"), context)
        with (tmp_path / "model.bin").open("wb") as out:
            module.operation.write_bytecode(out)
    bytecode = read_model(tmp_path / "model.bin")
    assert [op.location for op in bytecode.ops] == [op.location for op in text.ops]
    assert bytecode.tensors == text.tensors


# -- what is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "module {\n  func.func @main() {\n    %0 = tosa.nonsense\n    return\n  }\n}\n",
            r"model\.mlir: line 3:10: not valid MLIR: custom op 'tosa.nonsense' is unknown$",
        ),
        ("module {\n", r"model\.mlir: line 1:9: not valid MLIR: .*"),
        ("", r"model\.mlir: no public function with a body; expected a func\.func, such as @main$"),
        ("module { " + "(" * 300, r"model\.mlir: line 1: 301 brackets within each other; expected at most 200$"),
        (b"module {\n \xff }", r"model\.mlir: line 2:2: not UTF-8 text; expected MLIR$"),
    ],
)
def test_what_is_no_mlir_is_refused_on_one_line(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cut", [4, 60, 200])
def test_bytecode_cut_short_is_refused_and_nobody_dies(cut: int, tmp_path: Path) -> None:
    read(tmp_path, CONV)
    with ir.Context() as context:
        module = ir.Module.parseFile(str(tmp_path / "model.mlir"), context)
        path = tmp_path / "model.mlirbc"
        with path.open("wb") as out:
            module.operation.write_bytecode(out)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelError, match=r"model\.mlirbc: "):
        read_model(path)


def test_shapes_are_fixed_by_the_module(tmp_path: Path) -> None:
    read(tmp_path, CONV)
    path = tmp_path / "model.mlir"
    assert read_model(path, shapes={"arg0": (1, 8, 8, 4)}, batch=1).ops
    with pytest.raises(ModelError, match="input arg0: its type says 1x8x8x4"):
        read_model(path, shapes={"arg0": (2, 8, 8, 4)})
    with pytest.raises(ModelError, match="input x: there is none; expected one of arg0"):
        read_model(path, shapes={"x": (1,)})
    with pytest.raises(ModelError, match="batch 4: the types of the inputs say 1"):
        read_model(path, batch=4)


def test_without_the_extra_the_install_line_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "iree.compiler", None)
    with pytest.raises(UsageError, match=r"no MLIR parser is installed; expected the extra \[mlir\]: pip install"):
        read(tmp_path, CONV)


def test_the_parser_is_imported_only_when_mlir_is_read(tmp_path: Path) -> None:
    make(Recipe("kws-cnn"), tmp_path / "kws.onnx")
    code = (
        "import sys, pathlib; from opscope.readers import read_model; read_model(pathlib.Path('kws.onnx'));"
        "sys.exit('iree' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, timeout=60).returncode == 0


def test_looking_for_brackets_takes_little_memory_beside_weights_of_megabytes(tmp_path: Path) -> None:
    import tracemalloc

    from opscope.readers.mlir.parse import _check_nesting

    text = b'dense<"0x' + b"A5" * (2 << 20) + b'"> // ' + b"(" * 300 + b"\n"
    tracemalloc.start()
    _check_nesting([text, b'"\\"((" : (i8) -> i8'], tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(text)
