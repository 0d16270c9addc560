"""A module of PyTorch as a Graph: its ops, its work, and where in the user's code each comes from."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

import pytest

import opscope
from opscope.core.errors import ModelError, ProfilerError, UsageError
from opscope.graph.graph import Graph, Role
from opscope.readers.onnx import read_onnx_content
from opscope.readers.torch import torch_model
from opscope.readers.torch.export import structure

torch = pytest.importorskip("torch")
networks = pytest.importorskip("support.models.torch_networks")
TARGET = "aic100-std"
SHAPES = {networks.Mlp: (2, 16), networks.ConvNet: (1, 3, 10, 10), networks.Encoder: (2, 8, 32)}


def macs_of(graph: Graph) -> int:
    return opscope.report(graph, TARGET, advise=False).totals.macs


def counted(module: object, inputs: object) -> int:
    """MACs as torch counts them: a multiply and an add are two operations; attention in parts, or it has no count."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        module(inputs)
    flops = counter.get_total_flops()
    assert flops % 2 == 0
    return flops // 2


@cache
def graph_of(module: type) -> Graph:
    """Read once: torch's exporter takes a second however small the module is."""
    return opscope.read(module(), torch.zeros(SHAPES[module]))


def encoder_macs(batch: int, tokens: int) -> int:
    """Products with weights, then of queries and keys, and with values: two layers of two heads of 16."""
    return 2 * batch * tokens * (32 * 32 * (3 + 1 + 8) + 2 * 2 * tokens * 16)


@pytest.fixture(scope="module")
def encoder() -> Graph:
    return graph_of(networks.Encoder)


@pytest.mark.parametrize(
    ("module", "by_hand"),
    [
        (networks.Mlp, 2 * (16 * 32 + 32 * 4)),
        (networks.ConvNet, 100 * 8 * 27 + 8 * 5),
        (networks.Encoder, encoder_macs(2, 8)),
    ],
)
def test_macs_are_those_counted_by_hand_and_by_torch(module: type, by_hand: int) -> None:
    assert macs_of(graph_of(module)) == by_hand == counted(module().eval(), torch.zeros(SHAPES[module]))


def test_parameters_are_those_of_the_module_once(encoder: Graph) -> None:
    constants = [tensor for tensor in encoder.tensors if tensor.role is Role.CONSTANT]
    own = sum(value.nbytes for value in networks.Encoder().parameters())
    assert own <= sum(tensor.bytes or 0 for tensor in constants) < own + 1024  # and scalars that the exporter adds


def test_ops_know_their_module_and_the_line_of_the_users_code(encoder: Graph) -> None:
    source = inspect.getsource(networks).splitlines()
    found = {
        (op.module, source[int(op.line.partition(":")[2]) - 1].strip()) for op in encoder.ops if op.type == "MatMul"
    }
    for layer in ("layers.0", "layers.1"):
        assert (
            f"{layer}.attention.out",
            "return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))",
        ) in found
        assert (f"{layer}.down", "return x + self.down(functional.gelu(self.up(x)))") in found
    assert {op.line.partition(":")[0] for op in encoder.ops} == {"torch_networks.py"}
    assert encoder.framework == "PyTorch"


def test_an_op_of_the_outermost_module_is_under_its_class() -> None:
    graph = graph_of(networks.Mlp)
    assert next(op.module for op in graph.ops if op.type == "Relu") == "Mlp"


def test_a_module_on_meta_is_the_same_graph_without_a_byte_of_weights() -> None:
    real = graph_of(networks.Mlp)
    with torch.device("meta"):
        meta = opscope.read(networks.Mlp(), torch.zeros(2, 16))
    assert meta.ops == real.ops
    assert meta.tensors == real.tensors


def test_a_large_layer_on_meta_is_estimated() -> None:
    module, inputs = networks.meta_decoder()
    report = opscope.report(module, inputs, TARGET, advise=False)
    assert report.totals.macs == 8 * 4096 * 4096 * 12 + 2 * 2 * 8 * 8 * 2048
    assert report.totals.parameter_bytes > 4096 * 4096 * 12 * 4


@pytest.mark.slow
def test_a_runtime_refuses_a_module_on_meta() -> None:
    module, inputs = networks.meta_decoder()
    with pytest.raises(
        ModelError, match=r"^Block: is on meta, and a runtime needs weights; expected a module that has"
    ):
        opscope.profile(module, inputs, backend="ort")


@pytest.mark.slow
def test_training_mode_is_left_as_it_was_and_dropout_is_not_run() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout()).train()
    graph = opscope.read(module, torch.zeros(1, 4))
    assert module.training
    assert module[1].training
    assert {op.kind for op in graph.ops} == {"matmul", "identity"}


def test_other_shapes_are_exported_anew(encoder: Graph) -> None:
    changed = opscope.read(networks.Encoder(), torch.zeros(1, 8, 32), batch=4, shapes={"x": (3, 4, 32)})
    assert macs_of(changed) == encoder_macs(3, 4)
    assert [op.type for op in changed.ops] == [op.type for op in encoder.ops]


def test_dimensions_of_torch_export_are_open_as_in_a_file() -> None:
    dims = {"x": {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}}
    content = structure(torch_model(networks.Encoder(), torch.zeros(2, 8, 32), dynamic_shapes=dims))
    with pytest.raises(ModelError, match=r"'tokens'.*expected their sizes, for example --shape"):
        read_onnx_content(content, Path("net"))
    graph = read_onnx_content(content, Path("net"), shapes={"tokens": (16,)}, batch=4)
    assert graph.tensors[graph.inputs[0]].shape == (4, 16, 32)
    assert macs_of(graph) == encoder_macs(4, 16)


def test_what_cannot_be_exported_is_one_line_with_the_users_code() -> None:
    line = next(
        number for number, text in enumerate(inspect.getsource(networks).splitlines(), 1) if "x.sum() > 0" in text
    )
    with pytest.raises(ModelError) as refused:
        opscope.read(networks.Branching(), torch.zeros(3))
    assert str(refused.value).startswith(f"Branching: torch_networks.py:{line}: torch.export refuses it: ")
    assert str(refused.value).endswith("branches on data by torch.cond (docs/pytorch.md)")
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_an_operator_without_an_onnx_form_is_named() -> None:
    with pytest.raises(
        ModelError, match=r"^Eigenvalues: torch_networks\.py:\d+: operator aten\.linalg_eig has no ONNX"
    ):
        opscope.read(networks.Eigenvalues(), torch.zeros(3, 3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_quantised_module_is_refused_in_one_line() -> None:
    quantised = torch.ao.quantization.quantize_dynamic(networks.Mlp(), {torch.nn.Linear})
    with pytest.raises(ModelError) as refused:
        opscope.read(quantised, torch.zeros(2, 16))
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("exported") / "net.pt2"
    torch.export.save(torch.export.export(networks.Mlp().eval(), (torch.zeros(2, 16),)), file)
    return file


def test_an_exported_program_is_the_same_graph_and_needs_no_example_inputs(exported: Path) -> None:
    graph = opscope.read(exported)
    assert (graph.ops, graph.name) == (graph_of(networks.Mlp).ops, "net")
    assert graph.file_bytes == exported.stat().st_size
    with pytest.raises(UsageError, match="is exported already; expected no example inputs"):
        opscope.read(torch.export.load(exported), torch.zeros(2, 16))


def test_a_damaged_pt2_is_one_line(tmp_path: Path, exported: Path) -> None:
    whole = exported.read_bytes()
    at = whole.index(b'"graph_module"')
    (tmp_path / "net.pt2").write_bytes(whole[:at] + b'"xxxxx_module"' + whole[at + 14 :])
    with pytest.raises(ProfilerError, match=r"net\.pt2: torch\.export\.load fails \(") as refused:
        opscope.read(tmp_path / "net.pt2")
    assert "\n" not in str(refused.value)


def test_example_inputs_go_with_a_module_and_a_target_comes_behind() -> None:
    with pytest.raises(UsageError, match=r"^net\.onnx: example inputs are for a module of PyTorch"):
        opscope.read("net.onnx", torch.zeros(1))
    with pytest.raises(UsageError, match=r"^target a: given twice"):
        opscope.profile("net.onnx", "a", "b")
