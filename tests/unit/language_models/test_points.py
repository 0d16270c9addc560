"""Points of a language model: laws that hold whatever the target, and what devices, chunks and types change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import UsageError
from opscope.core.provenance import Provenance
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.language_models.architecture import Architecture, Attention, DecoderLayer, FeedForward, Mixture
from opscope.language_models.built_in import BUILT_IN
from opscope.language_models.config import load
from opscope.language_models.decoder import DecoderStep, Routing, decode, prefill
from opscope.language_models.decoder_graph import Storage, decoder_graph, repeated_graph
from opscope.language_models.decoder_parts import expected_experts, touched_experts
from opscope.language_models.estimated_step import estimated_step
from opscope.language_models.memory import cache_bytes
from opscope.language_models.point import Point
from opscope.language_models.points import Estimator, Serving, as_held, as_run, find_points
from opscope.machine import catalogue
from support.estimate.read_weights import read_weight_bytes

TARGETS = ("aic100-std", "qcs8275", "rk3588", "snapdragon-8gen3")
F16 = Storage.of("f16", "f16")


def small(layers: int = 4, *, window: int | None = None) -> Architecture:
    """A decoder with two kinds of layers."""
    plain = DecoderLayer(Attention(16, 4, 64, 64, rotary_size=64), FeedForward(4096))
    other = DecoderLayer(Attention(16, 4, 64, 64, window=window, rotary_size=64), FeedForward(2048, gated=False))
    return Architecture("small", "llama", 1024, 8192, (plain, other) * (layers // 2), 8192)


def point(
    target: str, *, model: Architecture | None = None, storage: Storage = F16, serving: Serving | None = None, **at: int
) -> Point:
    wanted = (at.get("batch", 1), at.get("prompt", 128), at.get("context", 1024))
    chosen = serving or Serving(storage)
    return find_points(model or small(), catalogue.load(target), chosen, [wanted])[0]


@pytest.mark.parametrize("target", TARGETS)
def test_ranges_hold_their_value_and_every_phase_says_what_binds_it(target: str) -> None:
    found = point(target)
    for phase in (found.prefill, found.decode):
        assert phase.time_ms is not None
        assert 0 < phase.time_ms.low <= phase.time_ms.value <= phase.time_ms.high
        assert phase.bound in {"compute", "memory", "launch", "layout", "host"}
        assert sum(phase.shares.values()) == pytest.approx(1)
    assert {"attention", "feed-forward", "head", "cache"} <= set(found.decode.shares)


@pytest.mark.parametrize("names", [("launch", "memory"), ("memory", "launch"), ("exchange", "exchange")])
@pytest.mark.parametrize("target", TARGETS)
def test_what_binds_a_phase_does_not_depend_on_what_parts_of_a_target_are_called(
    target: str, names: tuple[str, str]
) -> None:
    chip = catalogue.load(target)
    memories, engines = (
        {part.name: f"{word}{n or ''}" for n, part in enumerate(parts)}
        for word, parts in zip(names, (chip.memories, chip.engines), strict=True)
    )
    layout = chip.layout and replace(chip.layout, engines=tuple(engines[each] for each in chip.layout.engines))
    other = replace(
        chip,
        memories=tuple(replace(each, name=memories[each.name]) for each in chip.memories),
        engines=tuple(replace(each, name=engines[each.name]) for each in chip.engines),
        layout=layout,
    )
    step = decode(1, 1024)
    known, found = (estimated_step(small(), step, F16, use_machine(each)) for each in (chip, other))
    assert known.bounds
    assert (found.bounds, found.seconds) == (known.bounds, known.seconds)


@pytest.mark.parametrize("target", TARGETS)
def test_more_users_never_make_fewer_tokens_in_total(target: str) -> None:
    steps = Estimator(load("llama-3.2-1b"), catalogue.load(target), Serving(F16))
    rates = []
    for batch in (1, 2, 3, 4, 8, 16, 32):
        seconds = steps.decode(batch, 1024).seconds
        assert seconds is not None
        rates.append(batch / seconds.value)
    assert rates == sorted(rates)


# 384 KB of an RK3588 do not hold the scores of eight users: these pass the memory too.
@pytest.mark.parametrize(
    ("target", "batch"), [(name, batch) for name in TARGETS for batch in (1, 8) if (name, batch) != ("rk3588", 8)]
)
@pytest.mark.parametrize(("weights", "cache"), [("f16", "f16"), ("w4a16", "i8"), ("w8a8", "f16")])
def test_a_token_reads_weights_once_and_the_cache_once(target: str, weights: str, cache: str, batch: int) -> None:
    model, machine = load("llama-3.2-1b"), catalogue.load(target)
    storage = Storage.of(weights, cache)
    found = point(target, model=model, storage=storage, batch=batch, context=2048)
    held = as_run(as_held(storage, machine), machine)
    wanted = read_weight_bytes(model, held, decode(batch, 2048)) + cache_bytes(model, held, batch, 2048)
    assert found.decode.read_bytes is not None
    assert found.decode.read_bytes.value == pytest.approx(wanted, rel=0.02)


def of_each_family() -> list[str]:
    """A built-in model of each family, the smallest."""
    ordered = sorted(BUILT_IN.values(), key=lambda row: -row.parameters)
    return sorted({row.config["model_type"]: row.name for row in ordered}.values())


@pytest.mark.parametrize("name", of_each_family())
def test_a_token_of_any_family_reads_weights_once_and_the_cache_once(name: str) -> None:
    """Eight users, with blocks of few bits; states of fixed size are read and written."""
    model, step = load(name), decode(8, 1024 if load(name).longest_context > 1024 else 512)
    steps = Estimator(model, catalogue.load("aic100-ultra"), Serving(Storage.of("mxfp6", "mxint8")))
    held, moved = steps.storage, steps.step(step, 1).moved_bytes
    states = sum(count * layer.mixer.state_elements for layer, count in model.repeats.items()) * step.batch * 2
    wanted = read_weight_bytes(model, held, step) + cache_bytes(model, held, step.batch, step.cached) + states
    assert moved is not None
    assert moved.value == pytest.approx(wanted, rel=0.02)


def test_experts_are_read_as_tokens_agree_on_them() -> None:
    """One token reads as many as it goes to; of several, the range holds those of one subject, and of many."""
    part = Mixture(experts=128, active=8, intermediate=768)
    assert [touched_experts(part, 1, each) for each in Routing] == [8, 8, 8]
    assert expected_experts(part, 8) == pytest.approx(128 * (1 - (15 / 16) ** 8))
    alike, even, apart = (expected_experts(part, 8, each) for each in (Routing.ALIKE, Routing.EVEN, Routing.APART))
    assert 8 < alike < even < apart == 64
    assert expected_experts(part, 10_000, Routing.APART) == 128
    steps = Estimator(load("qwen3-30b-a3b"), catalogue.load("aic100-ultra"), Serving(Storage.of("mxfp6", "mxint8")))
    one, eight = (steps.step(decode(batch, 1024), 1).moved_bytes for batch in (1, 8))
    assert one is not None
    assert eight is not None
    assert one.low == one.value == one.high
    assert eight.low < eight.value < eight.high < 8 * one.value


def test_where_memory_binds_weights_of_fewer_bits_gain_what_they_save() -> None:
    wide, narrow = (
        point("rk3588", model=load("llama-2-7b"), storage=Storage.of(word, "f16")) for word in ("f16", "w8")
    )
    assert wide.decode.bound == narrow.decode.bound == "memory"
    assert wide.tpot_ms is not None
    assert narrow.tpot_ms is not None
    assert wide.decode.read_bytes is not None
    assert narrow.decode.read_bytes is not None
    saved = wide.decode.read_bytes.value / narrow.decode.read_bytes.value
    assert wide.tpot_ms.value / narrow.tpot_ms.value == pytest.approx(saved, rel=0.1)


@pytest.mark.parametrize("target", ["aic100-std", "qcs8275", "rk3588"])
@pytest.mark.parametrize("step", [decode(1, 1000), decode(4, 1000), prefill(1, 128), prefill(1, 128, 896)])
def test_layers_priced_once_are_the_whole_network(target: str, step: DecoderStep) -> None:
    """But for the layout of the first input, and for the call, which gives out the caches of a first step."""
    model, machine = small(12, window=256), use_machine(catalogue.for_language_models(catalogue.load(target)))
    once = estimate(repeated_graph(model, step, F16), machine)
    whole = estimate(decoder_graph(model, step, F16), machine)
    cycles = [sum(cost.total * trips for cost, trips in each.costs[:-1]) for each in (once, whole)]
    assert cycles[0] == pytest.approx(cycles[1], rel=0.015)
    assert once.totals.macs == whole.totals.macs


def test_chunks_of_a_prompt_grow_with_what_is_cached_and_are_summed_up() -> None:
    machine = catalogue.load("rk3588")
    steps = Estimator(small(), machine, Serving(F16, chunk=128))
    parts = steps.chunks(1, 2048, 2048)
    assert sum(times for _, times in parts) == pytest.approx(16)
    assert len(parts) < 16
    every = [steps.step(prefill(1, 128, 128 * number), 1).seconds for number in range(16)]
    whole = steps.prefill(1, 2048, 2048).seconds
    assert whole is not None
    assert whole.value == pytest.approx(sum(each.value for each in every if each is not None), rel=0.01)


def test_a_prompt_shorter_than_a_chunk_takes_a_whole_one() -> None:
    steps = Estimator(small(), catalogue.load("qcs8275"), Serving(F16))
    assert steps.chunk == 128
    assert [step.tokens for step, _ in steps.chunks(1, 5, 1024)] == [128]
    assert steps.chunks(1, 5, 1024)[0][0].length == 1024  # graphs of this runtime have a fixed context


def test_devices_share_weights_and_pay_for_the_link() -> None:
    model = load("llama-3.1-70b")
    one = point("aic100-ultra", model=model, storage=Storage.of("mxfp6", "mxint8"))
    four = point("aic100-ultra", model=model, serving=Serving(Storage.of("mxfp6", "mxint8"), 4, "tensor"))
    staged = point("aic100-ultra", model=model, serving=Serving(Storage.of("mxfp6", "mxint8"), 4, "pipeline"))
    assert one.fits is False
    assert four.fits is True
    for found in (four, staged):
        assert found.decode.shares["link"] > 0
    times = [found.tpot_ms.value for found in (four, one, staged) if found.tpot_ms is not None]
    assert times[0] < times[1] < times[2] < 1.05 * times[1]
    assert times[0] > times[1] / 4


def test_stages_serve_several_users_at_once() -> None:
    serving = Serving(Storage.of("mxfp6", "mxint8"), 4, "pipeline")
    alone, many = (point("aic100-ultra", model=load("llama-3.1-8b"), serving=serving, batch=b) for b in (1, 4))
    assert alone.decode_tokens_per_s is not None
    assert many.decode_tokens_per_s is not None
    assert many.decode_tokens_per_s.value == pytest.approx(4 * alone.decode_tokens_per_s.value, rel=0.02)


def test_a_free_choice_is_the_faster_way() -> None:
    storage, model = Storage.of("mxfp6", "mxint8"), load("llama-3.1-8b")
    found = {
        word: point("aic100-ultra", model=model, serving=Serving(storage, 4, word)).tpot_ms
        for word in ("auto", "tensor", "pipeline")
    }
    values = {word: spread.value for word, spread in found.items() if spread is not None}
    assert values["auto"] == min(values["tensor"], values["pipeline"])


def test_energy_is_power_times_time_where_power_is_known_and_else_unknown() -> None:
    found = point("aic100-ultra", serving=Serving(F16, 2, "tensor"))
    assert found.tpot_ms is not None
    assert found.decode.energy_mj is not None
    assert found.decode.energy_mj.value == pytest.approx(2 * 36.5 * found.tpot_ms.value)
    assert found.decode.energy_mj.low <= found.decode.energy_mj.value <= found.decode.energy_mj.high
    assert point("aic100-std").decode.energy_mj is None  # of arithmetic alone something is known


def test_numbers_of_a_fitted_target_are_calibrated() -> None:
    assert point("qcs8275").provenance is Provenance.CALIBRATED
    assert point("aic100-std").provenance is Provenance.ESTIMATED


def test_types_that_a_chip_does_not_compute_in_become_those_that_it_does() -> None:
    storage = Storage.of("w4a16", "f16")
    assert as_run(storage, catalogue.load("qcs8275")).weights.flows.label == "i16"
    assert as_run(storage, catalogue.load("rk3576")).weights.flows.label == "f16"
    assert as_run(Storage.of("w8a8"), catalogue.load("stm32n6")).weights.flows.label == "i8"


def test_a_head_has_the_bits_that_a_runtime_gives_it() -> None:
    storage, machine = Storage.of("w4a16", "i8"), catalogue.load("qcs8275")
    head = as_held(storage, machine).head
    assert head is not None
    assert head.dtype.bits == 8
    assert as_held(Storage.of("w8a16"), machine).head is None
    assert as_held(storage, catalogue.load("aic100-std")).head is None


def test_storage_that_no_engine_converts_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--weights mxfp6: rk3588 has no kernel that converts it; expected"):
        point("rk3588", storage=Storage.of("mxfp6", "f16"))


def test_a_context_beyond_the_model_is_refused() -> None:
    with pytest.raises(UsageError, match="small"):
        point("rk3588", model=replace(small(), longest_context=512), context=1024)


def test_weights_that_a_chip_has_no_memory_for_have_no_time() -> None:
    found = point("hailo-10h", model=load("qwen2-1.5b"), storage=Storage.of("w4a8", "i8"))
    assert found.tpot_ms is None
    assert found.fits is False
    steps = Estimator(load("qwen2-1.5b"), catalogue.load("hailo-10h"), Serving(Storage.of("w4a8", "i8")))
    assert "no memory beside; they take" in steps.decode(1, 128).withheld


def test_a_time_that_is_not_known_is_none() -> None:
    found = point("ethos-u85-1024", storage=Storage.of("w8a8", "i8"))
    assert found.tpot_ms is None
    assert found.decode.read_bytes is None
    assert found.decode_tokens_per_s is None


def test_a_model_may_be_on_several_cards() -> None:
    model, target = load("llama-3.1-8b"), catalogue.load("aic100-std")
    one, four = (
        find_points(model, target, Serving(Storage.of("mxfp6", "mxint8"), devices=devices), [(8, 128, 2048)])[0]
        for devices in (1, 4)
    )
    assert one.tpot_ms is not None
    assert four.tpot_ms is not None
    assert one.tpot_ms.value / 4 < four.tpot_ms.value < one.tpot_ms.value
    assert four.capacity_bytes == 4 * (one.capacity_bytes or 0)
    with pytest.raises(UsageError, match=r"--devices 17: aic100-std has 1 on a card; expected 1 to 16, of 16 cards"):
        find_points(model, target, Serving(Storage.of(), devices=17), [(1, 128, 2048)])
    with pytest.raises(UsageError, match=r"--devices 2: rk3588 has 1; expected 1 to 1"):
        find_points(model, catalogue.load("rk3588"), Serving(Storage.of(), devices=2), [(1, 128, 2048)])
