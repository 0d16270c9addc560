"""The analysis summary of a profile (QHAS) as a file: JSON, or one self-contained page without script or network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import PurePath
from typing import TextIO

from ...core.json_files import write_json
from ...core.units import UNKNOWN, format_bytes, format_count, format_ns, format_percent, format_seconds
from ...recording.recording import OpRecord, Placed, Recording
from ...views.page.html_text import full_name, prose, short_name
from ...views.text.recording_text import metric_text

MOST_ROWS = 400  # a page of more is slow to scroll; the JSON has every one
_WIDTH, _HEIGHT, _MOST_POINTS = 1000, 200, 2000

Table = tuple[str, str, tuple[str, ...], Sequence[tuple[str, ...]], int]


def analysis_summary(recording: Recording, form: str) -> bytes:
    """The summary as `json` or `html`."""
    out = StringIO()
    (QhasHtml() if form == "html" else QhasJson()).render(recording, out)
    return out.getvalue().encode()


class QhasJson:
    """The short form and the tables, in one object."""

    suffix = ".qhas.json"

    def render(self, recording: Recording, out: TextIO) -> None:
        write_json(recording.vendor_tables, out, indent=1)


class QhasHtml:
    """Summary, bottlenecks, threads, memory over time, nodes and kernels."""

    suffix = ".qhas.html"

    def render(self, recording: Recording, out: TextIO) -> None:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        templates = Environment(
            loader=PackageLoader("opscope", "plugins/qnn"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        out.write(templates.get_template("qhas.html.j2").render(**_page(recording)).strip() + "\n")


def _page(recording: Recording) -> dict[str, object]:
    """Values of the page's template."""
    options = ", ".join(
        f"{key.replace('_', ' ')} {value}" for key, value in recording.options.items() if value is not None
    )
    return {
        "model": full_name(PurePath(recording.model or "").name),
        "target": full_name(recording.target or UNKNOWN),
        "title": full_name(str(recording.machine.get("title", UNKNOWN))),
        "options": options,
        "made_by": ", ".join(f"{name} {version}" for name, version in recording.producer.items()),
        "provenance": recording.provenance,
        "metrics": [(metric.name.replace("_", " "), prose(metric_text(metric))) for metric in recording.metrics],
        "causes": [
            {
                "title": prose(c.title),
                "detail": prose(c.detail),
                "action": prose(c.action),
                "predicted": f"{c.predicted.basis} {prose(c.predicted.text)}" if c.predicted else "",
            }
            for c in recording.causes
        ],
        "lanes": [
            (lane.name, format_percent(lane.utilization), f"{100 * lane.utilization:.2f}") for lane in recording.lanes
        ],
        "tables": list(_tables(recording)),
        "notes": [prose(note) for note in recording.notes],
        **_chart(recording),
    }


def _tables(recording: Recording) -> Iterator[Table]:
    """The page's tables: nodes by their time on the critical path, those on the CPU, kernels, the compiler's stages."""
    nodes = sorted(recording.ops, key=lambda node: -(node.path_ns or 0))[:MOST_ROWS]
    header = (
        "node",
        "type",
        "placed",
        "kernels",
        "wall",
        "wait",
        "overlap",
        "path",
        "HVX cyc",
        "HMX cyc",
        "DMA cyc",
        "DDR read",
        "DDR write",
    )
    note = f"times {recording.provenance}, bytes compiler-fact; {len(nodes)} of {len(recording.ops)}"
    yield "Nodes of the model", note, header, [_node(node) for node in nodes], 3
    on_cpu = [
        (short_name(node.name), node.type, prose(node.reason)) for node in recording.placed(Placed.CPU)[:MOST_ROWS]
    ]
    yield "Nodes on the CPU", "in the words of the runtime", ("node", "type", "reason"), on_cpu, 3
    kernels = [
        (
            short_name(k.name),
            k.engine,
            format_count(k.count),
            format_count(k.busy_cycles),
            format_bytes(k.outer_bytes),
            format_bytes(k.local_bytes),
        )
        for k in recording.kernels[:MOST_ROWS]
    ]
    yield (
        "Kernels",
        f"cycles {recording.provenance}",
        ("kernel", "engine", "count", "cycles", "DDR", "VTCM"),
        kernels,
        2,
    )
    stages = [(stage.name, format_seconds(stage.microseconds / 1e6)) for stage in recording.stages]
    yield "Stages of the compiler", "measured on this machine", ("stage", "time"), stages, 1


def _node(node: OpRecord) -> tuple[str, ...]:
    """Cells of one node."""
    times = (node.time_ns, node.wait_ns, node.overlap_ns)
    busy = (
        UNKNOWN if node.time_ns is None else format_count(node.busy_cycles.get(e, 0)) for e in ("HVX", "HMX", "DMA")
    )
    return (
        short_name(node.name),
        node.type,
        node.placed,
        format_count(node.calls),
        *(format_ns(ns) for ns in times),
        format_percent(node.path_share),
        *busy,
        format_bytes(node.outer_read_bytes),
        format_bytes(node.outer_write_bytes),
    )


def _chart(recording: Recording) -> dict[str, str]:
    """The counter as a stepped area."""
    trace = recording.trace
    if not len(trace.samples):
        return {"chart": "", "chart_time": "", "chart_peak": ""}
    times, values = trace.samples["time_ns"].tolist(), trace.samples["value"].tolist()
    end, peak = max(times[-1], 1), max(*values, 1.0)
    return {
        "chart": _steps(times, values, end, peak),
        "chart_time": format_ns(end),
        "chart_peak": format_bytes(peak),
    }


def _steps(times: Sequence[int], values: Sequence[float], end: int, peak: float) -> str:
    stride = max(1, len(times) // _MOST_POINTS)
    path = [f"M0 {_HEIGHT}"]
    for low in range(0, len(times), stride):  # of several samples at one place, the highest counts
        x = _WIDTH * times[low] / end
        y = _HEIGHT - _HEIGHT * max(values[low : low + stride]) / peak
        path.append(f"H{x:.1f}V{y:.1f}")
    return "".join(path) + f"H{_WIDTH}V{_HEIGHT}Z"
