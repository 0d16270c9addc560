"""Spans → start and end packets, as rows of a table: spans whose packets have the same fields are encoded together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.columns import Numbers
from ...core.protobuf import bytes_field, number_field, text_field, varint
from ...recording.run import Run
from ...recording.summary import KB
from ...recording.trace import NONE, OpCounts, SpanKind, Trace
from .protobuf import MessageRows, fixed64s, padded, width_of
from .protobuf import Rows as ByteRows
from .trace_args import ArgumentWords, Templates, is_instant, shown_kinds
from .trace_flows import Flows
from .trace_path import ON_PATH, path_cycles
from .trace_rows import Rows

Spans = npt.NDArray[np.void]
CHUNK = 1 << 13

SEQUENCE_ID, CATEGORY_IID = 1, 1
STATE_CLEARED, _NEEDS_STATE = 1, 2
_PACKET, _TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _FLAGS = 1, 8, 10, 11, 13
_CATEGORIES, _ANNOTATIONS, _TYPE, _NAME, _TRACK = 3, 4, 9, 10, 11
_FLOW_IDS, _ENDED_FLOW_IDS = 47, 48
_BEGIN, _END, _INSTANT = 1, 2, 3
_INTERNED_ID, _INTERNED_TEXT = 1, 2
_ARG_NAME, _ARG_FLAG, _ARG_NUMBER, _ARG_DOUBLE, _ARG_STRING = 1, 2, 3, 5, 17
_WORK = (SpanKind.OP, SpanKind.TRANSFER)
ORDERING_FLOW = 1 << 62  # set in the id of an arrow that orders only: this form has no category for arrows
_NUMBER_ARGS = (
    "opPCycle",
    "opUCycle",
    "opOutputSize",
    "effectiveFreq",
    "PCyclesPerKB",
    "UCyclesPerKB",
    "opSyncDurUs",
    "waitsOnDevice",
    "waitsOnCore",
    "waitsOnOc",
    "waitsOn",
    "waitsOnName",
    "waitsOnEngine",
    "pathCycles",
)


class Interned:
    """Strings that a trace spells once and then calls by number, per table of InternedData; numbers start at 1."""

    CATEGORIES, NAMES, ARGS, VALUES = 1, 2, 3, 29  # fields of InternedData

    def __init__(self) -> None:
        self._tables: dict[int, dict[str, int]] = {self.CATEGORIES: {}, self.NAMES: {}, self.ARGS: {}, self.VALUES: {}}
        self._encoded: tuple[int, bytes] = (0, b"")  # of so many strings

    def number(self, table: int, text: str) -> int:
        known = self._tables[table]
        return known.setdefault(text, len(known) + 1)

    def count(self, table: int) -> int:
        return len(self._tables[table])

    def encoded(self) -> bytes:
        """The InternedData message."""
        count = sum(map(len, self._tables.values()))
        if self._encoded[0] != count:
            fields = (
                bytes_field(table, number_field(_INTERNED_ID, number) + text_field(_INTERNED_TEXT, text))
                for table, known in self._tables.items()
                for text, number in known.items()
            )
            self._encoded = count, b"".join(fields)
        return self._encoded[1]


@dataclass(frozen=True, slots=True)
class _Context:
    """What all packets of one trace have in common."""

    trace: Trace
    tracks: Numbers  # lane → number of its track
    names: Numbers  # name → interned number
    time_width: int
    arrows: _Arrows | None
    pattern: Numbers  # row of op_counts → number of the set of counters that it has; the last: of none
    patterns: int
    path_ns: Numbers  # per span, of the critical path


class SpanPackets:
    """Encodes the spans of traces of the same commands; constant arguments are encoded once."""

    def __init__(self, run: Run, words: ArgumentWords, interned: Interned, *, stats_hz: float) -> None:
        """Intern the texts of all commands, and encode the arguments of every template once."""
        self.table, self.words, self.stats_hz, self._interned = run.commands, words, stats_hz, interned
        templates = Templates(run.commands, words)
        self._template_of, numbers = templates.of_command, range(len(templates))
        self._arg = {key: interned.number(Interned.ARGS, word) for key in _NUMBER_ARGS if (word := words.name(key))}
        self._arg |= {key: interned.number(Interned.ARGS, key) for key in (words.ordinal, ON_PATH)}
        numbered = [
            [
                (interned.number(Interned.ARGS, key), interned.number(Interned.VALUES, value))
                for key, value in templates.args(number).items()
            ]
            for number in numbers
        ]
        producers = [
            [interned.number(Interned.VALUES, text) for text in (templates.kind(number), templates.name(number))]
            for number in numbers
        ]
        self._producer = np.array(producers or [[0, 0]], np.int64)
        groups = [interned.number(Interned.VALUES, group) for group in run.commands.groups]
        self._groups = np.array(groups or [0], np.int64)
        self._value_width = width_of(interned.count(Interned.VALUES))
        encoded = [b"".join(_string_arg(*pair, self._value_width) for pair in pairs) for pairs in numbered]
        self._length_of = np.array([len(body) for body in encoded] or [0], np.int64)
        self._tables, self._place = _tables(encoded)
        self._shape = self._shapes()

    def know(self, counters: tuple[str, ...]) -> None:
        """Intern the keys of counters, before the table of strings is written."""
        self._arg |= {key: self._interned.number(Interned.ARGS, key) for key in self.words.counters(counters)}

    def _shapes(self) -> Numbers:
        """Command → number of the set of fields that its packets have, but for what its times decide."""
        table = self.table.rows
        _, length = np.unique(self._length_of, return_inverse=True)
        shape = length.reshape(-1)[self._template_of] * 4
        return shape + (table["out_bytes"] > 0) * 2 + (table["route"] < 0)

    def blocks(
        self, trace: Trace, rows: Rows, names: Numbers, flows: Flows | None, path_ns: Numbers | None
    ) -> Iterator[bytes]:
        """Packets of all spans that are shown.

        A reader sorts packets by time and keeps the file's order among equal times. So all ends come before all starts,
        and of two spans that touch, one is over before the next begins; the start and the end of an empty span stay
        together.
        """
        trace = self._plain_where_unknown(trace)
        tracks = np.array([0 if row is None else row.tid for row in rows.of_lane] or [0], np.int64)
        width = width_of(int(trace.spans["end_ns"].max(initial=0)))
        arrows = None if flows is None else _Arrows.of(flows, len(trace.spans))
        path_ns = np.zeros(len(trace.spans), np.int64) if path_ns is None else path_ns
        context = _Context(trace, tracks, names, width, arrows, *_patterns(trace.op_counts), path_ns)
        instant, visible = is_instant(trace), rows.shown[trace.spans["lane"]]
        shown = np.flatnonzero(visible & ~instant)
        empty = trace.spans["end_ns"][shown] == trace.spans["start_ns"][shown]
        lasting, points = shown[~empty], shown[empty]
        bound = np.zeros(0, np.int64) if flows is None else flows.points(trace)
        for low in range(0, len(lasting), CHUNK):
            yield self._ends(context, lasting[low : low + CHUNK]).tobytes()
        for chosen in self._alike(context, np.flatnonzero(visible & instant)):
            yield self._starts(context, chosen, _INSTANT).tobytes()
        yield self._in_order(context, bound)
        for chosen in self._alike(context, np.setdiff1d(points, bound)):
            yield self._empty(context, chosen).tobytes()
        for chosen in self._alike(context, lasting):
            yield self._starts(context, chosen).tobytes()

    def _empty(self, context: _Context, chosen: Numbers) -> ByteRows:
        return np.concatenate((self._starts(context, chosen), self._ends(context, chosen)), axis=1)

    def _in_order(self, context: _Context, points: Numbers) -> bytes:
        """Spans of no length one by one: an arrow between two at one time has to leave before it arrives."""
        packets: dict[int, bytes] = {}
        for chosen in self._alike(context, points):
            packets.update(zip(chosen.tolist(), (row.tobytes() for row in self._empty(context, chosen)), strict=True))
        return b"".join(packets[point] for point in points.tolist())

    def _plain_where_unknown(self, trace: Trace) -> Trace:
        """Spans that no command describes are drawn with their own name and times alone."""
        kinds = shown_kinds(self.table, trace.spans)
        if bool((kinds == trace.spans["kind"]).all()):
            return trace
        spans = trace.spans.copy()
        spans["kind"] = kinds
        return replace(trace, spans=spans)

    def _alike(self, context: _Context, chosen: Numbers) -> Iterator[Numbers]:
        """Spans by the fields their packets have; in each part, in the order of the trace.

        Packets of the same fields have the same length, so that a part is one table of bytes, filled column by column.
        `code` numbers the sets of fields: which arguments are known, and how many arrows start or end there.
        """
        spans = context.trace.spans
        kind = spans["kind"][chosen]
        for wanted in np.flatnonzero(np.bincount(kind)).tolist():
            same = chosen[kind == wanted]
            if wanted in _WORK:
                code = self._shape[spans["command"][same]] * 3 + 1 + np.sign(spans["ucycles"][same])  # −1: NONE
                code = code * context.patterns + context.pattern[spans["counts"][same]]
            else:
                known = [spans[name][same] != NONE for name in ("waits_on", "pcycles", "ucycles")]
                code = known[0] + 2 * known[1].astype(np.int64) + 4 * known[2]
            code = code * 2 + (context.path_ns[same] > 0)
            if context.arrows is not None:
                code += (int(code.max(initial=0)) + 1) * context.arrows.count[same]
            for number in np.flatnonzero(np.bincount(code)).tolist():
                alike = same[code == number]
                for low in range(0, len(alike), CHUNK):
                    yield alike[low : low + CHUNK]

    def _ends(self, context: _Context, chosen: Numbers) -> ByteRows:
        spans = context.trace.spans.take(chosen)
        event = MessageRows(len(spans)).constant(number_field(_TYPE, _END))
        event.number(_TRACK, context.tracks[spans["lane"]], width=width_of(int(context.tracks.max())))
        return _packets(context, spans["end_ns"], event)

    def _starts(self, context: _Context, chosen: Numbers, kind_of_event: int = _BEGIN) -> ByteRows:
        """Start packets of spans that `_alike` put together: the first tells which fields all of them have."""
        spans = context.trace.spans.take(chosen)
        event = MessageRows(len(spans)).constant(
            number_field(_TYPE, kind_of_event) + number_field(_CATEGORIES, CATEGORY_IID)
        )
        event.number(_TRACK, context.tracks[spans["lane"]], width=width_of(int(context.tracks.max())))
        event.number(_NAME, context.names[spans["name"]], width=width_of(int(context.names.max())))
        kind = SpanKind(int(spans["kind"][0]))
        if kind in _WORK:
            self._work(event, spans, context.trace.op_counts)
        elif kind is SpanKind.WAIT:
            self._wait(event, spans)
        elif kind is SpanKind.BARRIER:
            self._whole(event, self.words.ordinal, self.table.rows["ordinal"][spans["command"]])
        else:
            for key, column in (("opPCycle", "pcycles"), ("opUCycle", "ucycles")):
                if spans[column].min() != NONE:
                    self._whole(event, key, spans[column])
        path_ns = context.path_ns[chosen]
        if path_ns[0]:
            flag = number_field(_ARG_NAME, self._arg[ON_PATH]) + number_field(_ARG_FLAG, 1)
            event.constant(bytes_field(_ANNOTATIONS, flag))
            if spans["pcycles"].min() != NONE:
                self._whole(event, "pathCycles", path_cycles(spans, path_ns))
        if context.arrows is not None:
            event.block(context.arrows.encoded(chosen))
        return _packets(context, spans["start_ns"], event)

    def _work(self, event: MessageRows, spans: Spans, counters: OpCounts) -> None:
        """Arguments of spans of a command: what its times give, then what is the same in every inference."""
        table, command = self.table.rows, spans["command"]
        size, ucycles, pcycles = table["out_bytes"][command].astype(np.int64), spans["ucycles"], spans["pcycles"]
        self._whole(event, self.words.ordinal, table["ordinal"][command])
        for key, values in (("opPCycle", pcycles), ("opUCycle", ucycles)):
            if values[0] != NONE:
                self._whole(event, key, values)
        if ucycles[0] > 0 and table["route"][command[0]] < 0:
            self._real(event, "effectiveFreq", pcycles / ucycles * (self.stats_hz / 1e6))
        for key, cycles in (("PCyclesPerKB", pcycles), ("UCyclesPerKB", ucycles)):
            if size[0] > 0 and cycles[0] != NONE:
                self._real(event, key, cycles / (size / KB))
        self._whole(event, "opOutputSize", size)
        for key, values in zip(self.words.counters(counters.names), counters.of(spans).T, strict=True):
            if values[0] != NONE:
                self._whole(event, key, values)
        template = self._template_of[command]
        event.chosen(self._tables[int(self._length_of[template[0]])], self._place[template])

    def _wait(self, event: MessageRows, spans: Spans) -> None:
        table = self.table.rows
        self._whole(event, self.words.ordinal, table["ordinal"][spans["command"]])
        self._real(event, "opSyncDurUs", (spans["end_ns"] - spans["start_ns"]) / 1000, places=3)
        if spans["waits_on"][0] == NONE:
            return
        source = spans["waits_on"]
        for key, column in (("waitsOnDevice", "device"), ("waitsOnCore", "core"), ("waitsOnOc", "ordinal")):
            self._whole(event, key, table[column][source])
        producer = self._producer[self._template_of[source]]
        self._string(event, "waitsOnEngine", self._groups[table["group"][source]])
        self._string(event, "waitsOn", producer[:, 0])
        self._string(event, "waitsOnName", producer[:, 1])

    def _whole(self, event: MessageRows, key: str, values: npt.NDArray[np.integer]) -> None:
        """An argument, where the words of the run have it; so for numbers that are not whole and for texts."""
        if key not in self._arg:
            return
        arg = MessageRows(len(values)).constant(number_field(_ARG_NAME, self._arg[key]))
        event.nested(_ANNOTATIONS, arg.number(_ARG_NUMBER, values, width=width_of(int(values.max()))))

    def _real(self, event: MessageRows, key: str, values: npt.NDArray[np.float64], places: int = 2) -> None:
        if key not in self._arg:
            return
        arg = MessageRows(len(values)).constant(number_field(_ARG_NAME, self._arg[key]))
        event.nested(_ANNOTATIONS, arg.double(_ARG_DOUBLE, np.rint(values * 10**places) / 10**places))

    def _string(self, event: MessageRows, key: str, numbers: Numbers) -> None:
        if key not in self._arg:
            return
        arg = MessageRows(len(numbers)).constant(number_field(_ARG_NAME, self._arg[key]))
        event.nested(_ANNOTATIONS, arg.number(_ARG_STRING, numbers, width=self._value_width))


def _patterns(counters: OpCounts) -> tuple[Numbers, int]:
    """Row of counters → number of the set of counters that it has; and how many numbers there are."""
    found, number = np.unique(counters.rows != NONE, axis=0, return_inverse=True)
    return np.append(number.reshape(-1) + 1, 0).astype(np.int64), len(found) + 1


def _packets(context: _Context, times: Numbers, event: MessageRows) -> ByteRows:
    inner = MessageRows(len(times)).number(_TIMESTAMP, times, width=context.time_width)
    inner.constant(number_field(_SEQUENCE, SEQUENCE_ID) + number_field(_FLAGS, _NEEDS_STATE))
    return MessageRows(len(times)).nested(_PACKET, inner.nested(_TRACK_EVENT, event)).rows()


def _string_arg(name: int, value: int, width: int) -> bytes:
    """An argument whose name and value are interned; the value's number takes the same bytes in all of them."""
    body = number_field(_ARG_NAME, name) + varint(_ARG_STRING << 3) + padded(value, width)
    return bytes_field(_ANNOTATIONS, body)


def _tables(encoded: list[bytes]) -> tuple[dict[int, ByteRows], Numbers]:
    """Encoded arguments by length, as rows of a table each; and the place of every template in its table."""
    found: dict[int, list[bytes]] = {}
    place = []
    for body in encoded:
        same = found.setdefault(len(body), [])
        place.append(len(same))
        same.append(body)
    tables = {
        length: np.frombuffer(b"".join(bodies), np.uint8).reshape(len(bodies), length)
        for length, bodies in found.items()
    }
    return tables, np.array(place or [0], np.int64)


@dataclass(frozen=True, slots=True)
class _Arrows:
    """Encoded arrows by span: those that start in it and those that end in it."""

    fields: ByteRows
    first: Numbers
    count: Numbers

    @classmethod
    def of(cls, flows: Flows, spans: int) -> _Arrows:
        ids = np.where(flows.data, flows.ids, flows.ids + ORDERING_FLOW)
        fields = np.concatenate((fixed64s(_FLOW_IDS, ids), fixed64s(_ENDED_FLOW_IDS, ids)))
        owner = np.concatenate((flows.source, flows.target))
        order = np.argsort(owner, kind="stable")
        count = np.bincount(owner, minlength=spans)
        return cls(fields[order], np.cumsum(count) - count, count)

    def encoded(self, chosen: Numbers) -> ByteRows:
        """One row per span; all of them have as many arrows as the first."""
        many = int(self.count[chosen[0]])
        index = self.first[chosen][:, None] + np.arange(many)
        rows: ByteRows = self.fields[index].reshape(len(chosen), -1)
        return rows
