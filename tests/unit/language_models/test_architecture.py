"""Descriptions of language models: parameters as published, and what a graph has of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.graph.graph import Graph, Role
from opscope.language_models.built_in import BUILT_IN
from opscope.language_models.config import load
from opscope.language_models.decoder import prefill
from opscope.language_models.decoder_graph import decoder_graph

# One of each family, counted in the networks that transformers 5.23 builds of the same fields.
COUNTED = {
    "llama-2-7b": 6_738_415_616, "smollm3-3b": 3_075_098_624, "granite-3.1-2b": 2_533_531_648,
    "mistral-7b": 7_241_732_096, "mixtral-8x7b": 46_702_792_704, "qwen2-0.5b": 494_032_768,
    "qwen3-0.6b": 596_049_920, "qwen1.5-moe-a2.7b": 14_315_784_192, "qwen3-30b-a3b": 30_532_122_624,
    "qwen3.5-0.8b": 752_393_024, "gemma-2b": 2_506_172_416, "gemma-2-2b": 2_614_341_888,
    "gemma-3-270m": 268_098_176, "gemma-4-31b": 30_697_345_280, "phi-1.5": 1_418_270_720,
    "phi-3-mini-4k": 3_821_079_552, "phi-3.5-moe": 41_873_153_344, "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_404_352, "minicpm3-4b": 4_073_875_968, "qwen3-next-80b-a3b": 79_674_391_296,
    "qwen3.5-35b-a3b": 34_660_610_688, "llama-4-scout": 107_769_861_120, "granite-3.0-1b-a400m": 1_334_628_352,
    "command-r7b": 8_028_033_024, "command-r": 34_980_831_232, "olmo-3-7b": 7_298_011_136,
    "ernie-4.5-0.3b": 360_748_032, "nemotron-mini-4b": 4_190_509_056, "seed-oss-36b": 36_151_104_512,
    "internlm3-8b": 8_804_241_408, "codegen-2b": 2_779_356_160, "lfm2-350m": 354_483_968, "bamba-9b": 9_780_235_392,
    "gpt-oss-20b": 20_914_757_184, "olmo-1b": 1_176_764_416, "olmo-2-7b": 7_298_617_344, "olmoe-1b-7b": 6_919_161_856,
    "stablelm-2-1.6b": 1_644_515_328, "starcoder2-3b": 3_030_371_328, "glm-4-9b": 9_399_951_360, "gpt2": 124_439_808,
    "gpt-j-6b": 6_050_882_784, "starcoder-15b": 15_517_456_384, "gpt-neox-20b": 20_554_567_680,
    "opt-125m": 125_239_296, "bloom-560m": 559_214_592, "mpt-7b": 6_649_286_656, "falcon-7b": 6_921_720_704,
}  # fmt: skip


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_model_has_as_many_parameters_as_stated(name: str) -> None:
    model = load(name)
    found = model.parameters + (model.head.elements if model.family == "falcon" else 0)  # its files hold the head twice
    stated = 0.01 if name == "deepseek-ocr" else 0.002  # that of the whole, less what its encoders are said to have
    assert found / 1e9 == pytest.approx(BUILT_IN[name].parameters, rel=stated)


@pytest.mark.parametrize("name", COUNTED)
def test_a_built_in_model_has_exactly_the_parameters_of_its_network(name: str) -> None:
    assert load(name).parameters == COUNTED[name]


def constants(graph: Graph) -> int:
    return sum(tensor.elements or 0 for tensor in graph.tensors if tensor.role is Role.CONSTANT)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_graph_has_every_parameter_once(name: str) -> None:
    model = load(name)
    short = replace(model, layers=tuple(model.repeats))
    many = prefill(8, 512)  # tokens enough that every expert is used
    assert constants(decoder_graph(short, many)) == short.parameters


def test_a_token_uses_some_of_the_experts() -> None:
    model = load("mixtral-8x7b")
    assert model.active_parameters == pytest.approx(12.75e9, rel=0.01)  # 12.88 G with the whole table
    dense = load("llama-2-7b")
    assert dense.parameters - dense.active_parameters == 31_999 * 4096  # all rows of the table but one


def test_equal_layers_are_counted_once() -> None:
    model = load("gemma-3-1b")
    assert sorted(model.repeats.values()) == [4, 22]
    assert [layer.mixer.kept_tokens(9000) for layer in model.repeats] == [512, 9000]
