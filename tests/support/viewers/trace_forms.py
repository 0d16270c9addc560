"""The two forms of a trace, read back: Chrome JSON, and Perfetto's packets by its own schema."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

from opscope.recording.trace import Trace
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.views.timeline.perfetto_trace import PerfettoTrace
from opscope.workflows.program_recording import head_of
from support.decode.build import Profiled

pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="`perfetto` is not installed")

Span = tuple[str, str, int, int, tuple[tuple[str, str], ...]]


class Reader:
    """Packets of a trace → spans, counters and arrows; starts and ends are paired in the order of their times."""

    def __init__(self, raw: bytes) -> None:
        trace = pb.Trace()
        trace.ParseFromString(raw)
        self.packets = list(trace.packet)
        interned = self.packets[0].interned_data
        self.names = {e.iid: e.name for e in interned.event_names}
        self.args = {e.iid: e.name for e in interned.debug_annotation_names}
        self.values = {e.iid: e.str.decode() for e in interned.debug_annotation_string_values}
        self.rows: dict[int, str] = {}
        for packet in self.packets:
            track = packet.track_descriptor
            if track.HasField("thread"):
                self.rows[track.uuid] = track.thread.thread_name
            elif track.uuid:
                self.rows[track.uuid] = track.name or track.process.process_name
        self.spans: list[Span] = []
        self.instants: list[tuple[str, str, int]] = []
        self.counters: list[tuple[str, int, float]] = []
        self.arrows: dict[int, list[str]] = {}
        self._read()

    def _read(self) -> None:
        events = [packet for packet in self.packets if packet.HasField("track_event")]
        stacks: dict[int, list[tuple[str, int, tuple[tuple[str, str], ...]]]] = {}
        for packet in sorted(events, key=lambda p: p.timestamp):
            event, row = packet.track_event, self.rows[packet.track_event.track_uuid]
            if event.type == pb.TrackEvent.TYPE_COUNTER:
                self.counters.append((row, packet.timestamp, event.double_counter_value))
            elif event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
                name = self.names[event.name_iid]
                stacks.setdefault(event.track_uuid, []).append((name, packet.timestamp, self._arguments(event)))
                for number in (*event.flow_ids, *event.terminating_flow_ids):
                    self.arrows.setdefault(number, []).append(f"{row}/{name}/{packet.timestamp}")
            elif event.type == pb.TrackEvent.TYPE_INSTANT:
                self.instants.append((row, self.names[event.name_iid], packet.timestamp))
            else:
                name, start, args = stacks[event.track_uuid].pop()
                self.spans.append((row, name, start, packet.timestamp - start, args))
        assert not any(stacks.values())

    def _arguments(self, event: object) -> tuple[tuple[str, str], ...]:
        found = {}
        for arg in event.debug_annotations:  # type: ignore[attr-defined]
            kind = arg.WhichOneof("value")
            value = self.values[arg.string_value_iid] if kind == "string_value_iid" else getattr(arg, kind)
            found[self.args[arg.name_iid]] = str(value) if not isinstance(value, float) else f"{value:g}"
        return tuple(sorted(found.items()))


def plain(value: object) -> str:
    try:
        return f"{float(str(value)):g}" if "." in str(value) else str(value)
    except ValueError:
        return str(value)


def from_json(raw: bytes) -> tuple[list[Span], list[tuple[str, int, float]], list[tuple[str, str]]]:
    events = json.loads(raw)["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [
        (
            rows[e["tid"]],
            e["name"],
            round(e["ts"] * 1000),
            round(e["dur"] * 1000),
            tuple(sorted((k, plain(v)) for k, v in e["args"].items() if k != "provenance")),
        )
        for e in events
        if e["ph"] == "X"
    ]
    counters = [
        (f"{e['name']} {unit}", round(e["ts"] * 1000), value)
        for e in events
        if e["ph"] == "C"
        for unit, value in e["args"].items()
    ]
    arrows = [(str(e["id"]), e["cat"]) for e in events if e["ph"] == "s"]
    return spans, counters, arrows


def instants_of(raw: bytes) -> list[tuple[str, str, int]]:
    """Row, name and time in ns of every instant of a Chrome trace."""
    events = json.loads(raw)["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [(rows[e["tid"]], e["name"], round(e["ts"] * 1000)) for e in events if e["ph"] == "i"]


def both(profile: Profiled, trace: Trace) -> tuple[bytes, bytes]:
    out = []
    for view in (
        ChromeTrace(head_of(profile.program), flows=True),
        PerfettoTrace(head_of(profile.program), flows=True),
    ):
        stream = BytesIO()
        view.render(trace, stream)
        out.append(stream.getvalue())
    return out[0], out[1]
