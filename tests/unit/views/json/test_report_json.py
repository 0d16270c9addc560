"""The report as JSON: the documented keys, every number, null for unknown."""

from __future__ import annotations

import json
from io import StringIO

from opscope.estimate.build_report import build_report
from opscope.estimate.price import Machine
from opscope.estimate.report import Report
from opscope.graph.graph import Graph
from opscope.machine import catalogue as targets
from opscope.machine.target import Holds
from opscope.views.json.report_json import ReportJson
from support.build import Sketch, engine, figure, machine, memory, resnet

DOCUMENTED = {  # of opscope.report/1 (docs/reports.md, "JSON"): additions are allowed, omissions are not
    "": "schema provenance producer model target memory hardware layers opportunities",
    "producer": "name version",
    "model": "name path framework sha256 file_bytes parameter_bytes dtype layer_count",
    "target": "name title clock_hz",
    "memory": "peak_bytes available_bytes utilization status peak_at planned_arena_bytes scratch_bytes issues "
    "recommendations",
    "memory.peak_at": "layer tensors",
    "hardware": "total_cycles latency_ms energy_uj power_mw peak_memory_bytes accelerated_layers cpu_layers",
    "layers.0": "index operator name cycles latency_ms energy_uj power_mw macs memory_bytes accelerated bound",
    "opportunities": "parameter_bytes total_macs suggestions layerwise_memory layerwise_macs",
    "opportunities.suggestions.0": "kind text before after predicted",
    "opportunities.suggestions.0.predicted": "latency_ms peak_bytes energy_uj",
    "opportunities.layerwise_memory.0": "index operator parameter_bytes macs kernel suggestion",
    "opportunities.layerwise_macs.0": "index operator parameter_bytes macs kernel suggestion",
}


def parsed(report: Report) -> dict[str, object]:
    out = StringIO()
    ReportJson().render(report, out)

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(out.getvalue(), parse_constant=refuse)


def reported(graph: Graph, chosen: Machine) -> dict[str, object]:
    return parsed(build_report(graph, chosen, sha256="ab" * 32))


def at(document: object, path: str) -> object:
    for step in path.split(".") if path else []:
        document = document[int(step)] if step.isdecimal() else document[step]  # type: ignore[index]
    return document


def test_every_documented_key_is_there() -> None:
    document = reported(resnet(), Machine(targets.load("cfs-sample")))
    for path, keys in DOCUMENTED.items():
        assert set(keys.split()) <= set(at(document, path)), path  # type: ignore[arg-type]
    assert list(document)[:9] == DOCUMENTED[""].split()
    assert (document["schema"], document["provenance"]) == ("opscope.report/1", "estimated")


def test_layers_add_up_to_the_totals_in_the_file_too() -> None:
    document = reported(resnet(), Machine(targets.load("cfs-sample")))
    layers, hardware = document["layers"], document["hardware"]
    assert sum(layer["cycles"] for layer in layers) == hardware["total_cycles"]
    assert sum(layer["macs"] for layer in layers) == document["opportunities"]["total_macs"]
    shared = sum(layer["shared_bytes"] for layer in layers)
    assert sum(layer["memory_bytes"] for layer in layers) - shared == document["model"]["parameter_bytes"]
    peak = document["memory"]["peak_at"]
    assert (peak["layer"], peak["name"]) == (4, "add4")
    assert [tensor["bytes"] for tensor in peak["tensors"]] == [196_608] * 3


def test_what_is_not_known_is_null_never_zero() -> None:
    draw = Sketch()
    graph = draw.graph(draw.dense(draw.op("custom", (draw.input(1, 16),), (1, 16), type="MyOp"), 8))
    document = reported(graph, machine(engine(picojoules_per_mac={"*": figure(1)}), idle_watts=figure(1)))
    hardware, (custom, dense) = document["hardware"], document["layers"]
    for key in ("total_cycles", "latency_ms", "latency_low_ms", "latency_high_ms", "energy_uj", "power_mw"):
        assert hardware[key] is None, key
    assert hardware["withheld"].startswith("latency is withheld: layer 0 (MyOp)")
    assert hardware["unknown_layers"] == [0]
    for key in ("cycles", "latency_ms", "energy_uj", "power_mw", "macs", "element_ops", "bound", "engine"):
        assert custom[key] is None, key
    assert (dense["macs"], dense["cycles"]) == (128, 128)
    assert document["memory"]["runtime_bytes"] is None


def test_power_is_null_where_only_arithmetic_is_priced() -> None:
    document = reported(resnet(), Machine(targets.load("cfs-sample")))
    assert document["hardware"]["power_mw"] is None
    assert document["hardware"]["energy_uj"] > 0
    assert {layer["power_mw"] for layer in document["layers"]} == {None}


def test_a_memory_of_no_bytes_has_no_share() -> None:
    draw = Sketch()
    nothing = memory("RAM", Holds.ACTIVATIONS, Holds.CONSTANTS, size=0)
    document = reported(draw.graph(draw.same("relu", draw.input(8))), machine(memories=(nothing,)))
    assert document["memory"]["utilization"] is None
    assert document["memory"]["status"] == "DOES NOT FIT"


def test_any_name_survives_the_way_through_the_file() -> None:
    name = '名前 \x1b\n"\\ \udcff </script>'
    draw = Sketch(name)
    out = StringIO()
    ReportJson().render(build_report(draw.graph(draw.same("relu", draw.input(8))), machine(), sha256=None), out)
    out.getvalue().encode("utf-8")
    assert json.loads(out.getvalue())["model"]["name"] == name
