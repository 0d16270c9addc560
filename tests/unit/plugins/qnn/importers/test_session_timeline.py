"""Session profile of ONNX Runtime with the events of its QNN provider."""

from __future__ import annotations

import json
from pathlib import Path

from opscope.core.provenance import Provenance
from opscope.importers.formats import find_format, read_profile
from opscope.recording.recording import Placed
from support.plugins.importer_samples import SAMPLES, op, sample

NAME = "qnn_timeline.json"


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = (SAMPLES / NAME).read_text()
    assert old in text
    (tmp_path / NAME).write_text(text.replace(old, new))
    return tmp_path / NAME


def test_events_are_read_as_those_of_the_csv() -> None:
    imported = sample(NAME)
    assert imported.inferences == 2
    assert imported.latency_ns == 1_950_000  # the accelerator's, as of every file of a device
    assert imported.value("rpc_time") == 2_550_000
    assert [(stage.name, stage.ns) for stage in imported.host] == [
        ("runtime", 300_000),
        ("RPC", 300_000),
        ("dispatch", 300_000),
        ("device", 1_950_000),
    ]
    assert imported.samples_ns == (2_000_000, 1_900_000)
    assert op(imported, "conv0").cycles == 1_200_000
    assert op(imported, "conv0").time_ns == round(1_950_000 * 0.6)


def test_nodes_of_other_providers_are_ops_of_their_own() -> None:
    cpu = op(sample(NAME), "pre")
    assert (cpu.type, cpu.placed, cpu.time_ns) == ("Resize", Placed.CPU, 205_000)
    assert any("1 nodes of other providers are ops too" in note for note in sample(NAME).notes)


def test_what_was_done_before_the_first_run_is_a_figure() -> None:
    assert sample(NAME).value("compose: QNN compose") == 2_100_000
    assert sample(NAME).value("session run, median") == 3_395_000


def test_an_emulated_run_keeps_no_times(tmp_path: Path) -> None:
    imported = read_profile(changed(tmp_path, '"value" : "4", "unit" : "COUNT"', '"value" : "0", "unit" : "COUNT"'))
    assert imported.provenance is Provenance.COMPILER_FACT
    assert imported.latency_ns is None
    assert all(o.time_ns is None for o in imported.ops)
    assert not len(imported.trace.spans)


def test_a_call_that_only_the_host_timed_is_what_the_application_sees(tmp_path: Path) -> None:
    """A library that tells nothing: the provider takes the time of its call itself."""
    body = json.loads((SAMPLES / NAME).read_text())
    kept = [event for event in body if event["args"].get("qnn_operation") != "execute"]
    host = {"qnn_event_type": "HOST_OPERATION", "qnn_event_identifier": "QNN execute", "qnn_graph_name": "g"}
    host |= {"unit": "us", "level": "ROOT", "qnn_operation": "execute", "parent_ort_node": "g_kernel_time"}
    kept.append({**body[0], "cat": "Kernel", "name": "QNN execute", "ts": 177_300, "dur": 2_900, "args": host})
    (tmp_path / NAME).write_text(json.dumps(kept))
    assert read_profile(tmp_path / NAME).latency_ns == 2_900_000


def test_an_event_whose_value_is_no_number_is_counted(tmp_path: Path) -> None:
    imported = read_profile(changed(tmp_path, '"value" : "600000"', '"value" : "many"'))
    assert any("2 events could not be read" in note for note in imported.notes)


def test_as_a_plain_session_profile_its_events_are_not_kernels_of_the_last_node() -> None:
    """A file whose first mebibyte has none of them is taken for one."""
    plain = read_profile(SAMPLES / NAME, form="onnxruntime")
    assert find_format(SAMPLES / NAME).name == "qnn-timeline"
    assert op(plain, "pre").time_ns == 205_000
    assert all(o.host_ns is None for o in plain.ops)
    assert any("events of a provider's own profile" in note for note in plain.notes)
