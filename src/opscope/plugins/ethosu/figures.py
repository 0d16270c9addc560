"""Totals of a compilation with Arm's compiler: metrics, memories, what binds, kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...backends.kernel_times import placed_counts
from ...core.provenance import Provenance
from ...recording.recording import KernelTotal, Metric, OpRecord, Placed
from ...recording.summary import LaneTotal, Latency, MemoryTotal, Share
from .compilation import Compilation
from .importer import NPU, RESOURCES
from .nodes import binding
from .options import VelaOptions

_MEMORIES = (
    ("SRAM", "sram"),
    ("DRAM", "dram"),
    ("on-chip flash", "on chip flash"),
    ("off-chip flash", "off chip flash"),
)
_COUNTS = {
    "ops_on_npu": Placed.ACCELERATOR,
    "ops_on_cpu": Placed.CPU,
    "ops_fused": Placed.FUSED,
    "ops_without_command": Placed.REMOVED,
}


def metrics(
    found: Compilation, options: VelaOptions, npu_ns: int | None, latency: Latency | None, nodes: Sequence[OpRecord]
) -> Iterator[Metric]:
    """Figures of the whole network: time, cycles, MACs, where ops run, memory and weights."""
    cycles = sum(node.cycles or 0 for node in nodes)
    macs = sum(node.macs or 0 for node in nodes)
    withheld = "ops on the CPU have no time in the compiler's model" if latency is None else "one inference"
    yield Metric(
        "latency", None if latency is None else latency.known_ns / 1e3, "us", Provenance.VENDOR_MODEL, withheld
    )
    if latency is None:
        yield Metric(
            "npu_time", None if npu_ns is None else npu_ns / 1e3, "us", Provenance.VENDOR_MODEL, "of its ops alone"
        )
    yield Metric("npu_cycles", cycles, "cycles", Provenance.VENDOR_MODEL)
    yield Metric("macs", macs, "count", Provenance.COMPILER_FACT, "as the compiler counts them")
    most = cycles * options.macs_per_cycle
    how = "MACs ÷ cycles ÷ MACs per cycle"
    yield Metric("mac_utilization", macs / most if most else None, "share", Provenance.VENDOR_MODEL, how)
    yield from placed_counts(nodes, _COUNTS, Provenance.COMPILER_FACT)
    for label, key in _MEMORIES:
        used = found.summary.value(f"{key} memory used")
        if used:
            yield Metric(
                f"{key.replace(' ', '_')}_used", used, "bytes", Provenance.COMPILER_FACT, f"{label}, allocated"
            )
    for name in ("total original weights", "total npu encoded weights"):
        yield Metric(
            name.removeprefix("total ").replace(" ", "_"), found.summary.value(name), "bytes", Provenance.COMPILER_FACT
        )


def memory(found: Compilation) -> Iterator[MemoryTotal]:
    for label, key in _MEMORIES:
        used = found.summary.value(f"{key} memory used")
        traffic = [
            [found.summary.value(f"{key} {what} {way} bytes") for what in ("feature map", "weight")]
            for way in ("read", "write")
        ]
        read, write = (None if None in pair else round(sum(filter(None, pair))) for pair in traffic)
        if used or read or write:
            yield MemoryTotal(label, 0, None, None if used is None else round(used), None, None, read, write)


def path_shares(found: Compilation, clock: float) -> tuple[Share, ...]:
    """Time of the accelerator by the resource that binds each row: adds up to all of it."""
    cycles: Counter[str] = Counter()
    for op in found.layers.ops:
        if op.cycles:
            cycles[binding(op)] += op.cycles
    whole = cycles.total()
    return tuple(Share(name, n * 1e9 / clock, n / whole) for name, n in cycles.most_common()) if clock else ()


def kernels(found: Compilation, clock: float) -> tuple[KernelTotal, ...]:
    rows: dict[str, list[int]] = {}
    for op in found.layers.ops:
        if op.cycles is not None:
            row = rows.setdefault(op.kernel or "", [0, 0])
            row[0] += 1
            row[1] += op.cycles
    totals = [
        KernelTotal(name, NPU, count, cycles, time_ns=round(cycles * 1e9 / clock) if clock else None)
        for name, (count, cycles) in rows.items()
    ]
    return tuple(sorted(totals, key=lambda row: (-(row.busy_cycles or 0), row.name)))


def lanes(nodes: Sequence[OpRecord], accelerator: str, wall_ns: int) -> Iterator[LaneTotal]:
    """The accelerator, which has one op after the other, and every resource against it: else it stands still."""
    yield LaneTotal(0, 0, accelerator, wall_ns, None, 0, engine=accelerator)
    cycles = sum(node.cycles or 0 for node in nodes)
    for name in RESOURCES.values():
        used = sum(node.busy_cycles.get(name, 0) for node in nodes)
        if used and cycles:
            busy = min(round(wall_ns * used / cycles), wall_ns)
            yield LaneTotal(0, 0, name, busy, None, wall_ns - busy, engine=name)
