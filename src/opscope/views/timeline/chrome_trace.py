"""Trace as Chrome JSON, one event per line. Viewers: chrome://tracing and Perfetto."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from ...analysis.timeline.path_marks import PathMarks
from ...core.columns import Flags, Numbers
from ...recording.run import Run
from ...recording.summary import KB
from ...recording.trace import NONE, SpanKind, Trace
from .decimal_text import Text, TextRows, same_width
from .trace_args import ArgumentWords, Templates, is_instant, shown_kinds
from .trace_flows import Flows, apart, find_flows
from .trace_path import ON_PATH, path_cycles, with_path
from .trace_rows import Rows, lay_out, stats_hz

Spans = npt.NDArray[np.void]
CHUNK = 1 << 12
_OUT, _IN = b'{"ph":"s",', b'{"ph":"f","bp":"e",'  # the ends of an arrow
_json = msgspec.json.encode


class ChromeTrace:
    """Spans, counters and arrows of any trace of a run's commands. What is constant per command is encoded once."""

    suffix = ".trace.json"

    def __init__(
        self,
        run: Run,
        *,
        cores: Collection[int] | None = None,
        devices: Collection[int] | None = None,
        flows: bool = False,
        path: PathMarks | None = None,
        host_events: Sequence[Mapping[str, object]] = (),
    ) -> None:
        """Args:
        path: that of the trace of `run`, where all of it is rendered.
        host_events: are put in front as they are; their ids must be none that `lay_out` gives.
        """
        self.info, self.table = run.info, run.commands
        self.cores, self.devices = cores, devices
        self.flows, self.path = flows, path
        self.host_events = host_events
        self.words = ArgumentWords.of(run.info)
        self._begin = b',"cat":' + _json(self.words.category) + b',"args":{'
        self._templates = Templates(run.commands, self.words)
        self._command_ends: list[bytes | None] = [None] * len(self._templates)
        self._wait_ends: list[bytes | None] = [None] * (len(self._templates) + 1)

    def render(self, trace: Trace, out: BinaryIO) -> None:
        """Head, names of rows, counters, spans and arrows, block by block."""
        trace, path_ns = with_path(trace, self.path)
        rows = lay_out(trace, self.info, cores=self.cores, devices=self.devices)
        trace = apart(trace) if self.flows else trace
        flows = find_flows(trace, rows.shown) if self.flows else None
        points = np.zeros(0, np.int64) if flows is None else flows.points(trace)
        overview = rows.overview(trace)
        said = {"provenance": trace.provenance} | ({"basis": self.info.basis} if self.info.basis else {})
        about = _json(said | ({"overview_tids": overview} if overview else {}))
        out.write(b'{"displayTimeUnit":"ns","otherData":' + about + b',"traceEvents":[\n')
        for event in self.host_events:
            out.write(_json(event) + b",\n")
        for block in (*_metadata(rows), *_counters(trace, rows)):
            out.write(block)
        if flows is not None:
            out.write(self._points(trace, rows, flows, points, path_ns))
        for block in self._spans(trace, rows, points, path_ns):
            out.write(block)
        for block in () if flows is None else self._flows(trace, rows, flows):
            out.write(block)
        out.write(b'{"ph":"M","name":"process_labels","pid":%d,"args":{"labels":""}}\n]}\n' % _last_pid(rows))

    def _spans(self, trace: Trace, rows: Rows, written: Numbers, path_ns: Numbers) -> Iterator[bytes]:
        """Blocks of events, one kind of span after the other, without those that are written already."""
        whole, moment = _prefixes(rows, b'{"ph":"X",'), _prefixes(rows, b'{"ph":"i","s":"t",')
        shown, kind = rows.shown[trace.spans["lane"]], shown_kinds(self.table, trace.spans)
        shown[written] = False
        instant = is_instant(trace)
        for chosen in _chunks(np.flatnonzero(shown & instant)):
            spans = trace.spans.take(chosen)
            line = TextRows(len(spans)).chosen(moment, spans["lane"]).number(spans["start_ns"], places=3)
            yield self._plain(trace, spans, line, path_ns[chosen])
        writers: tuple[tuple[SpanKind, Callable[[Trace, Spans, TextRows, Numbers], bytes]], ...] = (
            (SpanKind.HOST, self._plain),
            (SpanKind.PHASE, self._plain),
            (SpanKind.OP, self._commands),
            (SpanKind.TRANSFER, self._commands),
            (SpanKind.WAIT, self._waits),
            (SpanKind.BARRIER, self._barriers),
        )
        for wanted, write in writers:
            for chosen in _chunks(np.flatnonzero(shown & ~instant & (kind == wanted))):
                spans = trace.spans.take(chosen)
                yield write(trace, spans, _timed(spans, whole), path_ns[chosen])

    def _points(self, trace: Trace, rows: Rows, flows: Flows, points: Numbers, path_ns: Numbers) -> bytes:
        """Spans of no length, each followed at once by the arrows that enter and leave it: so all are told apart."""
        place = np.full(len(trace.spans), NONE, np.int64)
        place[points] = np.arange(len(points))
        whole, kind = _prefixes(rows, b'{"ph":"X",'), shown_kinds(self.table, trace.spans)[points]
        lines: list[list[bytes]] = [[] for _ in points]
        for own, write in ((kind == SpanKind.PHASE, self._plain), (kind != SpanKind.PHASE, self._commands)):
            if own.any():
                spans = trace.spans.take(points[own])
                block = write(trace, spans, _timed(spans, whole), path_ns[points[own]])
                for at, line in zip(np.flatnonzero(own).tolist(), _lines(block), strict=True):
                    lines[at].append(line)
        for end, spans_of_end in ((_IN, flows.target), (_OUT, flows.source)):
            own = np.flatnonzero(place[spans_of_end] != NONE)
            if not len(own):
                continue
            block = self._arrow_ends(trace, rows, flows, end, own)
            for at, line in zip(place[spans_of_end[own]].tolist(), _lines(block), strict=True):
                lines[at].append(line)
        return b"".join(line for own_lines in lines for line in own_lines)

    def _commands(self, trace: Trace, spans: Spans, line: TextRows, path_ns: Numbers) -> bytes:
        """Ops and transfers, with everything that is known of their command."""
        table, command = self.table.rows, spans["command"]
        size, ucycles, pcycles = table["out_bytes"][command].astype(np.int64), spans["ucycles"], spans["pcycles"]
        writes, computes = size > 0, (ucycles > 0) & (table["route"][command] < 0)
        kilobytes = np.maximum(size, 1) / KB
        megahertz = pcycles / np.maximum(ucycles, 1) * (stats_hz(self.info) / 1e6)
        line.text(self._begin).string(self.words.ordinal, table["ordinal"][command].astype(np.int64), first=True)
        self._cycles(spans, line, path_ns)
        self._number(line, "effectiveFreq", hundredths(megahertz), places=2, present=computes)
        for key, cycles in (("PCyclesPerKB", pcycles), ("UCyclesPerKB", ucycles)):
            rate = hundredths(np.maximum(cycles, 0) / kilobytes)
            self._number(line, key, rate, places=2, present=writes & (cycles != NONE))
        self._number(line, "opOutputSize", size)
        names = self.words.counters(trace.op_counts.names)
        for key, values in zip(names, trace.op_counts.of(spans).T, strict=True):
            line.string(key, np.maximum(values, 0), present=values != NONE)
        return _spliced(line.rows(), self._templates.of_command[command], self._command_ends, self._command_end)

    def _command_end(self, template: int) -> bytes:
        args = b"".join(b"," + _pair(word, text) for word, text in self._templates.args(template).items())
        return args + b'},"name":' + _json(self._templates.kind(template)) + b"},\n"

    def _waits(self, trace: Trace, spans: Spans, line: TextRows, _: Numbers) -> bytes:
        """Waits, with whom they wait for; they are no work, and on no path."""
        table = self.table.rows
        known = spans["waits_on"] != NONE
        source = np.where(known, spans["waits_on"], 0)
        names = same_width([b',"name":' + _json(name) for name in trace.names])
        line.chosen(names, spans["name"]).text(self._begin)
        line.string(self.words.ordinal, table["ordinal"][spans["command"]].astype(np.int64), first=True)
        self._number(line, "opSyncDurUs", spans["end_ns"] - spans["start_ns"], places=3)
        for key, column in (("waitsOnDevice", "device"), ("waitsOnCore", "core"), ("waitsOnOc", "ordinal")):
            self._number(line, key, table[column][source].astype(np.int64), present=known)
        if engine := self.words.name("waitsOnEngine"):
            groups = same_width([*(b"," + _pair(engine, group) for group in self.table.groups), b""])
            line.chosen(groups, np.where(known, table["group"][source], len(groups) - 1))
        of_command = self._templates.of_command
        return _spliced(line.rows(), np.where(known, of_command[source] + 1, 0), self._wait_ends, self._wait_end)

    def _wait_end(self, place: int) -> bytes:
        said = {"waitsOn": "unknown"}
        if place:
            said = {"waitsOn": self._templates.kind(place - 1), "waitsOnName": self._templates.name(place - 1)}
        named = {word: text for key, text in said.items() if (word := self.words.name(key))}
        return b"".join(b"," + _pair(word, text) for word, text in named.items()) + b"}},\n"

    def _barriers(self, trace: Trace, spans: Spans, line: TextRows, _: Numbers) -> bytes:
        ordinal = self.table.rows["ordinal"][spans["command"]].astype(np.int64)
        line.text(self._begin).string(self.words.ordinal, ordinal, first=True)
        return _named(trace, spans, line)

    def _plain(self, trace: Trace, spans: Spans, line: TextRows, path_ns: Numbers) -> bytes:
        line.text(self._begin + b'"provenance":' + _json(trace.provenance))
        self._cycles(spans, line, path_ns)
        return _named(trace, spans, line)

    def _cycles(self, spans: Spans, line: TextRows, path_ns: Numbers) -> None:
        """How long a span took on its own clocks, and what of that is on the critical path."""
        pcycles, ucycles, on_path = spans["pcycles"], spans["ucycles"], path_ns > 0
        self._number(line, "opPCycle", pcycles, present=pcycles != NONE)
        self._number(line, "opUCycle", ucycles, present=ucycles != NONE)
        if on_path.any():
            line.flag(ON_PATH, on_path)
            self._number(line, "pathCycles", path_cycles(spans, path_ns), present=on_path & (pcycles != NONE))

    def _number(
        self, line: TextRows, key: str, values: Numbers, *, places: int = 0, present: Flags | None = None
    ) -> None:
        """An argument, where the words of the run have it."""
        if word := self.words.name(key):
            line.string(word, values, places=places, present=present)

    def _flows(self, trace: Trace, rows: Rows, flows: Flows) -> Iterator[bytes]:
        """Both ends of all arrows, but for ends in spans of no length, which are written with these."""
        empty = trace.spans["start_ns"] == trace.spans["end_ns"]
        for end, spans in ((_OUT, flows.source), (_IN, flows.target)):
            for chosen in _chunks(np.flatnonzero(~empty[spans])):
                yield self._arrow_ends(trace, rows, flows, end, chosen)

    def _arrow_ends(self, trace: Trace, rows: Rows, flows: Flows, end: bytes, chosen: Numbers) -> bytes:
        """Ends of arrows: out of a span one nanosecond before its end, into a span one nanosecond after its start."""
        spans = trace.spans.take((flows.source if end == _OUT else flows.target)[chosen])
        length = spans["end_ns"] - spans["start_ns"]
        inside = np.maximum(length - 1, 0) if end == _OUT else np.clip(length - 1, 0, 1)
        kinds = same_width([b'"ordering"', b'"true"'])
        line = TextRows(len(chosen)).chosen(_prefixes(rows, end), spans["lane"])
        line.number(spans["start_ns"] + inside, places=3)
        line.text(b',"name":"dependency","cat":').chosen(kinds, flows.data[chosen].astype(np.int64))
        line.text(b',"id":').number(flows.ids[chosen]).text(b',"args":{')
        line.string(self.words.ordinal, self.table.rows["ordinal"][spans["command"]].astype(np.int64), first=True)
        return line.text(b"}},\n").rows().tobytes()


def _pair(word: str, text: str) -> bytes:
    return _json(word) + b":" + _json(text)


def _prefixes(rows: Rows, begin: bytes) -> Text:
    """Per lane, how its events begin; empty where it is not shown."""
    return same_width(
        [b"" if row is None else begin + b'"pid":%d,"tid":%d,"ts":' % (row.pid, row.tid) for row in rows.of_lane]
    )


def _timed(spans: Spans, prefix: Text) -> TextRows:
    line = TextRows(len(spans)).chosen(prefix, spans["lane"]).number(spans["start_ns"], places=3)
    return line.text(b',"dur":').number(spans["end_ns"] - spans["start_ns"], places=3)


def _lines(block: bytes) -> list[bytes]:
    """Events one by one: text in JSON has no line feed of its own."""
    return block.splitlines(keepends=True)


def _chunks(chosen: Numbers) -> Iterator[Numbers]:
    for low in range(0, len(chosen), CHUNK):
        yield chosen[low : low + CHUNK]


def _named(trace: Trace, spans: Spans, line: TextRows) -> bytes:
    ends: list[bytes | None] = [None] * len(trace.names)
    return _spliced(
        line.rows(), spans["name"].astype(np.int64), ends, lambda n: b'},"name":%s},\n' % _json(trace.names[n])
    )


def _spliced(rows: Text, keys: Numbers, ends: list[bytes | None], make: Callable[[int], bytes]) -> bytes:
    """Rows of one width, each followed by the text that belongs to its key; a text is made when first needed."""
    for key in np.flatnonzero(np.bincount(keys, minlength=len(ends))).tolist():
        if ends[key] is None:
            ends[key] = make(key)
    parts: list[bytes | None] = [None] * (2 * len(rows))
    parts[0::2] = rows.reshape(-1).view(f"S{rows.shape[1]}").tolist()
    parts[1::2] = [ends[key] for key in keys.tolist()]
    return b"".join(parts)  # type: ignore[arg-type]


def hundredths(values: npt.NDArray[np.float64]) -> Numbers:
    return np.rint(values * 100).astype(np.int64)


def _metadata(rows: Rows) -> Iterator[bytes]:
    def line(name: str, pid: int, tid: int | None, args: dict[str, object]) -> bytes:
        where = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
        return _json({"ph": "M", "name": name, **where, "args": args}) + b",\n"

    for process in rows.processes:
        yield line("process_name", process.pid, None, {"name": process.name})
        yield line("process_sort_index", process.pid, None, {"sort_index": process.order})
    for row in rows.of_lane:
        if row is not None:
            yield line("thread_name", row.pid, row.tid, {"name": row.name})
            yield line("thread_sort_index", row.pid, row.tid, {"sort_index": row.order})


def _counters(trace: Trace, rows: Rows) -> Iterator[bytes]:
    for sample in trace.samples.tolist():
        counter, time_ns, value = sample
        pid, track = rows.of_counter[counter], trace.counters[counter]
        if pid is not None:
            series = {f"({track.unit})" if track.unit else "value": value}  # which a viewer puts behind the name
            yield _json({"ph": "C", "pid": pid, "ts": time_ns / 1000, "name": track.name, "args": series}) + b",\n"


def _last_pid(rows: Rows) -> int:
    return rows.processes[-1].pid if rows.processes else 1
