"""A quantised copy as text for a terminal: its errors first, then the layers that they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from ...core.errors import printable
from ...core.units import UNKNOWN, format_bytes, format_latency
from ...recording.quantized import Difference, LayerDifference, OutputDifference, ProfiledCopy, Quantized
from .columns import columns, fit_names, pairs

_NAMED = 3  # ops of each type that are named


class QuantizedText:
    """One screen."""

    suffix = ".txt"

    def __init__(self, *, top: int | None = 10) -> None:
        self.top = top

    def render(self, result: Quantized, out: TextIO) -> None:
        lines = [*_head(result), *_profiles(result), "", *_outputs(result), *self._layers(result), *_left(result)]
        lines += [f"note: {printable(note, 400)}" for note in result.notes]
        out.write("\n".join(lines) + "\n")

    def _layers(self, result: Quantized) -> Iterator[str]:
        if not result.layers:
            return
        shown = [layer for layer in result.layers if layer.added > 0][: self.top]
        on = f"by the noise that each adds ({result.layer_samples} worst samples)"
        yield from ("", f"layers: {len(shown)} of {result.layers_compared}, {on}")
        header = ("op", "type", "inputs", "output", "cosine", "max error", "adds")
        yield from columns(header, [_layer(layer) for layer in shown], align="<<>>>>>", limits={0: 48})


def _head(result: Quantized) -> Iterator[str]:
    sizes = sorted((result.model_bytes, result.output_bytes))
    word = "smaller" if result.output_bytes <= result.model_bytes else "larger"
    times = f", {sizes[1] / sizes[0]:.2f} times {word}" if sizes[0] else ""
    calibration = result.calibration
    rows = [
        ("model", printable(result.model, 200)),
        ("copy", printable(result.output, 200)),
        ("precision", f"{result.precision}{f' for {result.backend}' if result.backend else ''}"),
        ("calibrated", printable(calibration.told, 300) if calibration else "nothing is"),
        ("size", f"{format_bytes(result.model_bytes)} → {format_bytes(result.output_bytes)}{times}"),
    ]
    yield from pairs(rows, indent="")
    if calibration is not None and calibration.is_random:
        yield "RANDOM CALIBRATION: for questions of speed; what the errors are with real inputs is not known"


def _profiles(result: Quantized) -> Iterator[str]:
    for name, found in (("before", result.before), ("after", result.after)):
        if found is not None:
            yield f"{name:<10}  {_latency(found)}"
    one, other = (each.latency.value_ns if each and each.latency else None for each in (result.before, result.after))
    if one and other:
        yield f"{'change':<10}  {max(one, other) / min(one, other):.2f} times as {'fast' if other <= one else 'slow'}"


def _latency(found: ProfiledCopy) -> str:
    latency = found.latency
    if latency is None or latency.value_ns is None:
        return f"{UNKNOWN}  {printable(found.problem or 'latency not known', 400)}"
    time = format_latency(latency.value_ns, latency.low_ns, latency.high_ns)
    return f"{time}, {latency.provenance}, {printable(found.where)}"


def _outputs(result: Quantized) -> list[str]:
    if not result.outputs:
        return ["outputs were not compared; --data or --random N does"]
    header = ("output", "SQNR", "cosine", "max error", "largest", "top-1")
    return columns(header, [_output(each) for each in result.outputs], align="<>>>>>", limits={0: 48})


def _output(row: OutputDifference) -> tuple[str, ...]:
    found = row.difference
    if found is None:
        return (row.name, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, row.problem)
    top1 = UNKNOWN if row.top1 is None else f"{row.top1:.1%} of {row.rows}"
    return (row.name, _sqnr(found), _cosine(found), f"{found.max_abs:.4g}", f"{found.largest:.4g}", top1)


def _layer(row: LayerDifference) -> tuple[str, ...]:
    found = row.difference
    inputs = UNKNOWN if row.inputs_db is None else f"{row.inputs_db:.1f} dB"
    return (row.op, row.type, inputs, _sqnr(found), _cosine(found), f"{found.max_abs:.4g}", f"{row.added:.2%}")


def _sqnr(found: Difference) -> str:
    if found.is_exact:
        return "exact"
    return UNKNOWN if found.sqnr_db is None else f"{found.sqnr_db:.1f} dB"


def _cosine(found: Difference) -> str:
    return UNKNOWN if found.cosine is None else f"{found.cosine:.6f}"


def _left(result: Quantized) -> Iterator[str]:
    """Ops that stayed float, by type."""
    if result.float_ops:
        total = sum(map(len, result.float_ops.values()))
        yield from ("", f"left float: {total} ops; {result.quantized_ops} are quantised")
        for kind, names in result.float_ops.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            named = ", ".join(fit_names(names[:_NAMED], 40))
            yield f"  {printable(kind)} ×{len(names)}: {named}{more}"
