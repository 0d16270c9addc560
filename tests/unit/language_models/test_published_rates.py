"""Rates that makers publish of language models, beside what is said here; typed in with their sources."""

from __future__ import annotations

from statistics import median

import pytest

from opscope.language_models.config import load
from opscope.language_models.decoder_graph import Storage
from opscope.language_models.points import Serving, find_points
from opscope.machine import catalogue

# Qualcomm Cloud AI 100 Standard, batch 1, tokens per second in decode, by weights and context. quic/cloud-ai-sdk-pages:
# blog on microscaling formats, table 1 (GPT-J, OPT); blog on AmberChat; the f16 row of Amber is 125.106 ms of a token
# in Profiler-LLM.ipynb of quic/cloud-ai-sdk, which is a source of the target's memory rate.
CLOUD_AI = (
    ("amber-7b", "f16", 128, 7.993),
    ("gpt-j-6b", "f16", 2048, 8.08),
    ("opt-2.7b", "f16", 2048, 15.44),
    ("gpt-j-6b", "mxfp6", 2048, 13.9),
    ("opt-2.7b", "mxfp6", 2048, 27.72),
    ("amberchat-7b", "mxfp6", 2048, 14.9),
)
# The same blog, table 1 (OPT 13B on the Standard card) and table 2 (an Ultra card, whose four devices share the model);
# Efficient transformers tutorial of quic/cloud-ai-sdk (Llama 3.1 8B on four devices). Found when all figures stood:
# they judge, and set none.
JUDGES = (
    ("opt-13b", "aic100-std", 1, "mxfp6", "f16", 2048, 6.98),
    ("opt-6.7b", "aic100-ultra", 4, "f16", "f16", 2048, 19.49),
    ("opt-6.7b", "aic100-ultra", 4, "mxfp6", "f16", 2048, 41.29),
    ("llama-2-7b", "aic100-ultra", 4, "f16", "f16", 2048, 26.49),
    ("llama-2-7b", "aic100-ultra", 4, "mxfp6", "f16", 2048, 43.78),
    ("gpt-j-6b", "aic100-ultra", 4, "f16", "f16", 2048, 31.14),
    ("gpt-j-6b", "aic100-ultra", 4, "mxfp6", "f16", 2048, 50.99),
    ("opt-2.7b", "aic100-ultra", 4, "f16", "f16", 2048, 64.17),
    ("opt-2.7b", "aic100-ultra", 4, "mxfp6", "f16", 2048, 104.25),
    ("llama-3.1-8b", "aic100-ultra", 4, "mxfp6", "mxint8", 4096, 49.28),
)
# airockchip/rknn-llm, benchmark table: w8a8 on the RK3588, 128 tokens of prompt; tokens per second, ms to the first.
ROCKCHIP = (("qwen2-0.5b", 41.58, 145.9), ("tinyllama-1.1b", 24.43, 243.93), ("chatglm3-6b", 4.98, 1352.94))


def decode_rate(model: str, target: str, storage: Storage, context: int) -> tuple[float, float, float]:
    prompt = min(context, 128)
    found = find_points(load(model), catalogue.load(target), Serving(storage), [(1, prompt, context)])[0]
    rate = found.decode_tokens_per_s
    assert rate is not None
    return rate.low, rate.value, rate.high


@pytest.mark.parametrize("weights", ["f16", "mxfp6"])
def test_decode_rates_of_cloud_ai_are_those_published(weights: str) -> None:
    errors, inside = [], []
    for model, word, context, published in CLOUD_AI:
        if word == weights:
            low, rate, high = decode_rate(model, "aic100-std", Storage.of(weights, "f16"), context)
            errors.append(abs(rate / published - 1))
            inside.append(low <= published <= high)
    assert median(errors) < 0.10
    assert max(errors) < 0.15
    assert all(inside)


def test_decode_rates_that_set_no_figure_are_those_published() -> None:
    """Other models, and four devices that share them."""
    errors, inside = [], 0
    for model, target, devices, weights, cache, context, published in JUDGES:
        serving = Serving(Storage.of(weights, cache), devices=devices)
        rate = find_points(load(model), catalogue.load(target), serving, [(1, 128, context)])[0].decode_tokens_per_s
        assert rate is not None
        errors.append(abs(rate.value / published - 1))
        inside += rate.low <= published <= rate.high
    assert median(errors) < 0.10
    assert inside >= 0.8 * len(JUDGES)


def test_blocks_of_six_bits_are_faster_by_less_than_the_bytes_they_save() -> None:
    """Weights enter the matrix engine as floats: its rate for them, not the memory, is the limit then."""
    wide, narrow = (
        decode_rate("gpt-j-6b", "aic100-std", Storage.of(word, "f16"), 2048)[1] for word in ("f16", "mxfp6")
    )
    assert pytest.approx(narrow / wide, rel=0.15) == 13.9 / 8.08
    assert narrow / wide < 16 / 6.25


@pytest.mark.parametrize(("model", "published", "first_ms"), ROCKCHIP)
def test_rates_of_a_fitted_chip_lie_in_their_ranges(model: str, published: float, first_ms: float) -> None:
    storage = Storage.of("w8a8", "f16")
    low, rate, high = decode_rate(model, "rk3588", storage, 128)
    assert low <= published <= high
    assert rate == pytest.approx(published, rel=0.1)
    found = find_points(load(model), catalogue.load("rk3588"), Serving(storage), [(1, 128, 128)])[0]
    assert found.ttft_ms is not None
    assert found.ttft_ms.low <= first_ms <= found.ttft_ms.high
