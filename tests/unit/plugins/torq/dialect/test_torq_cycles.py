"""Our cycles beside those of torq-compile 2.3.0, and one network as TFLite and as converted TOSA.

The figures are totals of the compile-time profiles that the vendor's compiler wrote for int8 networks of the zoo.
Single operators and the rows marked `sets` were looked at when the target's figures were chosen; the others judge.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from statistics import median

import pytest

from opscope.plugins.torq.dialect.hardware import hardware
from opscope.plugins.torq.dialect.sequenced import schedule_model
from opscope.zoo import Recipe, make

SETS, JUDGES = "sets", "judges"
REAL = (  # network, its options, chip, cycles of torq-compile 2.3.0, what the row is for
    ("fc", {}, "SL2610", 285_397, SETS),
    ("fc", {}, "SR200", 555_239, SETS),
    ("fc", {"features": 640, "units": 128}, "SL2610", 19_222, SETS),
    ("fc", {"features": 4096, "units": 256}, "SR200", 459_096, SETS),
    ("fc", {"features": 2048, "units": 512}, "SL2610", 238_757, JUDGES),
    ("conv-small", {}, "SL2610", 16_538, SETS),
    ("conv-small", {}, "SR200", 20_534, SETS),
    ("conv-small", {"channels": 48}, "SL2610", 60_776, JUDGES),
    ("conv-small", {"channels": 48}, "SR200", 92_510, JUDGES),
    ("conv-small", {"channels": 64}, "SR200", 151_069, JUDGES),
    ("conv-small", {"channels": 96}, "SR200", 354_950, JUDGES),
    ("conv-small", {"channels": 128}, "SL2610", 308_510, SETS),
    ("conv-small", {"channels": 128}, "SR200", 1_037_105, SETS),
    ("kws-cnn", {}, "SL2610", 34_406, SETS),
    ("kws-cnn", {}, "SR200", 49_835, SETS),
    ("cifar-resnet", {}, "SL2610", 69_334, SETS),
    ("cifar-resnet", {}, "SR200", 108_805, SETS),
    ("vww-mobilenetv1", {}, "SL2610", 122_716, JUDGES),
    ("vww-mobilenetv1", {}, "SR200", 196_760, JUDGES),
    ("mobilenetv2", {"size": 96, "classes": 2}, "SL2610", 748_547, SETS),
    ("mobilenetv2", {"size": 96, "classes": 2}, "SR200", 1_682_850, SETS),
    ("mobilenetv2", {}, "SL2610", 2_181_823, SETS),
    ("mobilenetv2", {}, "SR200", 5_159_736, SETS),
    ("mobilenetv2", {"size": 160}, "SR200", 3_253_322, JUDGES),
    ("efficientnet-lite0", {}, "SL2610", 2_769_114, JUDGES),
    ("mnasnet", {"size": 96}, "SR200", 2_733_900, JUDGES),
    ("mobilenetv3-small", {"size": 96}, "SL2610", 903_255, JUDGES),
    ("resnet18", {"size": 64}, "SL2610", 3_956_555, SETS),
)
EACH, MIDDLE = 0.25, 0.10


@pytest.fixture(scope="module")
def ratios(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], float]:
    """Ours over theirs."""
    folder, found = tmp_path_factory.mktemp("torq"), {}
    for name, options, chip, real, _ in REAL:
        words = "_".join(f"{key}{value}" for key, value in options.items())
        path = folder / f"{name}{words}.tflite"
        if not path.exists():
            make(Recipe(name, precision="int8", format="tflite", options=options), path)
        found[name, words, chip] = schedule_model(path, hardware(chip)).timeline.total_cycles / real
    return found


def test_every_network_is_within_a_quarter_of_the_vendors_compiler(ratios: dict[tuple[str, str, str], float]) -> None:
    far = {key: round(ratio, 2) for key, ratio in ratios.items() if abs(ratio - 1) > EACH}
    assert not far


def test_the_median_is_within_a_tenth(ratios: dict[tuple[str, str, str], float]) -> None:
    assert abs(median(ratios.values()) - 1) < MIDDLE


def test_sr200_is_the_hardware_that_its_fields_say() -> None:
    assert hardware("SR200").name == "torq-sr200"
    spelt = hardware("1:256:1:coral_v1:nss_v1:4:0.66")
    assert [engine.units for engine in spelt.engines] == [engine.units for engine in hardware("sr200").engines]
    assert [route.reached for route in spelt.routes] == [route.reached for route in hardware("SR200").routes]


@pytest.mark.parametrize("name", ["fc", "conv-small", "kws-cnn", "cifar-resnet", "vww-mobilenetv1"])
@pytest.mark.parametrize("chip", ["SL2610", "SR200"])
def test_a_network_costs_the_same_as_tflite_and_as_converted_tosa(name: str, chip: str, tmp_path: Path) -> None:
    tool = Path(os.environ.get("OPSCOPE_TORQ", "/nowhere")) / "bin" / "tosa-converter-for-tflite"
    if not tool.exists():
        pytest.skip("no environment of Torq's tools in OPSCOPE_TORQ")
    pytest.importorskip("iree.compiler.ir", reason="the extra [mlir] is not installed")
    path, tosa = tmp_path / "n.tflite", tmp_path / "n.mlir"
    make(Recipe(name, precision="int8", format="tflite"), path)
    subprocess.run([tool, "--text", "--emit-debug-info", path, "-o", tosa], check=True, capture_output=True)
    ours = schedule_model(path, hardware(chip)).timeline.total_cycles
    assert schedule_model(tosa, hardware(chip)).timeline.total_cycles == pytest.approx(ours, rel=0.01)
