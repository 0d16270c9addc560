"""Summary → the totals that are compared, under the names that limits use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..core.provenance import Provenance
from ..core.sums import known_sum, whole_sum
from ..recording.finding import BOUNDS, OTHER_BOUND
from ..recording.language_model import LanguageModel, Ranged
from ..recording.summary import OCCUPANCY, LaneTotal, Share, Summary
from .figures import BYTES, COUNT, JOULES, NS, PER_SECOND, Figure, Spread


@dataclass(frozen=True, slots=True)
class GateMetric:
    """A total that runs have."""

    unit: str
    better: str  # "less", "more"; empty: neither
    help: str
    selector: str = ""  # what may stand behind a colon
    only_parts: bool = False  # there is no sum of them
    largest_part: bool = False  # the total is the largest part: a smaller one can grow unseen


METRICS = {  # name → what it is; order is report order
    "latency": GateMetric(NS, "less", "one inference on the device"),
    "throughput": GateMetric(PER_SECOND, "more", "inferences per second"),
    "host_latency": GateMetric(NS, "less", "one inference as the application sees it", "STAGE"),
    "peak_memory": GateMetric(BYTES, "less", "most bytes in use in one memory", "MEMORY", largest_part=True),
    "memory_read": GateMetric(BYTES, "less", "bytes read from memories", "MEMORY"),
    "memory_write": GateMetric(BYTES, "less", "bytes written to memories", "MEMORY"),
    "energy": GateMetric(JOULES, "less", "one inference"),
    "ttft": GateMetric(NS, "less", "to the first token of a language model, at the first point asked for", "POINT"),
    "tpot": GateMetric(NS, "less", "from token to token of one user, at the first point asked for", "POINT"),
    "prefill_tokens": GateMetric(PER_SECOND, "more", "tokens of prompts read per second", "POINT"),
    "decode_tokens": GateMetric(PER_SECOND, "more", "tokens made per second for all users", "POINT"),
    "weights": GateMetric(BYTES, "less", "weights of a language model"),
    "kv_cache": GateMetric(BYTES, "less", "keys and values that a language model keeps", "POINT"),
    "token_energy": GateMetric(JOULES, "less", "one token that is decoded", "POINT"),
    "busy": GateMetric(NS, "less", "all lanes together at work", "ENGINE"),
    "wait": GateMetric(NS, "less", "all lanes together waiting for others", "ENGINE"),
    "idle": GateMetric(
        NS, "", "all lanes together with nothing to do; waits are in it where they are not told", "ENGINE"
    ),
    "cause": GateMetric(
        NS, "less", "part of the wall time that one cause takes, as in the findings", "CAUSE", only_parts=True
    ),
    "occupancy": GateMetric(
        NS, "less", "part of the wall time of the device by who is at work", "PART", only_parts=True
    ),
    "macs": GateMetric(COUNT, "", "multiply-accumulate operations"),
    "ops": GateMetric(COUNT, "", "ops with a time of their own"),
    "commands": GateMetric(COUNT, "", "commands on all lanes"),
}
OP_METRICS = {  # limits on the time of ops: name → what stands behind the colon
    "op": "NAME",
    "type": "TYPE",
    "module": "MODULE",
    "layer": "LAYER",
    "block": "BLOCK",
    "engine": "ENGINE",
}


def figures_of(summary: Summary, *, provenance: Provenance, spread: Spread | None) -> tuple[Figure, ...]:
    """Every total that the summary knows, in report order."""
    return tuple(
        Figure(
            name,
            value,
            METRICS[name.partition(":")[0]].unit,
            _provenance(name, summary, provenance),
            _spread(name, summary, spread),
        )
        for name, value in _values(summary)
    )


def _provenance(name: str, summary: Summary, of_run: Provenance) -> Provenance:
    return summary.latency.provenance if name == "latency" else of_run


def _spread(name: str, summary: Summary, spread: Spread | None) -> Spread | None:
    if name == "throughput" and spread is not None:
        return rate_spread(summary.throughput_per_s, spread, summary.batch)
    return spread if name == "latency" else None


def rate_spread(rate: float | None, spread: Spread, batch: int | None) -> Spread | None:
    """Of a throughput, where it is nothing but the batch over the latency; else its samples are not known."""
    work = (batch or 0) * 1e9
    if not rate or spread.values[0] <= 0 or not work / spread.values[-1] <= rate <= work / spread.values[0]:
        return None
    coarse = spread.tick / spread.median * (work / spread.median)  # the same share of a rate
    return Spread(spread.count, spread.effective, tuple(work / value for value in reversed(spread.values)), coarse)


def _values(summary: Summary) -> Iterator[tuple[str, float | None]]:
    yield "latency", summary.latency.value_ns
    yield "throughput", summary.throughput_per_s
    if summary.host:
        yield "host_latency", sum(stage.ns for stage in summary.host)
        yield from _by_name("host_latency", ((stage.name, stage.ns) for stage in summary.host))
    yield from _memory(summary)
    yield "energy", None if summary.energy is None else summary.energy.value_j
    yield from _tokens(summary.language_model)
    for word in ("busy", "wait", "idle"):
        yield from _lanes(summary.lanes, word)
    yield from _causes(summary.breakdown)
    yield from _by_name("occupancy", ((share.cause, round(share.ns)) for share in summary.occupancy))
    yield "macs", known_sum(op.macs for op in summary.ops)
    yield "ops", sum(1 for op in summary.ops if op.wall_ns is not None and op.op is not None) or None
    yield "commands", known_sum(op.commands for op in summary.ops)


def _tokens(found: LanguageModel | None) -> Iterator[tuple[str, float | None]]:
    """Figures of the first point, and those of every point under what they depend on: `ttft:batch=1,prompt=128`."""
    if found is None:
        return
    rows: dict[str, dict[str, float | None]] = {}
    for point in found.points:
        prompt, context = _at(point.batch, "prompt", point.prompt), _at(point.batch, "context", point.context)
        for name, selector, value in (
            ("ttft", prompt, _value(point.ttft_ms, 1e6)),
            ("tpot", context, _value(point.tpot_ms, 1e6)),
            ("prefill_tokens", prompt, _value(point.prefill_tokens_per_s)),
            ("decode_tokens", context, _value(point.decode_tokens_per_s)),
            ("weights", "", point.weight_bytes),
            ("kv_cache", context, point.kv_bytes),
            ("token_energy", context, _value(point.energy_per_token_mj, 1e-3)),
        ):
            parts = rows.setdefault(name, {"": value})
            if parts[""] is None:  # a benchmark may tell of one phase at a point
                parts[""] = value
            parts.setdefault(selector, value)
    for name, parts in rows.items():
        yield from ((f"{name}:{part}" if part else name, value) for part, value in parts.items())


def _at(batch: int | None, name: str, tokens: int | None) -> str:
    """The selector of a point; empty: how many users or tokens is not known."""
    return "" if batch is None or tokens is None else f"batch={batch},{name}={tokens}"


def _value(found: Ranged | None, factor: float = 1) -> float | None:
    return None if found is None else found.value * factor


def _causes(breakdown: Iterable[Share]) -> Iterator[tuple[str, float | None]]:
    """Every cause that there is, where any is known: one that takes no time takes none, and is not unknown."""
    found = {share.cause: share.ns for share in breakdown}
    if found:
        names = dict.fromkeys((*BOUNDS, OTHER_BOUND, *found))
        yield from ((f"cause:{name}", round(found.get(name, 0))) for name in names)


def current_name(name: str) -> str:
    """Of a limit, or in a baseline file: parts of the occupancy once were causes."""
    metric, _, selector = name.partition(":")
    earlier = metric == "cause" and selector in OCCUPANCY and selector not in BOUNDS
    return f"occupancy:{selector}" if earlier else name


def _by_name(metric: str, rows: Iterable[tuple[str, float | None]]) -> Iterator[tuple[str, float | None]]:
    totals: dict[str, float | None] = {}
    for name, value in rows:
        before = totals.get(name, 0)
        totals[name] = None if before is None or value is None else before + value
    yield from ((f"{metric}:{name}", value) for name, value in totals.items())


def _memory(summary: Summary) -> Iterator[tuple[str, float | None]]:
    names = dict.fromkeys(row.name for row in summary.memory)
    peaks = {name: [row.peak_bytes for row in summary.memory if row.name == name] for name in names}
    known = {name: max((p for p in found if p is not None), default=None) for name, found in peaks.items()}
    yield "peak_memory", max((peak for peak in known.values() if peak is not None), default=None)
    yield from ((f"peak_memory:{name}", peak) for name, peak in known.items() if peak is not None)
    for metric, field in (("memory_read", "read_bytes"), ("memory_write", "write_bytes")):
        rows = [(row.name, getattr(row, field)) for row in summary.memory if getattr(row, field) is not None]
        yield metric, sum(value for _, value in rows) if rows else None
        yield from _by_name(metric, rows)


def _lanes(lanes: tuple[LaneTotal, ...], word: str) -> Iterator[tuple[str, float | None]]:
    """By engine, and of all; a sum of lanes one of which is not known is not known."""
    rows = [(lane.engine or lane.name, getattr(lane, f"{word}_ns")) for lane in lanes]
    yield word, whole_sum(value for _, value in rows)
    yield from ((name, value) for name, value in _by_name(word, rows) if value is not None)
