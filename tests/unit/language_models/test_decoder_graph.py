"""Graphs of prefill and decode: how much is computed, what is cached, and what every op belongs to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import pytest

from opscope.estimate.block_formats import cached_tensors
from opscope.estimate.work import work_of
from opscope.graph.graph import DType, Graph
from opscope.language_models.architecture import (
    Architecture,
    Attention,
    DecoderLayer,
    DecoderPart,
    FeedForward,
    LatentAttention,
    LinearAttention,
    Matrix,
    Mixture,
    Norm,
    NormPlace,
    Positions,
    QueryNorm,
    Recurrent,
    ShortConvolution,
    SideInput,
    StateSpace,
)
from opscope.language_models.config import load
from opscope.language_models.decoder import DecoderStep, decode, prefill
from opscope.language_models.decoder_graph import Storage, decoder_graph, repeated_graph
from opscope.language_models.decoder_parts import touched_experts
from opscope.readers import read_model
from opscope.workflows.retained_state import state_of
from opscope.zoo import Recipe, make

HIDDEN, HEADS, KV_HEADS, SIZE = 64, 8, 2, 16
ATTENTION = Attention(HEADS, KV_HEADS, SIZE, SIZE, rotary_size=SIZE)


def tiny(mixer: Attention | LatentAttention | Recurrent = ATTENTION, **more: object) -> Architecture:
    part = more.pop("part", FeedForward(96))
    assert isinstance(part, FeedForward | Mixture)
    whole = Architecture("tiny", "llama", HIDDEN, 100, (DecoderLayer(mixer, part),) * 3, 4096)
    return replace(whole, **more)  # type: ignore[arg-type]


def macs(graph: Graph) -> int:
    return sum(work_of(op, graph).macs * (op.trips or 1) for op in graph.ops)


def products(model: Architecture) -> int:
    """MACs of one token in products with weights, without the head."""
    rows = [
        row
        for row in model.parameter_rows
        if row.used_rows is None and not row.is_small and row.block is not DecoderPart.HEAD
    ]
    return sum(row.count * row.matrix.active * row.matrix.elements for row in rows)


def expected(model: Architecture, step: DecoderStep) -> int:
    head = step.batch * model.head.elements
    scores = 0
    for layer in model.layers:
        mixer = layer.mixer
        assert isinstance(mixer, Attention)
        scores += mixer.heads * (mixer.head_size + mixer.value_size) * step.tokens * step.keys(mixer.window)
    return step.batch * (step.tokens * products(model) + scores) + head


@pytest.mark.parametrize("step", [decode(1, 100), decode(4, 7), prefill(1, 32), prefill(2, 32, 64)])
@pytest.mark.parametrize(
    "model",
    [
        tiny(),
        tiny(replace(ATTENTION, bias=True, output_bias=True, query_norm=QueryNorm.HEAD)),
        tiny(replace(ATTENTION, query_norm=QueryNorm.WHOLE, gated=True, softcap=True, sinks=True)),
        tiny(replace(ATTENTION, window=48)),
        tiny(norm=Norm(mean=True, bias=True), parallel=True, shared_norm=True, head_bias=True),
        tiny(parallel=True, part=FeedForward(96, gated=False, activation="gelu", bias=True)),
        tiny(norm_place=NormPlace.AROUND, tied=True),
        tiny(norm_place=NormPlace.AFTER, positions=Positions.LEARNED, position_rows=4096, embedding_norm=True),
        tiny(positions=Positions.ALIBI),
    ],
)
def test_macs_are_parameters_times_tokens_and_attention(model: Architecture, step: DecoderStep) -> None:
    assert macs(decoder_graph(model, step)) == expected(model, step)


def test_a_window_shorter_than_a_prompt_is_a_band() -> None:
    model = tiny(replace(ATTENTION, window=16))
    step = prefill(1, 64)
    assert step.keys(16) == 31  # a block of 16 queries reads the 15 keys before it, and its own
    assert macs(decoder_graph(model, step)) == expected(model, step)
    uneven = decoder_graph(model, prefill(1, 61))
    assert any(op.kind == "pad" for op in uneven.ops)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
def test_there_is_no_step_of_nothing(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="expected a batch and tokens of 1 or more"):
        DecoderStep(*sizes)


def test_the_head_answers_the_last_token_alone() -> None:
    model = tiny()
    difference = macs(decoder_graph(model, prefill(1, 8))) - macs(decoder_graph(model, prefill(1, 1)))
    scores = HEADS * 2 * SIZE * len(model.layers)
    assert difference == 7 * products(model) + (8 * 8 - 1) * scores


@pytest.mark.parametrize(("weights", "kv"), [("f16", "f16"), ("mxfp6", "mxint8"), ("w4a16", "i8"), ("i8", "i8")])
def test_the_cache_is_a_state_that_comes_back(weights: str, kv: str) -> None:
    graph = decoder_graph(tiny(), decode(1, 31), Storage.of(weights, kv))
    inputs, outputs = state_of(graph)
    assert len(inputs) == len(outputs) == 6
    assert {tensor.shape for tensor in (*inputs, *outputs)} == {(1, KV_HEADS, 32, SIZE)}
    kinds = {"mxint8": DType.MXINT8, "i8": DType.I8, "f16": DType.F16}
    assert {tensor.dtype for tensor in (*inputs, *outputs)} == {kinds[kv]}
    if kv == "f16":
        assert len(cached_tensors(graph)) == 12


def test_heads_that_share_keys_read_them_once() -> None:
    graph = decoder_graph(tiny(), decode(1, 31))
    scores = next(
        op
        for op in graph.ops
        if op.kind == "matmul" and graph.tensors[op.inputs[1]].name.startswith("past_key_values.0.key")
    )
    assert graph.tensors[scores.inputs[1]].shape == (1, KV_HEADS, 32, SIZE)
    assert graph.tensors[scores.outputs[0]].shape == (1, KV_HEADS, HEADS // KV_HEADS, 32)


def test_every_op_has_its_block_and_its_layer() -> None:
    graph = decoder_graph(tiny(), decode(1, 31), Storage.of("mxfp6", "mxint8"))
    words = {block.value for block in DecoderPart}
    assert {op.attributes.get("block") for op in graph.ops} == words
    assert {op.attributes.get("layer") for op in graph.ops} == {None, 0, 1, 2}
    outside = {op.attributes["block"] for op in graph.ops if "layer" not in op.attributes}
    assert outside == {"embedding", "head"}


@pytest.mark.parametrize("name", ["gemma-3-1b", "qwen3.5-0.8b", "deepseek-v2-lite", "gpt-oss-20b", "opt-350m"])
@pytest.mark.parametrize("step", [decode(2, 2000), prefill(1, 700)])
def test_equal_layers_once_are_as_much_work_as_all_of_them(name: str, step: DecoderStep) -> None:
    model = load(name)
    once, whole = repeated_graph(model, step), decoder_graph(model, step)
    assert len(once.ops) < len(whole.ops) / 2
    for what in ("macs", "element_ops", "constant_bytes", "read_bytes", "write_bytes"):
        counts = [sum(getattr(work_of(op, g), what) * (op.trips or 1) for op in g.ops) for g in (once, whole)]
        assert counts[0] == counts[1]


# ---- what layers share ----------------------------------------------------------------------------------------------


def test_a_layer_that_reuses_a_cache_has_none_of_its_own() -> None:
    part = FeedForward(96)
    near = replace(ATTENTION, window=16)
    own = (DecoderLayer(near, part), DecoderLayer(ATTENTION, part))
    reusing = tuple(DecoderLayer(replace(layer.mixer, reuses=True), part) for layer in own)  # type: ignore[type-var]
    model = tiny(layers=(*own, *reusing))
    graph = decoder_graph(model, decode(1, 99))
    assert [graph.tensors[t].name for t in graph.inputs if graph.tensors[t].name.startswith("past")] == [
        f"past_key_values.{layer}.{name}" for layer in (0, 1) for name in ("key", "value")
    ]
    scores = [op for op in graph.ops if op.kind == "matmul" and "past_key" in graph.tensors[op.inputs[1]].name]
    lengths = [(op.attributes["layer"], graph.tensors[op.inputs[1]].shape) for op in scores]
    assert [shape[2] for layer, shape in lengths if layer in (0, 2) and shape] == [16] * 4
    assert [shape[2] for layer, shape in lengths if layer in (1, 3) and shape] == [100] * 4
    assert macs(graph) == expected(model, decode(1, 99))


def test_values_that_are_keys_are_one_product() -> None:
    model = tiny(replace(ATTENTION, value_is_key=True, query_norm=QueryNorm.HEAD))
    assert macs(decoder_graph(model, prefill(1, 5))) == expected(model, prefill(1, 5))
    assert (
        model.parameters
        == tiny(replace(ATTENTION, query_norm=QueryNorm.HEAD)).parameters - 3 * HIDDEN * KV_HEADS * SIZE
    )


def test_a_layer_reads_its_own_vector_of_each_token() -> None:
    layers = (DecoderLayer(ATTENTION, FeedForward(96), SideInput(8, "gelu")),) * 3
    model = tiny(layers=layers, side_table=Matrix(100, 3 * 8))
    assert macs(decoder_graph(model, prefill(2, 5))) == expected(model, prefill(2, 5))
    assert model.parameters - tiny().parameters == (
        100 * 24 + HIDDEN * 24 + 8 + 3 * (2 * HIDDEN * 8 + HIDDEN)
    )  # table, its product and gains; gates, products and gains of layers


# ---- experts --------------------------------------------------------------------------------------------------------


def test_a_token_touches_its_own_experts_and_many_touch_all() -> None:
    part = Mixture(experts=64, active=6, intermediate=32)
    counts = [touched_experts(part, tokens) for tokens in (1, 2, 8, 64, 4096)]
    assert counts[0] == 6
    assert counts == sorted(counts)
    assert counts[2] == 35  # 64 × (1 - (58 / 64)⁸)
    assert counts[-1] == 64


@pytest.mark.parametrize("step", [decode(1, 10), decode(5, 10), prefill(2, 33)])
def test_experts_multiply_each_token_as_often_as_it_is_routed(step: DecoderStep) -> None:
    part = Mixture(experts=16, active=3, intermediate=32, shared=48, shared_gate=True, bias=True, router_bias=True)
    model = tiny(part=part)
    assert macs(decoder_graph(model, step)) == expected(model, step)


def test_weights_of_experts_are_read_once_by_all_tokens() -> None:
    model = tiny(part=Mixture(experts=16, active=3, intermediate=32))
    graph = decoder_graph(model, decode(1, 10))
    experts = [op for op in graph.ops if op.kind == "matmul" and "experts" in op.name and op.attributes["layer"] == 0]
    shapes = [graph.tensors[op.inputs[1]].shape for op in experts]
    assert shapes == [(3, HIDDEN, 32), (3, HIDDEN, 32), (3, 32, HIDDEN)]


# ---- latent and linear attention ------------------------------------------------------------------------------------

LATENT = LatentAttention(8, 24, 32, 16, 8, 16)


def test_a_latent_cache_is_small_and_read_by_all_heads() -> None:
    graph = decoder_graph(tiny(LATENT), decode(1, 255))
    caches = [graph.tensors[t].shape for t in graph.inputs if graph.tensors[t].name.startswith("past_key_values.0")]
    assert caches == [(1, 1, 256, 32), (1, 1, 256, 8)]


def test_a_decode_step_brings_queries_to_the_latent_vectors() -> None:
    """Its products with weights are those of the parameters; keys and values of old tokens are not made again."""
    model, step = tiny(LATENT), decode(1, 1023)
    attention = 3 * 1024 * LATENT.heads * (2 * LATENT.kv_rank + LATENT.rotary_size)
    assert macs(decoder_graph(model, step)) == products(model) + attention + model.head.elements


def test_a_prompt_makes_keys_and_values_of_all_heads() -> None:
    model, step = tiny(LATENT), prefill(1, 64)
    attention = 3 * 64 * 64 * LATENT.heads * (LATENT.head_size + LATENT.value_size)
    assert macs(decoder_graph(model, step)) == 64 * products(model) + attention + model.head.elements


LINEAR = LinearAttention(2, 4, 16, 16, 4)


def test_a_state_does_not_grow_with_the_context() -> None:
    short, long = (decoder_graph(tiny(LINEAR), decode(1, context)) for context in (10, 4000))
    assert macs(short) == macs(long)
    inputs, outputs = state_of(short)
    assert {tensor.shape for tensor in inputs} == {(1, LINEAR.mixed, 3), (1, 4, 16, 16)}
    assert len(inputs) == len(outputs) == 6


@pytest.mark.parametrize("tokens", [2, 64, 100, 256])
def test_a_prompt_goes_through_linear_attention_in_chunks(tokens: int) -> None:
    graph = decoder_graph(tiny(LINEAR), prefill(1, tokens))
    assert macs(graph) > tokens * products(tiny(LINEAR))


SPACE = StateSpace(heads=4, head_size=16, groups=2, state_size=8, kernel=4)
CONVOLUTION = ShortConvolution(HIDDEN, 3)


@pytest.mark.parametrize(("mixer", "states"), [(SPACE, 6), (CONVOLUTION, 3)])
def test_other_states_do_not_grow_either(mixer: StateSpace | ShortConvolution, states: int) -> None:
    short, long = (decoder_graph(tiny(mixer), decode(1, context)) for context in (10, 4000))
    assert macs(short) == macs(long)
    inputs, outputs = state_of(short)
    assert len(inputs) == len(outputs) == states
    kept = sum(tensor.elements or 0 for tensor in inputs)
    assert kept == 3 * mixer.state_elements


@pytest.mark.parametrize("mixer", [SPACE, CONVOLUTION])
@pytest.mark.parametrize("step", [decode(2, 10), prefill(1, 2), prefill(2, 300)])
def test_a_convolution_of_few_taps_is_little_work(mixer: StateSpace | ShortConvolution, step: DecoderStep) -> None:
    model = tiny(mixer)
    tokens = step.batch * step.tokens
    least = tokens * products(model) + step.batch * model.head.elements
    assert least < macs(decoder_graph(model, step)) < 2.5 * least


# ---- size -----------------------------------------------------------------------------------------------------------


def test_the_graph_of_a_large_model_is_built_in_little_time() -> None:
    model = load("llama-3.1-70b")
    start = perf_counter()
    graph = decoder_graph(model, decode(1, 4096), Storage.of("mxfp6", "mxint8"))
    assert perf_counter() - start < 2
    assert len(graph.ops) > 2000


# ---- the same decoder as a file -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "step"), [("decode", decode(2, 31)), ("prefill", prefill(2, 8, 24))])
def test_a_file_of_the_zoo_multiplies_as_much(word: str, step: DecoderStep, tmp_path: Path) -> None:
    """But for angles, which a file computes, and logits of all tokens, which it gives out."""
    options = {"layers": 3, "hidden": 128, "heads": HEADS, "kv_heads": KV_HEADS, "intermediate": 96, "vocabulary": 100}
    path = tmp_path / "decoder.onnx"
    recipe = Recipe(
        "llm-decoder", batch=2, sequence=step.tokens, options={**options, "kv_length": step.cached, "step": word}
    )
    make(recipe, path)
    layer = DecoderLayer(ATTENTION, FeedForward(96))
    model = Architecture("same", "llama", 128, 100, (layer,) * 3, 4096)
    angles = step.batch * step.tokens * SIZE // 2
    logits = step.batch * (step.tokens - 1) * model.head.elements
    assert macs(read_model(path)) == macs(decoder_graph(model, step)) + angles + logits
