"""What the source of a profile tells beyond the screen that every profile has: sections, each where it has any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...core.errors import printable
from ...core.manifest import Section
from ...core.units import UNKNOWN, format_bytes, format_count, format_ns, format_percent, format_seconds
from ...recording.recording import LATENCY, THROUGHPUT, KernelTotal, Metric, OpRecord, Placed, Recording
from ...recording.summary import LaneTotal
from ..table import LEFT, Column, text_table
from .columns import bar, pairs
from .recording_ops import WAITS, imported_table, is_timed, node_table, what_is_known

ABOUT = ("about", "totals", "checks")

_NS = {"ns": 1, "us": 1000}


def sections_of(recording: Recording, *, sections: Sequence[Section], top: int | None) -> Iterator[list[str]]:
    """Blocks of lines; of a run of our own device and formulas there are none: the screen has it all."""
    if recording.totals is not None:
        return
    makers: dict[str, Callable[[Recording], Iterator[str]]] = {
        "about": _about,
        "totals": _totals,
        "checks": _checks,
        Section.LANES: _lanes,
        Section.OPS: lambda found: _nodes(found, top),
        Section.WAITS: lambda found: _waits(found, top),
        Section.KERNELS: lambda found: _kernels(found, top),
        Section.PLACEMENT: _placement,
        Section.STAGES: _stages,
    }
    for name in (name for name in (*ABOUT, *sections) if name in makers):
        lines = list(makers[name](recording))
        if lines:
            yield lines


def _about(recording: Recording) -> Iterator[str]:
    options = ", ".join(f"{key} {value}" for key, value in recording.options.items() if value is not None)
    made_by = ", ".join(f"{name} {version}" for name, version in recording.producer.items()) or recording.tool
    spans = len(recording.trace.spans)
    rows = [
        ("model", recording.model or UNKNOWN),
        ("target", str(recording.machine.get("title") or recording.target or UNKNOWN)),
        *([("options", options)] if options else []),
        *([("made by", made_by)] if made_by else []),
        ("spans", format_count(spans) if spans else UNKNOWN),
        ("ops", format_count(len(recording.ops)) if recording.ops else UNKNOWN),
    ]
    yield from pairs([(name, printable(value, 200)) for name, value in rows], indent="")


def _totals(recording: Recording) -> Iterator[str]:
    """All that the source adds up, but for what heads the screen."""
    metrics = [metric for metric in recording.metrics if not _heads_screen(metric, recording)]
    if metrics:
        yield "totals"
        names = [printable(metric.name.replace("_", " "), 60) for metric in metrics]
        yield from pairs(list(zip(names, map(metric_text, metrics), strict=True)))


def _heads_screen(metric: Metric, recording: Recording) -> bool:
    """Whether the screen has said it: the latency, and the throughput where there is nothing to add to it."""
    if metric.value is None:
        return False
    if metric.name == LATENCY:
        return round(metric.value * _NS.get(metric.unit, 0)) == recording.latency_ns
    return metric.name == THROUGHPUT and not metric.note


def latency_words(recording: Recording) -> str:
    """What the source says of its latency beside the number: range and note."""
    metric = recording.metric(LATENCY)
    if metric is None or recording.totals is not None or not _heads_screen(metric, recording):
        return ""
    is_ranged = recording.latency is not None and recording.latency.low_ns is not None
    known = metric.low is not None and metric.high is not None and not is_ranged
    spread = f"{_value(metric.low or 0, metric.unit)} – {_value(metric.high or 0, metric.unit)}" if known else ""
    other = metric.provenance if metric.provenance != recording.provenance else ""
    return "; ".join(filter(None, (spread, other, printable(metric.note, 300))))


def metric_text(metric: Metric) -> str:
    """Value, range, provenance and note on one line."""
    note = printable(metric.note, 300)
    if metric.value is None:
        return f"{UNKNOWN}  ({note})" if note else UNKNOWN
    text = _value(metric.value, metric.unit)
    if metric.low is not None and metric.high is not None:
        text += f" ({_value(metric.low, metric.unit)} – {_value(metric.high, metric.unit)})"
    about = "; ".join(filter(None, (metric.provenance, note)))
    return f"{text}  [{about}]" if about else text


def _value(value: float, unit: str) -> str:
    if unit in ("us", "ns"):
        return format_seconds(value / (1e6 if unit == "us" else 1e9))
    if unit == "bytes":
        return format_bytes(value)
    if unit == "share":
        return format_percent(value)
    if unit == "Hz":
        return f"{value / 1e6:,.6g} MHz"
    if unit == "MB/s":
        return f"{value:,.1f} {unit}"
    number = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"
    return number if unit in ("count", "1") else f"{number} {unit}"


def _checks(recording: Recording) -> Iterator[str]:
    if recording.checks:
        yield "checks"
        marks = [("ok" if c.holds else "VIOLATED", printable(f"{c.name} ({c.detail})", 400)) for c in recording.checks]
        yield from pairs(marks)


_LANES: Sequence[Column[LaneTotal]] = (
    Column("", lambda lane: lane.name, LEFT),
    Column("busy", lambda lane: format_percent(lane.utilization)),
    Column("", lambda lane: bar(lane.utilization, 20), LEFT),
    Column("busy", lambda lane: format_ns(lane.busy_ns)),
    Column("wait", lambda lane: format_ns(lane.wait_ns)),
    Column("idle", lambda lane: format_ns(lane.idle_ns)),
)


def _lanes(recording: Recording) -> Iterator[str]:
    """Shares of the time as the source divides it, and how busy each lane is."""
    if recording.path_shares:
        parts = ", ".join(f"{part.cause} {format_percent(part.share)}" for part in recording.path_shares)
        yield f"{recording.path_shares_of} – {recording.provenance}: {parts}"
    if recording.path_shares and recording.lanes:
        yield ""
    if recording.lanes:
        yield f"threads and engines – {recording.provenance}"
        yield from text_table(_LANES, recording.lanes)


def _nodes(recording: Recording, top: int | None) -> Iterator[str]:
    if recording.source:
        if any(_counts(op) for op in recording.ops):
            yield f"ops as the file has them – {recording.provenance}"
            yield from imported_table(recording.ops, top)
        return
    nodes, which = _chosen(recording.ops, top)
    if nodes and not any(node.low_ns is not None for node in nodes):  # of samples the table of every profile has all
        yield f"nodes ({which}) – {what_is_known(nodes, recording.provenance)}"
        yield from node_table(nodes)


def _counts(op: OpRecord) -> bool:
    """Something that the table of every profile has no column for."""
    return op.cycles is not None or op.macs is not None or op.estimated_ns is not None


def _chosen(nodes: Sequence[OpRecord], top: int | None) -> tuple[list[OpRecord], str]:
    """The largest first where times or bytes are known; all in order when everything is shown."""
    accelerated = any(node.placed is Placed.ACCELERATOR for node in nodes)
    placed = (Placed.ACCELERATOR, Placed.INSERTED) if accelerated else ()
    shown = [node for node in nodes if node.placed in placed or node.cycles is not None or node.time_ns is not None]
    if top is None:
        return shown, "in order"
    ranked = sorted(shown, key=lambda n: (-(n.path_ns or 0), -(n.cycles or 0), -_outer(n)))
    return ranked[:top], f"{min(top, len(shown))} of {len(shown)}; --all shows every one"


def _outer(node: OpRecord) -> int:
    return (node.outer_read_bytes or 0) + (node.outer_write_bytes or 0)


def _waits(recording: Recording, top: int | None) -> Iterator[str]:
    """Whom the foreground thread waits for, and what runs beside what."""
    nodes, which = _chosen(recording.ops, top)
    if not is_timed(nodes):
        return
    yield f"waits and overlap ({which}) – {recording.provenance}"
    yield from text_table(WAITS, nodes)
    yield "wait: the foreground thread stood before it; overlap: another node was at work too"


_KERNELS: Sequence[Column[KernelTotal]] = (
    Column("kernel", lambda kernel: kernel.name, LEFT, 44),
    Column("engine", lambda kernel: kernel.engine, LEFT),
    Column("count", lambda kernel: format_count(kernel.count)),
)
_COUNTED: Sequence[Column[KernelTotal]] = (
    Column("cycles", lambda kernel: format_count(kernel.busy_cycles)),
    Column("outer memory", lambda kernel: format_bytes(kernel.outer_bytes)),
    Column("local memory", lambda kernel: format_bytes(kernel.local_bytes)),
)


def _kernels(recording: Recording, top: int | None) -> Iterator[str]:
    """The first kernels by time, or by cycles where no times are known."""
    kernels = recording.kernels[:top]
    if any(k.time_ns is not None for k in kernels):
        yield f"kernels ({len(kernels)} of {len(recording.kernels)}) – {recording.provenance}"
        time = Column[KernelTotal]("time", lambda kernel: format_ns(kernel.time_ns))
        yield from text_table((_KERNELS[0]._replace(limit=60), *_KERNELS[1:], time), kernels)
    elif kernels:
        yield f"kernels ({len(kernels)} of {len(recording.kernels)}) – cycles {recording.provenance}"
        yield from text_table((*_KERNELS, *_COUNTED), kernels)


def _placement(recording: Recording) -> Iterator[str]:
    on_cpu = recording.placed(Placed.CPU)
    if on_cpu and recording.placed(Placed.ACCELERATOR):
        yield f"on the CPU: {len(on_cpu)}"
        yield from (f"  {printable(node.name)} ({node.type}): {printable(node.reason, 300)}" for node in on_cpu[:20])
    for reason, ran in _ran_as(recording).items():
        yield _named(printable(reason, 300), ran)
    for placed, words in ((Placed.FUSED, "fused into others"), (Placed.REMOVED, "taken out before it runs")):
        nodes = recording.placed(placed)
        if nodes:
            yield _named(words, nodes)


def _ran_as(recording: Recording) -> dict[str, list[OpRecord]]:
    """Nodes that were measured again and again, by what is said of how they ran."""
    found: dict[str, list[OpRecord]] = {}
    for node in recording.ops:
        if node.low_ns is not None and node.reason and not recording.source:
            found.setdefault(node.reason, []).append(node)
    return found


def _named(words: str, nodes: Sequence[OpRecord]) -> str:
    names = ", ".join(printable(node.name, 60) for node in nodes[:8])
    return f"{words}: {len(nodes)}: {names}{', …' if len(nodes) > 8 else ''}"


def _stages(recording: Recording) -> Iterator[str]:
    if recording.stages:
        yield "stages of the compiler on this machine – measured"
        yield from pairs([(stage.name, format_seconds(stage.microseconds / 1e6)) for stage in recording.stages])
