"""ST Edge AI Core: `network_c_info.json` → ops with MACs, buffers, mapping, and times where the model was validated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ...core.json_files import decode_json
from ...core.provenance import Provenance
from ...importers.reading import Unread, read_bytes, to_ns
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Recording, ResourceCycles

TOOL = "ST Edge AI Core"
T = TypeVar("T")
_MS = 1e6
_ON_CPU = ("NODE_SW", "NODE_SW_HW")
_MAPPING = {"NODE_SW": "CPU", "NODE_HW": "NPU", "NODE_EC": "NPU", "NODE_SW_HW": "CPU and NPU"}
HOSTS = re.compile(r"x86|amd64|linux|windows|darwin", re.IGNORECASE)


class _Time(msgspec.Struct):
    cycles: float | None = None
    duration: float | None = msgspec.field(name="duration_ms", default=None)


class _Buffer(msgspec.Struct):
    id: int
    size_bytes: int | None = None
    is_param: bool = False


class _Estimate(msgspec.Struct):
    """What the compiler of an NPU expects; the most is of computing and of every memory."""

    node_id: int
    compute_cycles: int | None = None
    max_cycles: int | None = None


class _Node(msgspec.Struct):
    name: str
    id: int | None = None
    description: str | None = None
    macc: int | None = None
    mapping: str | None = None
    exec_time: _Time | None = None
    inputs: list[int] = []
    outputs: list[int] = []
    scratchs: list[int] = []
    sw_functions: list[str] = []
    subgraph_nodes: list[msgspec.Raw] = []


class _Graph(msgspec.Struct):
    nodes: list[msgspec.Raw]
    exec_time: _Time | None = None


class _Model(msgspec.Struct):
    name: str | None = None


class _Tool(msgspec.Struct):
    name: str = TOOL
    version: str = ""
    input_model: _Model | None = None


class _Environment(msgspec.Struct):
    device: str | None = None
    tools: list[_Tool] = []


class _Footprint(msgspec.Struct):
    activations: int | None = None
    weights: int | None = None
    kernel_flash: int | None = None
    kernel_ram: int | None = None
    toolchain_flash: int | None = None
    toolchain_ram: int | None = None
    series: str | None = None


class _File(msgspec.Struct):
    graphs: list[_Graph]
    buffers: list[msgspec.Raw] = []
    power_estimates: list[msgspec.Raw] = []
    environment: _Environment | None = None
    memory_footprint: _Footprint | None = None
    json_schema_version: str | None = None


_FILE = msgspec.json.Decoder(_File)


class StEdgeAiInfo:
    """Times are in it only after `validate`; the rest is what the compiler knows."""

    name = "stedgeai-json"

    def read(self, path: Path) -> Recording:
        """Nodes with the best times that the file has, which decide the provenance."""
        file = decode_json(read_bytes(path), _FILE, source=str(path))
        unread = Unread("entries")
        buffers = _each(file.buffers, _Buffer, "buffer", unread)
        nodes = _each([raw for graph in file.graphs for raw in graph.nodes], _Node, "node", unread)
        estimates = {e.node_id: e for e in _each(file.power_estimates, _Estimate, "estimate", unread) if e.max_cycles}
        timed = any(_known(node.exec_time) for node in nodes)
        modelled = not timed and any(node.id in estimates for node in nodes)
        provenance = Provenance.MEASURED if timed else Provenance.VENDOR_MODEL if modelled else Provenance.COMPILER_FACT
        environment = file.environment or _Environment()
        tool = environment.tools[0] if environment.tools else _Tool()
        sizes = {buffer.id: buffer for buffer in buffers}
        ops = tuple(_op(node, sizes, estimates if modelled else {}) for node in nodes)
        return Recording(
            maker=self.name,
            tool=f"{TOOL} {tool.version}".strip(),
            provenance=provenance,
            ops=ops,
            metrics=tuple(_metrics(file, ops)),
            checks=tuple(_checks(file, nodes, buffers)),
            notes=(*_notes(file, nodes, timed), *_estimated(nodes, estimates, modelled), *unread.notes()),
            target=_target(environment, file.memory_footprint, timed),
            model=tool.input_model.name if tool.input_model else None,
            inferences=1 if timed or modelled else None,
        )


def _each(raws: Sequence[msgspec.Raw], kind: type[T], what: str, unread: Unread) -> list[T]:
    """Entries that can be read; the others are counted."""
    decoder = msgspec.json.Decoder(kind)
    found = []
    for number, raw in enumerate(raws):
        try:
            found.append(decoder.decode(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            unread.add(f"{what} {number}", str(error))
    return found


def _estimated(nodes: Sequence[_Node], estimates: dict[int, _Estimate], modelled: bool) -> Iterator[str]:
    known = sum(node.id in estimates for node in nodes)
    if modelled:
        yield f"cycles of {known} of {len(nodes)} nodes are the compiler's estimate: the most of computing and memories"
    elif estimates:
        yield f"{len(estimates)} estimates of the compiler are not read: " + (
            "times were measured" if known else "they are of other nodes"
        )


def _known(time: _Time | None) -> bool:
    """The tool writes 0 where nothing was measured."""
    return time is not None and bool(time.duration or time.cycles)


def _target(environment: _Environment, footprint: _Footprint | None, timed: bool) -> str | None:
    series = footprint.series if footprint and footprint.series not in (None, "generic") else None
    return (environment.device or series) if timed else (series or environment.device)


def _op(node: _Node, sizes: dict[int, _Buffer], estimates: dict[int, _Estimate]) -> OpRecord:
    """One c-node: cycles estimated, else measured; bytes of its buffers, unknown where one of them is."""

    def total(ids: Sequence[int], *, params: bool) -> int | None:
        known = [sizes[i].size_bytes for i in ids if i in sizes and sizes[i].is_param is params]
        return None if None in known or any(i not in sizes for i in ids) else sum(size or 0 for size in known)

    timed = _known(node.exec_time)
    estimate = estimates.get(node.id) if node.id is not None else None
    cycles: float | None = estimate.max_cycles if estimate else node.exec_time.cycles if node.exec_time else None
    computing = estimate.compute_cycles if estimate else None
    return OpRecord(
        node.name,
        type=node.description or "",
        engines=tuple(_MAPPING[word] for word in [node.mapping or ""] if word in _MAPPING),
        on_cpu=None if node.mapping is None else node.mapping in _ON_CPU,
        calls=1,
        kernel=", ".join(node.sw_functions),
        macs=node.macc,
        time_ns=to_ns(node.exec_time.duration, _MS) if timed and node.exec_time else None,
        cycles=round(cycles) if cycles and 0 <= cycles < 2**62 else None,
        resource_cycles=(ResourceCycles("computing", False, computing),)
        if computing is not None and 0 <= computing < 2**62
        else (),
        in_bytes=total(node.inputs, params=False),
        out_bytes=total(node.outputs, params=False),
        parameter_bytes=total(node.inputs, params=True),
        memory_bytes=total(node.scratchs, params=False) or None,
    )


def _metrics(file: _File, ops: Sequence[OpRecord]) -> Iterator[Metric]:
    for graph in file.graphs:
        if _known(graph.exec_time) and graph.exec_time:
            value = to_ns(graph.exec_time.duration, _MS)
            if value:
                yield Metric(LATENCY, value, "ns")
    if ops and all(op.macs is not None for op in ops):
        yield Metric("MACs", sum(op.macs or 0 for op in ops), "1")
    footprint = file.memory_footprint
    for key in ("activations", "weights", "kernel_flash", "kernel_ram", "toolchain_flash", "toolchain_ram"):
        value = getattr(footprint, key, None)
        if value is not None:
            yield Metric(key.replace("_", " "), value, "bytes")


def _checks(file: _File, nodes: Sequence[_Node], buffers: Sequence[_Buffer]) -> Iterator[Check]:
    """Identities between totals and rows, where the file has both."""
    footprint = file.memory_footprint
    params = [buffer.size_bytes for buffer in buffers if buffer.is_param]
    if footprint and footprint.weights is not None and params and None not in params:
        total = sum(size or 0 for size in params)
        slack = 8 * len(params)  # buffers are aligned
        yield Check(
            "weights = sum of the constant buffers",
            0 <= footprint.weights - total <= slack,
            f"{footprint.weights} bytes, sum {total}",
        )
    graphs = [g for g in file.graphs if g.exec_time and g.exec_time.duration]
    if graphs:
        whole = sum((g.exec_time.duration or 0.0) if g.exec_time else 0.0 for g in graphs)
        parts = sum((n.exec_time.duration or 0.0) if n.exec_time else 0.0 for n in nodes)
        yield Check(
            "sum of nodes = time of the graph",
            parts <= whole * 1.001 and parts >= whole * 0.9,
            f"{parts:.6f} of {whole:.6f} ms",
        )


def _notes(file: _File, nodes: Sequence[_Node], timed: bool) -> Iterator[str]:
    device = file.environment.device if file.environment else None
    if not timed:
        yield "no times: they come with `stedgeai validate` on the target"
    elif device and HOSTS.search(device):
        yield f"times were measured on the host ({device}), not on the target"
    nested = sum(len(node.subgraph_nodes) for node in nodes)
    if nested:
        yield f"{nested} nodes inside epoch-controller nodes are not read"
    unknown = sorted({node.mapping for node in nodes if node.mapping and node.mapping not in _MAPPING})
    if unknown:
        yield f"unknown mappings: {', '.join(unknown[:5])}"
    if file.json_schema_version not in (None, "2.0"):
        yield f"schema {file.json_schema_version}; 2.0 is the one that is known"
