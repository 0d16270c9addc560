"""Bytes of weights and cache, and what fits."""

from __future__ import annotations

import pytest

from opscope.estimate.work import work_of
from opscope.graph.graph import Graph, Role
from opscope.language_models.built_in import BUILT_IN
from opscope.language_models.config import load
from opscope.language_models.decoder import decode, prefill
from opscope.language_models.decoder_graph import Storage, decoder_graph
from opscope.language_models.memory import (
    Deployment,
    Parallel,
    activation_bytes,
    cache_bytes,
    weight_bytes,
)
from opscope.machine import catalogue
from support.estimate.read_weights import read_weight_bytes

STORAGES = [("f16", "f16"), ("mxfp6", "mxint8"), ("w4", "i8"), ("w4a16", "i8"), ("i8", "f16")]


def read_bytes(graph: Graph) -> int:
    """What the ops of a graph read of constants and of the cache."""
    constants = sum(work_of(op, graph).constant_bytes for op in graph.ops)
    past = [t for t in graph.inputs if graph.tensors[t].name.startswith(("past", "conv_state", "recurrent_state"))]
    return constants + sum(graph.tensors[t].bytes or 0 for t in past)


@pytest.mark.parametrize(("weights", "kv"), STORAGES)
@pytest.mark.parametrize(
    "name",
    ["llama-3.1-8b", "qwen3-0.6b", "opt-2.7b", "mixtral-8x7b", "deepseek-v2-lite", "qwen3.5-0.8b"],
)
@pytest.mark.parametrize("batch", [1, 8])
def test_a_decode_step_reads_its_weights_and_its_cache_once(name: str, weights: str, kv: str, batch: int) -> None:
    model, storage, step = load(name), Storage.of(weights, kv), decode(batch, 2048)
    expected = read_weight_bytes(model, storage, step) + cache_bytes(model, storage, batch, 2048)
    assert read_bytes(decoder_graph(model, step, storage)) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("weights", "kv"), STORAGES)
@pytest.mark.parametrize("name", ["llama-3.2-1b", "gpt-j-6b"])
def test_weights_are_as_large_as_the_constants_of_a_graph(name: str, weights: str, kv: str) -> None:
    model, storage = load(name), Storage.of(weights, kv)
    graph = decoder_graph(model, prefill(1, 4), storage)
    constants = [tensor.bytes or 0 for tensor in graph.tensors if tensor.role is Role.CONSTANT]
    assert weight_bytes(model, storage) == sum(constants)


def test_weights_in_few_bits_have_scales() -> None:
    model = load("llama-2-7b")
    matrices = model.parameters - model.table.parameters
    assert weight_bytes(model, Storage.of("w4")) == pytest.approx(
        matrices * 4.5 / 8 + model.table.parameters * 2, rel=1e-3
    )
    assert weight_bytes(model, Storage.of("mxfp6")) == pytest.approx(
        matrices * 6.25 / 8 + model.table.parameters * 2, rel=1e-3
    )


def test_a_window_bounds_the_cache() -> None:
    model, storage = load("mistral-7b"), Storage.of()
    assert cache_bytes(model, storage, 1, 4096) == 2 * 32 * 8 * 128 * 4096 * 2
    assert cache_bytes(model, storage, 1, 32768) == cache_bytes(model, storage, 1, 4096)


def test_a_large_model_fits_on_more_devices() -> None:
    target = catalogue.load("aic100-ultra")
    model, storage = load("llama-3.1-70b"), Storage.of("mxfp6", "mxint8")
    assert not Deployment(model, storage, target, devices=1).fit(1, 4096).fits
    for parallel in Parallel:
        on_four = Deployment(model, storage, target, 4, parallel)
        assert on_four.fit(1, 4096, prompt=128).fits
        most = on_four.largest_context(8)
        assert most is not None
        assert on_four.fit(8, most).fits
        assert most == model.longest_context or not on_four.fit(8, most + 1).fits
        batch = on_four.largest_batch(4096)
        assert batch is not None
        assert not on_four.fit(batch + 1, 4096).fits
    assert Deployment(model, Storage.of(), target).largest_context(1) is None


def test_stages_of_a_pipeline_hold_all_weights_between_them() -> None:
    target, model, storage = catalogue.load("aic100-ultra"), load("llama-2-7b"), Storage.of()
    (one,) = {Deployment(model, storage, target, 1, parallel).fit(1, 100).weight_bytes for parallel in Parallel}
    halves = Deployment(model, storage, target, 2, Parallel.PIPELINE).fit(1, 100)
    assert one / 2 < halves.weight_bytes < 0.55 * one
    assert halves.cache_bytes == cache_bytes(model, storage, 1, 100) / 2


def test_logits_and_inner_features_make_the_peak_of_a_step() -> None:
    model, storage = load("llama-2-7b"), Storage.of()
    assert activation_bytes(model, storage, decode(1, 10)) == 2 * (4096 + 32000)
    assert activation_bytes(model, storage, prefill(1, 1000)) == 2 * 1000 * (2 * 4096 + 2 * 11008)


def test_every_built_in_model_has_bytes() -> None:
    for name in BUILT_IN:
        model, storage = load(name), Storage.of("mxfp6", "mxint8")
        assert read_weight_bytes(model, storage, decode(1, 8)) <= weight_bytes(model, storage) * 1.001
