"""What trtexec exports: times per layer (`--exportProfile`), and what the layers are (`--exportLayerInfo`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ...core.errors import ImportFileError, printable
from ...core.json_files import decode_json
from ...core.provenance import Provenance
from ...core.sums import whole_sum
from ...importers.reading import Unread, read_bytes, to_ns
from ...recording.recording import LATENCY, Check, Metric, OpRecord, Recording

TOOL = "TensorRT trtexec"
_MS = 1e6
_LONGEST_METADATA = 10_000
_BITS = {
    "Float": 32,
    "FP32": 32,
    "Half": 16,
    "FP16": 16,
    "BF16": 16,
    "BFloat16": 16,
    "Int8": 8,
    "UInt8": 8,
    "FP8": 8,
    "Int4": 4,
    "FP4": 4,
    "Int32": 32,
    "Int64": 64,
    "Bool": 8,
}
_ORIGIN = re.compile(r"\[ONNX Layer: (.*?)\]")


class _Layer(msgspec.Struct):
    name: str | None = None
    count: int | None = None
    total: float | None = msgspec.field(name="timeMs", default=None)
    average: float | None = msgspec.field(name="averageMs", default=None)
    median: float | None = msgspec.field(name="medianMs", default=None)
    percentage: float | None = None


class _Tensor(msgspec.Struct):
    name: str = msgspec.field(name="Name", default="")
    dims: list[int] = msgspec.field(name="Dimensions", default_factory=list)


class _Constant(msgspec.Struct):
    type: str = msgspec.field(name="Type", default="")
    count: int = msgspec.field(name="Count", default=0)


class _Info(msgspec.Struct):
    name: str = msgspec.field(name="Name")
    type: str | None = msgspec.field(name="LayerType", default=None)
    inputs: list[_Tensor] = msgspec.field(name="Inputs", default_factory=list)
    outputs: list[_Tensor] = msgspec.field(name="Outputs", default_factory=list)
    weights: _Constant | None = msgspec.field(name="Weights", default=None)
    bias: _Constant | None = msgspec.field(name="Bias", default=None)
    tactic: str | None = msgspec.field(name="TacticName", default=None)
    metadata: str = msgspec.field(name="Metadata", default="")


class _Engine(msgspec.Struct):
    layers: list[msgspec.Raw] = msgspec.field(name="Layers")


_ENTRIES, _ENGINE = msgspec.json.Decoder(list[msgspec.Raw]), msgspec.json.Decoder(_Engine)


class TensorRtProfile:
    """A count of runs, then one entry per layer."""

    name = "tensorrt-profile"

    def read(self, path: Path) -> Recording:
        """A row per layer, and their sum as the latency, unless a layer has no time."""
        unread = Unread("entries")
        entries = list(_entries(path, unread))
        runs = next((entry.count for entry in entries if entry.count is not None), None)
        layers = [entry for entry in entries if entry.name is not None]
        ops = tuple(_times(layer) for layer in layers)
        if not ops:
            raise ImportFileError(str(path), "", "no layer that can be read; expected the times of an engine's layers")
        total = Metric(LATENCY, sum(op.time_ns or 0 for op in ops), "ns")
        whole = all(op.time_ns is not None for op in ops) and not unread.count
        note = (
            "is the sum of the layers: profiling runs them one by one" if whole else "is withheld: layers have no time"
        )
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.MEASURED,
            ops=ops,
            checks=tuple(_checks(layers, runs)),
            inferences=runs,
            notes=(f"latency {note}", *unread.notes()),
            metrics=(*([total] if whole else ()), *([Metric("runs", runs, "1")] if runs is not None else ())),
        )


def _entries(path: Path, unread: Unread) -> Iterator[_Layer]:
    decoder = msgspec.json.Decoder(_Layer)
    entries = decode_json(read_bytes(path), _ENTRIES, source=str(path))
    for number, raw in enumerate(entries):
        try:
            entry = decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            unread.add(f"entry {number}", str(error))
            continue
        if entry.name is None and entry.count is None:
            unread.add(f"entry {number}", "neither name nor count")
        else:
            yield entry


def _times(layer: _Layer) -> OpRecord:
    return OpRecord(
        layer.name or "",
        calls=1,
        time_ns=to_ns(layer.average, _MS),
        median_ns=to_ns(layer.median, _MS),
        covers=_fused(layer.name or ""),
    )


def _fused(name: str) -> tuple[str, ...]:
    """A layer is named after what was fused into it; one that changes a layout, after what it does that for."""
    return tuple(part.strip() for part in name.split(" + ")) if " + " in name and "Reformat" not in name else ()


def _checks(layers: Sequence[_Layer], runs: int | None) -> Iterator[Check]:
    shares = [layer.percentage for layer in layers if layer.percentage is not None]
    if shares:
        whole = sum(shares)
        yield Check("shares add up to 100 %", math.isclose(whole, 100, abs_tol=0.01 * len(shares)), f"{whole:.3f} %")
    if runs:
        known = [layer for layer in layers if layer.total is not None and layer.average is not None]
        wrong = [
            layer for layer in known if not math.isclose(layer.total or 0, (layer.average or 0) * runs, rel_tol=1e-3)
        ]
        detail = f"{len(known) - len(wrong)} of {len(known)} layers"
        detail += f"; not {printable(wrong[0].name or '', 60)}" if wrong else ""
        yield Check("time = average × runs", not wrong, detail)


class TensorRtLayers:
    """Layers of an engine: names only, or with shapes, weights and tactics."""

    name = "tensorrt-layers"

    def read(self, path: Path) -> Recording:
        """A row per layer, without times."""
        engine = decode_json(read_bytes(path), _ENGINE, source=str(path))
        unread = Unread("layers")
        decoder = msgspec.json.Decoder(_Info | str)
        ops = []
        for number, raw in enumerate(engine.layers):
            try:
                info = decoder.decode(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                unread.add(f"layer {number}", str(error))
                continue
            ops.append(OpRecord(info) if isinstance(info, str) else _facts(info))
        if not ops:
            raise ImportFileError(str(path), "", "no layer that can be read; expected an engine's layers")
        return Recording(
            maker=self.name,
            tool=TOOL,
            provenance=Provenance.COMPILER_FACT,
            ops=tuple(ops),
            notes=unread.notes(),
            metrics=(Metric("layers", len(engine.layers), "1"),),
        )


def _facts(info: _Info) -> OpRecord:
    sizes = [_size(constant.type, constant.count) for constant in (info.weights, info.bias) if constant is not None]
    shapes = ["×".join(map(str, tensor.dims)) for tensor in (*info.inputs[:1], *info.outputs[:1])]
    return OpRecord(
        info.name,
        type=info.type or "",
        kernel=info.tactic or "",
        shape=" → ".join(shapes),
        covers=tuple(_ORIGIN.findall(info.metadata[:_LONGEST_METADATA])),
        parameter_bytes=whole_sum(sizes),
    )


def _size(kind: str, count: int) -> int | None:
    """Of so many numbers of a type; none at all take no bytes, whatever their type."""
    if not count:
        return 0
    return -(-_BITS[kind] * count // 8) if kind in _BITS and 0 <= count < 2**48 else None
