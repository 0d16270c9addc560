"""Steps on the simulated device: a layer that is simulated once counts for all that are alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import UsageError
from opscope.core.provenance import Provenance
from opscope.language_models.architecture import Architecture, Attention, DecoderLayer, FeedForward
from opscope.language_models.config import load
from opscope.language_models.decoder import DecoderStep, decode, prefill
from opscope.language_models.decoder_graph import Storage, decoder_graph
from opscope.language_models.points import Estimator, Serving, find_points
from opscope.language_models.simulated_step import in_place
from opscope.machine import catalogue
from opscope.machine.catalogue import for_language_models
from opscope.machine.figure import Figure
from opscope.machine.target import Target
from opscope.options import CompileOptions
from opscope.simulation import simulate
from opscope.workflows.model_compiler import ModelCompiler

STORAGE = Storage.of("f16", "f16")


def two_cores(name: str = "aic100-std") -> Target:
    target = catalogue.load(name)
    topology = replace(target.topology, cores=Figure(2, "architecture"))
    return catalogue.for_language_models(replace(target, topology=topology))


def small(layers: int) -> Architecture:
    layer = DecoderLayer(Attention(8, 2, 64, 64, rotary_size=64), FeedForward(1536))
    return Architecture("small", "llama", 512, 2048, (layer,) * layers, 4096)


def two_kinds() -> Architecture:
    """Layers with a window, and each third without one."""
    full = small(1).layers[0]
    mixer = full.mixer
    assert isinstance(mixer, Attention)
    near = replace(full, mixer=replace(mixer, window=64))
    return replace(small(1), layers=(near, near, full) * 3)


@pytest.mark.parametrize("model", [small(6), two_kinds()], ids=["one kind", "two kinds"])
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("step", [decode(1, 512), prefill(1, 128), prefill(1, 32, 96)])
def test_a_layer_simulated_once_is_the_whole_network(step: DecoderStep, devices: int, model: Architecture) -> None:
    target = two_cores("aic100-ultra")
    found = Estimator(model, target, Serving(STORAGE, devices=devices, simulate=True)).step(step, devices).seconds
    graph = in_place(decoder_graph(model, step, STORAGE))
    options = CompileOptions(stats_level=0, devices=devices, parallel="tensor")
    program, _ = ModelCompiler(graph).compile(for_language_models(target), options)
    assert found is not None
    assert found.value == pytest.approx(simulate(program).total_cycles / program.clock_hz, rel=0.02)


def test_a_prompt_takes_no_less_than_its_weights_take_to_be_read() -> None:
    """Keys of a layer that are written away while a later one runs do not make it longer, or the later one shorter."""
    target = catalogue.load("aic100-std")
    model = load("llama-3.2-1b")
    serving = Serving(STORAGE, simulate=True)
    (point,) = find_points(replace(model, layers=model.layers[:6]), target, serving, [(1, 128, 128)])
    assert point.ttft_ms is not None
    assert point.ttft_ms.value > point.weight_bytes / 137e9 * 1e3  # the peak of the memory


def test_devices_that_may_share_a_model_either_way_are_simulated_the_way_that_formulas_choose() -> None:
    target, model = two_cores("aic100-ultra"), small(4)

    def point(parallel: str) -> float:
        serving = Serving(STORAGE, devices=2, parallel=parallel, simulate=True)
        found = find_points(model, target, serving, [(1, 16, 64)])[0].tpot_ms
        assert found is not None
        return found.value

    assert point("auto") in (point("tensor"), point("pipeline"))


def test_the_simulated_device_and_formulas_agree_on_a_token() -> None:
    target, model = two_cores(), small(4)
    simulated, estimated = (
        find_points(model, target, Serving(STORAGE, simulate=word), [(1, 16, 512)])[0] for word in (True, False)
    )
    assert (simulated.provenance, estimated.provenance) == (Provenance.SIMULATED, Provenance.ESTIMATED)
    assert simulated.tpot_ms is not None
    assert estimated.tpot_ms is not None
    assert simulated.tpot_ms.low <= simulated.tpot_ms.value <= simulated.tpot_ms.high
    assert simulated.tpot_ms.value == pytest.approx(estimated.tpot_ms.value, rel=0.3)
    assert simulated.decode.read_bytes == estimated.decode.read_bytes


def test_a_target_without_a_compiler_is_not_simulated() -> None:
    with pytest.raises(UsageError, match="rk3588: cannot be compiled for; expected a target that is simulated"):
        find_points(small(2), catalogue.load("rk3588"), Serving(STORAGE, simulate=True), [(1, 16, 64)])
