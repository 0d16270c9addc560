"""Which precisions a target takes, and what they make of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope import api
from opscope.core.errors import UsageError
from opscope.estimate.canonical import canonicalise
from opscope.estimate.precision import in_precision, precisions, with_precision
from opscope.graph.graph import DType, Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Support
from opscope.zoo import Recipe, make
from support.build import Sketch, engine, figure, target


def dense() -> Graph:
    draw = Sketch()
    return draw.graph(draw.same("softmax", draw.dense(draw.input(1, 64), 64)))


def test_a_card_takes_what_its_matrix_engine_has_a_rate_for() -> None:
    assert precisions(targets.load("aic100-std")) == ("f16", "i8", "u8", "w8a8", "mxfp6")


@pytest.mark.parametrize("precision", ["i4", "bf16", "f32", "w8a16", "w4a8"])
def test_a_type_without_a_rate_is_refused(precision: str) -> None:
    expected = f"--precision {precision}: aic100-std has no rate for it; expected one of f16, i8, u8, w8a8, mxfp6"
    with pytest.raises(UsageError, match=f"^{expected}$"):
        with_precision("aic100-std", precision)


def test_a_word_that_is_no_type_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--precision int8: not known; .*expected one of f16, i8, u8, w8a8, mxfp6$"):
        with_precision("aic100-std", "int8")


def test_block_formats_need_a_kernel_that_converts_them() -> None:
    plain = target(engine("cpu", macs={"f16": 1.0}))
    with pytest.raises(UsageError, match=r"^--precision mxfp6: by-hand has no rate for it; expected one of f16$"):
        with_precision(plain, "mxfp6")
    with pytest.raises(UsageError, match=r"^--kv-cache mxint8: by-hand has no kernel that converts it; expected as-is"):
        with_precision(plain, None, kv_cache="mxint8")
    able = replace(plain.engines[0], kernels={"dequantize_mxfp6": figure(1), "dequantize_mxint8": figure(1)})
    with_precision(replace(plain, engines=(able,)), "mxfp6", kv_cache="mxint8")


def test_what_a_target_does_not_support_is_not_taken() -> None:
    limited = replace(target(engine("cpu")), support=Support(dtypes=("i8",)))
    assert precisions(limited) == ("i8", "w8a8")


def test_widths_need_a_rate_for_activations_and_weights_that_the_target_reads() -> None:
    npu = target(engine("npu", macs={"i8": 2.0, "i16": 1.0}))
    assert precisions(npu) == ("i16", "i8", "w8a8", "w8a16", "w16a16")
    narrow = replace(npu, support=Support(dtypes=("i16", "i8", "i4")))
    assert set(precisions(narrow)) - set(precisions(npu)) == {"w4a8", "w4a16"}
    assert "w8a16" not in precisions(replace(npu, support=Support(dtypes=("i16",))))


@pytest.mark.parametrize("floats", [(), ("softmax",)])
def test_narrow_weights_take_fewer_bytes_at_the_rate_of_the_activations(floats: tuple[str, ...]) -> None:
    npu = target(engine("npu", macs={"i8": 2.0, "i16": 1.0, "f32": 1.0}, elements={"*": 1.0}))
    npu = replace(npu, runtime=replace(npu.runtime, floats=floats))
    found = {word: api.report(dense(), npu, precision=word) for word in ("w8a8", "w8a16", "w16a16", "i8", "i16")}
    layers = {word: next(op for op in report.layers if op.macs) for word, report in found.items()}
    assert {word: op.dtype for word, op in layers.items()} == {
        "w8a8": "i8",
        "w8a16": "i16",
        "w16a16": "i16",
        "i8": "i8",
        "i16": "i16",
    }
    sizes = {word: report.totals.parameter_bytes for word, report in found.items()}
    assert (sizes["w8a8"], sizes["w16a16"]) == (sizes["i8"], sizes["i16"])
    assert sizes["w16a16"] - sizes["w8a16"] == 64 * 64  # of the weights alone


def test_an_unknown_storage_of_the_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^kv cache 'i8': not known; expected as-is or mxint8$"):
        api.report(tmp_path / "model.onnx", "aic100-std", kv_cache="i8")


def test_a_float_type_is_that_of_every_float_tensor() -> None:
    chosen = with_precision("aic100-std", "f16")
    graph = canonicalise(in_precision(dense(), chosen, "f16"), chosen)
    assert {tensor.dtype for tensor in graph.tensors} == {DType.F16}


def test_complex_numbers_are_no_half_of_a_float() -> None:
    draw = Sketch(dtype=DType.C64)
    chosen = with_precision("aic100-std", "f16")
    graph = canonicalise(draw.graph(draw.same("add", draw.input(4, 64), draw.input(4, 64))), chosen)
    assert {tensor.dtype for tensor in graph.tensors} == {DType.C64}


def test_what_a_quantiser_leaves_float_runs_in_the_float_type_of_the_target() -> None:
    chosen = with_precision("aic100-std", "i8")
    graph = canonicalise(in_precision(dense(), chosen, "i8"), chosen)
    assert [op.kind for op in graph.ops] == ["quantize", "matmul", "dequantize", "softmax"]
    assert graph.tensors[graph.ops[-1].inputs[0]].dtype is DType.F16


def test_where_only_another_float_type_has_a_rate_it_is_used_for_what_stays_float() -> None:
    chosen = target(engine("npu", macs={"i8": 2.0, "bf16": 1.0}, elements={"i8": 2.0, "bf16": 1.0}))
    assert with_precision(chosen, "i8").precision["f32"] == "bf16"
    assert with_precision(chosen, None).precision == {}


def test_a_model_in_bf16_runs_in_f16_and_is_told_so() -> None:
    draw = Sketch(dtype=DType.BF16)
    graph = draw.graph(draw.dense(draw.input(1, 8), 8))
    once = canonicalise(graph, targets.load("aic100-std"))
    assert once.assumptions == ("tensors of bf16 run as f16: aic100-std has no bf16",)
    assert {tensor.dtype for tensor in once.tensors} == {DType.F16}
    assert canonicalise(once, targets.load("aic100-std")).assumptions == once.assumptions
    assert api.report(graph, "aic100-std").notes == once.notes
    assert api.compile_model(graph, "aic100-std", cores=1).program.notes == once.assumptions


def test_a_report_of_another_precision_is_of_the_same_model(tmp_path: Path) -> None:
    make(Recipe("kws-cnn", weights=False), tmp_path / "kws.onnx")
    plain, quantised = (api.report(tmp_path / "kws.onnx", "aic100-std", precision=word) for word in (None, "i8"))
    assert quantised.model.parameter_bytes == plain.model.parameter_bytes
    assert quantised.totals.parameter_bytes < plain.totals.parameter_bytes / 3
    assert quantised.totals.macs == plain.totals.macs


def test_a_program_of_another_precision_keeps_the_types_of_its_ports(tmp_path: Path) -> None:
    options = {"layers": 1, "kv_length": 64, "hidden": 256, "heads": 4, "intermediate": 512, "vocabulary": 512}
    make(Recipe("llm-decoder", precision="f16", weights=False, options=options), tmp_path / "llm.onnx")
    compiled = {
        words: api.compile_model(tmp_path / "llm.onnx", "aic100-std", cores=1, precision=words[0], kv_cache=words[1])
        for words in ((None, "as-is"), ("mxfp6", "as-is"), ("i8", "as-is"), (None, "mxint8"))
    }
    plain = compiled[None, "as-is"].program
    for words, other in compiled.items():
        assert (other.program.inputs, other.program.outputs) == (plain.inputs, plain.outputs), words
        assert other.program.bounds.macs == plain.bounds.macs, words
    held = {words: found.program.bounds.holdings[0] for words, found in compiled.items()}
    assert held["mxfp6", "as-is"].constants_bytes < 0.6 * held[None, "as-is"].constants_bytes
    assert held[None, "mxint8"].ports_bytes < held[None, "as-is"].ports_bytes
