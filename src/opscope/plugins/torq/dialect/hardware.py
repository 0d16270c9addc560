"""`--torq-hw`: the built-in SL2610 and SR200, or hardware of one's own as fields between colons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....core.errors import UsageError, printable
from ....machine import catalogue as targets
from ....machine.target import Engine, Figure, Holds, Memory, Route, Target

DEFAULT = "torq-sl2610"
BUILT_IN = {"SL2610": DEFAULT, "SR200": "torq-sr200"}
FORM = "ID:LRAM_KB:SLICES:CSS:NSS[:DMA_BYTES_PER_CYCLE[:FACTOR[:TRIPLE:CPU:FEATURES]]]"

_SOURCE = "hw-option"
_CSS, _NSS = ("coral_v1", "coral_v2"), ("nss_v1", "nss_v2")
_SLOW_CDMA = ("coral_v1", "nss_v1")
_FAST_CDMA = 0.8  # of its peak, for every other pair
_DEFAULT_FACTOR = "1.0"


def hardware(text: str | None) -> Target:
    """The target that the option means."""
    if text is None or text.upper() in BUILT_IN:
        return targets.load(DEFAULT if text is None else BUILT_IN[text.upper()])
    if ":" not in text:
        raise UsageError(f"--torq-hw={printable(text)}: not known; expected {' or '.join(BUILT_IN)} or {FORM}")
    return _custom(targets.load(DEFAULT), text)


def _custom(base: Target, text: str) -> Target:
    """A target from fields that a user typed, over one that is known."""
    fields = text.split(":")
    if not 5 <= len(fields) <= 10:
        raise UsageError(f"--torq-hw={printable(text)}: {len(fields)} fields; expected {FORM}")
    identity = _number(fields[0], "ID", int, least=0)
    lram = _number(fields[1], "LRAM_KB", int, least=1, most=1 << 20)
    slices = _number(fields[2], "SLICES", int, least=1, most=64)
    for word, known, name in ((fields[3], _CSS, "CSS"), (fields[4], _NSS, "NSS")):
        if word not in known:
            raise UsageError(f"--torq-hw: {name} is {printable(word)!r}; expected one of {', '.join(known)}")
    rate = _number(fields[5] if len(fields) > 5 else "8", "DMA_BYTES_PER_CYCLE", float)
    factor = _number(fields[6] if len(fields) > 6 else _DEFAULT_FACTOR, "FACTOR", float, most=1)
    cdma = None if (fields[3], fields[4]) == _SLOW_CDMA else _FAST_CDMA
    tiling = base.tiling
    if tiling is not None:  # as large a part of LRAM as before
        share = lram * 1024 / (base.local.bytes.value if base.local is not None else lram * 1024)
        tiling = replace(
            tiling,
            weight_bytes=_scaled(tiling.weight_bytes, share),
            activation_bytes=_scaled(tiling.activation_bytes, share),
        )
    return replace(
        base,
        name=f"torq-hw-{identity:g}",
        title=f"Torq, {slices:g} slices, {lram:g} KiB LRAM ({printable(text)})",
        sources={**base.sources, _SOURCE: f"--torq-hw={printable(text)}"},
        engines=tuple(_engine(engine, int(slices)) for engine in base.engines),
        memories=tuple(_memory(memory, int(lram) * 1024, rate, factor) for memory in base.memories),
        routes=tuple(_route(route, rate, factor, cdma) for route in base.routes),
        tiling=tiling,
    )


def _scaled(figure: Figure, share: float) -> Figure:
    return Figure(max(1024, round(figure.value * share)), figure.source)


def _engine(engine: Engine, slices: int) -> Engine:
    return engine if engine.memory else replace(engine, units=slices)


def _memory(memory: Memory, lram_bytes: int, rate: float, factor: float) -> Memory:
    if Holds.TILES in memory.holds:
        return replace(memory, bytes=Figure(lram_bytes, _SOURCE))
    if memory.bytes_per_cycle is None:
        return memory
    return replace(memory, bytes_per_cycle=Figure(rate, _SOURCE), efficiency=Figure(factor, _SOURCE))


def _route(route: Route, rate: float, factor: float, cdma: float | None) -> Route:
    if route.carries.is_outer:
        return replace(route, bytes_per_cycle=Figure(rate, _SOURCE), efficiency=Figure(factor, _SOURCE))
    return route if cdma is None else replace(route, efficiency=Figure(cdma, _SOURCE))


def _number(text: str, name: str, kind: Callable[[str], float], *, least: float = 1e-9, most: float = 1e6) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        what = "whole number" if kind is int else "number"
        bounds = f"from {least:g} to {most:,.0f}" if kind is int else f"above 0, at most {most:,.0f}"
        raise UsageError(f"--torq-hw: {name} is {printable(text)!r}; expected a {what} {bounds}")
    return value
