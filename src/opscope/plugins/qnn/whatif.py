"""What if: the same model with other choices, each proven by the vendor's own compiler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path

from ...core.errors import ProfilerError, UsageError
from ...core.manifest import Value
from ...core.provenance import in_words
from ...core.units import format_bytes
from ...graph.graph import Graph
from ...recording.finding import WHAT_IF, Finding, Prediction
from ...recording.recording import Placed, Recording
from ...recording.what_if import WhatIf, WhatIfPoint
from .compilation import graph_of_model
from .options import HtpOptions
from .profile import profile_graph

Progress = Callable[[int, int], None]

MOST_POINTS = 500
SIZES_MB = (1, 2, 4, 8, 16)
WORTH = 0.02  # a change that saves less is not advice
_HELPS = {
    "layout": ("io_quant",),
    "spill": ("vtcm_mb", "precision"),
    "slow-op": ("precision",),
    "wait": ("opt_level", "vtcm_mb"),
}


def grid(axes: Mapping[str, Sequence[str]]) -> tuple[tuple[HtpOptions, ...], tuple[str, ...]]:
    """Every combination of the values of each option that can be; and notes on those that cannot."""
    names = list(axes)
    count = 1
    for values in axes.values():
        count *= max(len(values), 1)
    if count > MOST_POINTS:
        raise UsageError(f"{count} combinations; expected at most {MOST_POINTS}: name fewer values")
    points: dict[HtpOptions, None] = {}
    notes: list[str] = []
    for values in product(*axes.values()):
        choices = dict(zip(names, values, strict=True))
        size = choices.pop("vtcm-mb", None)
        base = HtpOptions.of(choices)
        if size is not None and not size.isdecimal():
            raise UsageError(f"--vtcm-mb {size}: not a whole number; expected sizes in MB such as 1,2,4,8")
        if size is not None and int(size) > base.soc.vtcm_mb:
            notes.append(f"{base.soc.label} has {base.soc.vtcm_mb} MB VTCM: left out --vtcm-mb {size}")
            continue
        points[base.with_vtcm(size)] = None
    return tuple(points), tuple(dict.fromkeys(notes))


def run_grid(
    model: Path,
    points: Sequence[HtpOptions],
    *,
    shapes: Mapping[str, tuple[int, ...]],
    jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[WhatIfPoint, ...]:
    """Profile every point, several at once, each in a process of its own."""
    graph = graph_of_model(model, shapes)
    done: dict[HtpOptions, WhatIfPoint] = {}
    pool = ThreadPoolExecutor(max_workers=jobs or os.cpu_count() or 1)
    try:
        futures = {pool.submit(_point, model, point, graph, fixes=bool(shapes)): point for point in points}
        for number, future in enumerate(as_completed(futures), start=1):
            done[futures[future]] = future.result()
            if progress is not None:
                progress(number, len(points))
    finally:
        pool.shutdown(cancel_futures=True)  # after an interrupt no further point is begun
    return _share_copies([done[point] for point in points])


def _share_copies(points: Sequence[WhatIfPoint]) -> tuple[WhatIfPoint, ...]:
    """Points of one precision have one copy of the model; it is in memory once, not once for each."""
    seen: dict[bytes, bytes] = {}

    def shared(point: WhatIfPoint) -> WhatIfPoint:
        if point.recording is None:
            return point
        files = {name: seen.setdefault(data, data) for name, data in point.recording.files.items()}
        return replace(point, recording=replace(point.recording, files=files))

    return tuple(map(shared, points))


def _point(model: Path, options: HtpOptions, graph: Graph, *, fixes: bool) -> WhatIfPoint:
    choices = {"soc": options.soc.label, **options.shown()}
    try:
        return point_of(label(options), choices, profile_graph(model, options, graph, fixes=fixes))
    except ProfilerError as error:
        return WhatIfPoint(label(options), choices, None, str(error))


def point_of(name: str, choices: Mapping[str, Value], recording: Recording) -> WhatIfPoint:
    """With the figures that points are compared by."""
    time = recording.metric("htp_execution_time")
    return WhatIfPoint(
        name,
        choices,
        recording,
        time_us=None if time is None else time.value,
        low_us=None if time is None else time.low,
        high_us=None if time is None else time.high,
        outer_bytes=(recording.value("ddr_read") or 0) + (recording.value("ddr_write") or 0),
        local_bytes=recording.value("vtcm_peak"),
    )


def label(options: HtpOptions) -> str:
    """What is not the default, in words."""
    parts = [options.soc.label]
    if options.vtcm_mb is not None:
        parts.append(f"{options.vtcm_mb} MB VTCM")
    if options.precision != "as-is":
        parts.append(options.precision)
    if options.opt_level is not None:
        parts.append(f"opt level {options.opt_level}")
    if not options.io_quant:
        parts.append("I/O quantised on the CPU")
    return ", ".join(parts)


class HtpWhatIf:
    """Other choices of a profile, tried."""

    def advise(
        self,
        model: Path,
        recording: Recording,
        options: Mapping[str, Value],
        *,
        shapes: Mapping[str, tuple[int, ...]],
        progress: Progress | None = None,
    ) -> Recording:
        """The profile, its causes citing choices that help."""
        is_float = not any(op.type in ("QuantizeLinear", "DequantizeLinear") for op in recording.ops)
        points = neighbours(HtpOptions.of(options), is_float=is_float)
        return with_evidence(recording, run_grid(model, points, shapes=shapes, progress=progress))

    def grid(
        self,
        model: Path,
        axes: Mapping[str, Sequence[str]],
        *,
        shapes: Mapping[str, tuple[int, ...]],
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> WhatIf:
        """Every combination of the values of each option, best first."""
        return what_if(model, axes, shapes=shapes, jobs=jobs, progress=progress)


def what_if(
    model: Path,
    axes: Mapping[str, Sequence[str]],
    *,
    shapes: Mapping[str, tuple[int, ...]],
    jobs: int | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """The whole grid, best first."""
    points, notes = grid(axes)
    if not points:
        raise UsageError(f"what-if: no combination can be tried: {'; '.join(notes)}")
    tried = run_grid(model, points, shapes=shapes, jobs=jobs, progress=progress)
    ordered = sorted(with_front(tried), key=_order)
    failed = [point for point in tried if point.recording is None]
    if len(failed) == len(tried):
        reasons = "; ".join(dict.fromkeys(f"{point.label}: {point.problem}" for point in failed))
        raise UsageError(f"what-if: no combination works: {reasons}")
    if any(point.choices["precision"] not in ("as-is", "f16") for point in tried):
        notes += ("copies of another precision are calibrated with random data: for questions of speed only",)
    if any(point.choices["io_quant"] == "off" for point in tried):
        notes += ("I/O quantised on the CPU: the time that the CPU takes for it is unknown and not included",)
    return WhatIf(str(model), "htp", tuple(ordered), tuple(device_advice(ordered)), notes, "DDR", "VTCM")


def _order(point: WhatIfPoint) -> tuple[bool, float, float]:
    time, moved = point.time_us, point.outer_bytes
    return (point.recording is None, float("inf") if time is None else time, moved or 0.0)


def with_front(points: Sequence[WhatIfPoint]) -> tuple[WhatIfPoint, ...]:
    """Mark the points that no other beats in time, DDR bytes and VTCM at once."""
    scores = [_score(point) for point in points]
    return tuple(
        replace(point, on_front=score is not None and not any(_beats(other, score) for other in scores))
        for point, score in zip(points, scores, strict=True)
    )


def _score(point: WhatIfPoint) -> tuple[float, float, float] | None:
    time, moved, local = point.time_us, point.outer_bytes, point.local_bytes
    return None if time is None or moved is None or local is None else (time, moved, local)


def _beats(other: tuple[float, float, float] | None, score: tuple[float, float, float]) -> bool:
    return other is not None and other != score and all(a <= b for a, b in zip(other, score, strict=True))


def device_advice(points: Sequence[WhatIfPoint]) -> Iterator[str]:
    """Per part, what sets it apart: its best point, spills, nodes on the CPU."""
    parts = list(dict.fromkeys(str(point.choices["soc"]) for point in points))
    for part in parts:
        here = [point for point in points if point.choices["soc"] == part and point.recording is not None]
        if not here:
            yield f"{part}: no point works"
            continue
        best = here[0]
        spilled = sum(node.spill_bytes for node in best.recording.ops) if best.recording else 0
        on_cpu = len(best.recording.placed(Placed.CPU)) if best.recording else 0
        time = f"{best.time_us:,.1f} us" if best.time_us is not None else "no time"
        words = [f"best is {best.label} ({time})"]
        words.append(f"spills {format_bytes(spilled)}" if spilled else "does not spill")
        if on_cpu:
            words.append(f"{on_cpu} nodes on the CPU")
        yield f"{part}: {'; '.join(words)}"


def neighbours(options: HtpOptions, *, is_float: bool) -> tuple[HtpOptions, ...]:
    """The same choices with one of them changed."""
    base = replace(options, execute=False)
    sizes = [size for size in SIZES_MB if size <= base.soc.vtcm_mb and size != (base.vtcm_mb or base.soc.vtcm_mb)]
    found = [replace(base, vtcm_mb=size) for size in sizes]
    found += [replace(base, opt_level=level) for level in range(4) if level != base.opt_level]
    found.append(replace(base, io_quant=not base.io_quant))
    if is_float and base.precision == "as-is":
        found += [replace(base, precision=word) for word in ("w8a8", "w8a16")]
    return tuple(found)


def with_evidence(recording: Recording, points: Sequence[WhatIfPoint]) -> Recording:
    """Causes that cite the what-if point that helps most, the best single change as one of its own, and what failed."""
    failed = [f"not tried: {_change(p, recording)} fails: {p.problem}" for p in points if p.recording is None]
    recording = replace(recording, notes=(*recording.notes, *failed))
    base = recording.value("htp_execution_time")
    if base is None:
        return recording
    better = sorted((p for p in points if p.time_us is not None and p.time_us < base * (1 - WORTH)), key=_order)
    causes = [replace(cause, predicted=_cite(_helper(cause, recording, better), base)) for cause in recording.causes]
    if better:
        best = better[0]
        saved = round((base - (best.time_us or 0)) * 1e3)
        title = f"one change saves {100 * (1 - (best.time_us or 0) / base):.0f}%: {_change(best, recording)}"
        tried = f"best of {len(points) - len(failed)} compilations that differ from this one in one choice"
        tried += f"; {len(failed)} more failed, see the notes" if failed else ""
        causes.insert(
            0,
            Finding(
                "what-if", title, tried, (), saved, saved / (base * 1e3), _change(best, recording), _cite(best, base)
            ),
        )
    return replace(recording, causes=tuple(causes))


def _helper(cause: Finding, recording: Recording, better: Sequence[WhatIfPoint]) -> WhatIfPoint | None:
    keys = _HELPS.get(cause.id, ())
    return next((p for p in better if any(p.choices[key] != recording.options[key] for key in keys)), None)


def _cite(point: WhatIfPoint | None, base: float) -> Prediction | None:
    if point is None or point.time_us is None or point.recording is None:
        return None
    obtained = in_words(point.recording.provenance, point.recording.basis)
    left_out = ", without the CPU's part" if point.choices["io_quant"] == "off" else ""
    text = f"{point.label}: {point.time_us:,.1f} us instead of {base:,.1f} us ({obtained}{left_out})"
    return Prediction(round((base - point.time_us) * 1e3), round(point.time_us * 1e3), WHAT_IF, text)


def _change(point: WhatIfPoint, recording: Recording) -> str:
    flags = {"vtcm_mb": "--vtcm-mb", "opt_level": "--opt-level", "precision": "--precision", "io_quant": "--io-quant"}
    changed = [key for key in flags if point.choices[key] != recording.options[key]]
    return " ".join(f"{flags[key]} {point.choices[key]}" for key in changed)
