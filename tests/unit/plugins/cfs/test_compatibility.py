"""What of a model a target cannot take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opscope.estimate.price import Machine
from opscope.graph.graph import DType
from opscope.machine import catalogue as targets
from opscope.machine.target import Holds, Support
from opscope.plugins.cfs.compatibility import check_compatibility
from opscope.readers import graph_of
from opscope.zoo.catalogue import Recipe, make
from support.build import Sketch, machine, memory, resnet


def test_a_model_that_fits_has_no_issues() -> None:
    draw = Sketch(dtype=DType.I8)
    graph = draw.graph(draw.conv(draw.input(1, 8, 8, 3), 8))
    found = check_compatibility(graph, Machine(targets.load("max32690-cm4")))
    assert found.compatible
    assert (found.operators, found.types, found.memory) == ((), (), ())


def test_operators_are_listed_once_with_their_layers_and_what_to_use_instead() -> None:
    draw = Sketch()
    data = draw.same("gelu", draw.same("relu", draw.same("gelu", draw.input(8))))
    chosen = machine(support=Support(ops=("relu",)))
    (issue,) = check_compatibility(draw.graph(data), chosen).operators
    assert (issue.operator, issue.layers, issue.alternative, issue.severity) == ("GELU", (0, 2), "TANH", "critical")


def test_a_custom_operator_is_an_issue_everywhere() -> None:
    draw = Sketch()
    found = check_compatibility(draw.graph(draw.op("custom", (draw.input(8),), (8,), type="MyOp")), machine())
    assert [(issue.operator, issue.alternative) for issue in found.operators] == [("MyOp", None)]
    assert not found.compatible


def test_data_types_that_the_target_lacks_are_listed_in_order() -> None:
    draw = Sketch()
    draw.op("cast", (draw.input(8, dtype=DType.F16),), (8,), dtype=DType.I8)
    assert check_compatibility(draw.graph(), machine(support=Support(dtypes=("i8",)))).types == ("f16",)
    assert check_compatibility(draw.graph(), machine()).types == ()


def ids(*memories: object) -> list[tuple[str, str]]:
    return [(i.id, i.severity) for i in check_compatibility(resnet(), machine(memories=memories)).memory]


def test_weights_are_checked_against_flash_then_ram_then_both() -> None:
    small = memory("RAM", Holds.ACTIVATIONS, size=1 << 20)
    large = memory("RAM", Holds.ACTIVATIONS, size=1 << 23)
    assert ids(large, memory("flash", Holds.CONSTANTS, size=1 << 23)) == []
    assert ids(large, memory("flash", Holds.CONSTANTS)) == [("model_storage_flash_overflow", "warning")]
    assert ids(small, memory("flash", Holds.CONSTANTS)) == [
        ("model_storage_memory_overflow", "critical"),
        ("model_storage_flash_overflow", "warning"),
        ("model_storage_ram_overflow", "warning"),
    ]


def test_activations_are_checked_against_ram() -> None:
    found = ids(memory("RAM", Holds.ACTIVATIONS, size=500_000), memory("flash", Holds.CONSTANTS, size=1 << 23))
    assert ("ram_memory_overflow", "warning") in found


def test_a_chip_without_flash_is_not_blamed_for_it() -> None:
    both = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, size=1 << 20)
    assert [name for name, _ in ids(both)] == ["model_storage_memory_overflow", "model_storage_ram_overflow"]


def test_memory_is_what_the_interpreter_takes_where_one_is_known(tmp_path: Path) -> None:
    """22.29 KB of RAM, its tail among them; the vendor's rule has 15.62. The file is more than its weights."""
    make(Recipe("kws-cnn", precision="int8", format="tflite"), tmp_path / "kws.tflite")
    chip = targets.load("max32690-cm4")
    small = replace(chip, memories=tuple(replace(m, bytes=replace(m.bytes, value=20 * 1024)) for m in chip.memories))
    found = check_compatibility(graph_of(tmp_path / "kws.tflite"), Machine(small)).memory
    assert {issue.id: issue.text for issue in found} == {
        "model_storage_memory_overflow": "the file takes 42.53 KB; flash and RAM together have 40.00 KB",
        "model_storage_flash_overflow": "the file takes 42.53 KB; flash has 20.00 KB",
        "model_storage_ram_overflow": "the file takes 42.53 KB; RAM has 20.00 KB",
        "ram_memory_overflow": "TensorFlow Lite Micro takes 22.29 KB at the peak; RAM has 20.00 KB",
    }
