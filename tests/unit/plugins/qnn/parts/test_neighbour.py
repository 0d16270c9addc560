"""Times of a part from those of its neighbour: which is nearest, what stays, what changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opscope.core.provenance import Provenance
from opscope.machine.target import Figure
from opscope.plugins.qnn.compilation import Compilation
from opscope.plugins.qnn.details import parts_of
from opscope.plugins.qnn.hexagon import hexagon_of
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.parts.neighbour import Neighbour, distance, nearest, scaled_graph, with_times
from opscope.plugins.qnn.parts.scaling import Rates
from opscope.plugins.qnn.profile import assemble
from opscope.plugins.qnn.socs import SOCS, find_soc
from opscope.recording.build import to_run
from opscope.recording.recording import Recording
from support.plugins.qnn.htp_samples import TINY_NODES, profiled, tiny

SURE = Figure(1.0, "none")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("SM8650", "SA8255"),
        ("SC8380XP", "SA8255"),
        ("QCS6490", "SA8540"),
        ("SM8450", "SA8540"),
        ("SM8750", "SA8797"),
        ("SM8850", "SA8797"),
        ("SW6100", "SAR2230P"),
        ("112", "SA8787"),
    ],
)
def test_the_nearest_part_with_a_model(part: str, expected: str) -> None:
    assert nearest(find_soc(part))[0].label == expected


def test_distance_is_symmetric_and_nothing_to_oneself() -> None:
    for soc in SOCS[::7]:
        assert distance(soc, soc) == 0
        for other in SOCS[::5]:
            assert distance(soc, other) == pytest.approx(distance(other, soc))


def without_times(compilation: Compilation) -> Compilation:
    return replace(compilation, graphs=tuple(replace(g, timeline=None, prepared=None) for g in compilation.graphs))


def merged(target: str = "57", spread: Figure = SURE) -> tuple[Recording, Recording]:
    """A phone's facts with the times of SA8255; and what SA8255 itself has."""
    soc, base = find_soc(target), find_soc("52")
    own, part = Rates.of(hexagon_of(base)), hexagon_of(soc)
    corners = tuple(Rates.of(part, end=end) for end in ("largest", "value", "smallest"))
    found = tiny()
    graphs = tuple(scaled_graph(graph, own, (corners[0], corners[1], corners[2]), spread) for graph in found.graphs)
    neighbour = Neighbour(base, HtpOptions(base), replace(found, graphs=graphs), "how it was made")
    facts = profiled(without_times(found), soc=target)
    timed = assemble(Path("model.onnx"), HtpOptions(base), neighbour.compilation)
    return with_times(facts, timed, neighbour), profiled(tiny())


def test_times_are_estimated_on_a_basis_and_bytes_stay_facts() -> None:
    result, base = merged()
    assert (result.provenance, result.basis) == (Provenance.ESTIMATED, "vendor-model of SA8255, scaled")
    assert result.target == "SM8650"
    assert result.machine["architecture"] == "v75"
    assert result.latency is not None
    assert base.latency is not None
    assert result.latency.provenance is Provenance.ESTIMATED
    assert result.trace.provenance is Provenance.ESTIMATED
    time, read = result.metric("htp_execution_time"), result.metric("ddr_read")
    assert time is not None
    assert read is not None
    assert (time.provenance, read.provenance) == (Provenance.ESTIMATED, Provenance.COMPILER_FACT)
    assert not any(metric.provenance is Provenance.VENDOR_MODEL for metric in result.metrics)
    assert all(part.latency and part.latency.provenance is Provenance.ESTIMATED for part in parts_of(result))
    assert result.notes[-1] == "how it was made"


def test_every_node_has_its_time_and_spans_belong_to_it() -> None:
    result, base = merged()
    times = {op.name: op.time_ns for op in result.ops if op.time_ns}
    assert times.keys() == {op.name for op in base.ops if op.time_ns}
    assert {name for name, _ in TINY_NODES} <= {op.name for op in result.ops}
    owners = {result.ops[op].name for op in result.trace.spans["op"].tolist()}
    assert owners == {base.ops[op].name for op in base.trace.spans["op"].tolist()}
    assert len(result.trace.spans) == len(base.trace.spans)


def test_the_range_is_ordered_and_widens_with_what_is_not_known() -> None:
    narrow, wide = (merged(spread=spread)[0].latency for spread in (SURE, Figure(1.0, "held", 0.5, 3.0)))
    assert narrow is not None
    assert wide is not None
    assert None not in (narrow.low_ns, narrow.high_ns, wide.low_ns, wide.high_ns)
    assert wide.low_ns < narrow.low_ns <= narrow.known_ns <= narrow.high_ns < wide.high_ns  # type: ignore[operator]
    assert wide.known_ns == narrow.known_ns
    assert wide.low_ns <= 0.5 * wide.known_ns  # type: ignore[operator]
    assert wide.high_ns >= 3.0 * wide.known_ns  # type: ignore[operator]


def test_the_run_says_what_its_times_rest_on() -> None:
    run = to_run(merged()[0], command=(), created="", sha256=None)
    assert run.info.obtained == "estimated: vendor-model of SA8255, scaled"
    assert "times are estimated: vendor-model of SA8255, scaled" in run.info.caveats


def test_a_twin_has_the_times_of_its_twin() -> None:
    result, base = merged(target="QCS9100")
    assert [op.time_ns for op in result.ops] == [op.time_ns for op in base.ops]
