"""Steps on the simulated device: a layer that is simulated once counts for all that are alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.errors import UsageError
from opscope.core.provenance import Provenance
from opscope.device import simulate
from opscope.language_models.architecture import Architecture, Attention, FeedForward, Layer
from opscope.language_models.decoder import Step, decode, prefill
from opscope.language_models.decoder_graph import Storage, decoder_graph
from opscope.language_models.points import Estimator, Serving, find_points
from opscope.language_models.simulated_step import in_place
from opscope.machine import catalogue
from opscope.machine.figure import Figure
from opscope.machine.target import Target
from opscope.options import CompileOptions
from opscope.workflows.model_compiler import ModelCompiler

STORAGE = Storage.of("f16", "f16")


def two_cores() -> Target:
    target = catalogue.load("aic100-std")
    return replace(target, topology=replace(target.topology, cores=Figure(2, "architecture")))


def small(layers: int) -> Architecture:
    layer = Layer(Attention(8, 2, 64, 64, rotary_size=64), FeedForward(1536))
    return Architecture("small", "llama", 512, 2048, (layer,) * layers, 4096)


@pytest.mark.parametrize("step", [decode(1, 512), prefill(1, 32, 96)])
def test_a_layer_simulated_once_is_the_whole_network(step: Step) -> None:
    target, model = two_cores(), small(6)
    found = Estimator(model, target, Serving(STORAGE, simulate=True)).step(step, 1).seconds
    graph = in_place(decoder_graph(model, step, STORAGE))
    program, _ = ModelCompiler(graph).compile(target, CompileOptions(stats_level=0))
    assert found is not None
    assert found.value == pytest.approx(simulate(program).total_cycles / program.clock_hz, rel=0.02)


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
