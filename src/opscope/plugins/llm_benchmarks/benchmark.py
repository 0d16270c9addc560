"""A benchmark's file → Recording: points of a language model, measured; everything else is kept beside them.

What files do not say stays unknown. Times are those of a client: they hold the host, the network and the queue, which
estimates leave out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ...core.errors import ImportFileError
from ...core.json_files import decode_json
from ...core.provenance import Provenance
from ...importers.reading import LONGEST_NS, read_bytes
from ...recording.language_model import LanguageModel, Ranged, TokenPoint
from ...recording.recording import Metric, Recording, Value

Fields = Mapping[str, object]
SERVED = "times are as a client saw them: host, network and queue are in them"
_MOST_TOKENS = 1 << 40
_OBJECT = msgspec.json.Decoder(dict[str, object])


def read_fields(path: Path) -> Fields:
    """The object that a file is."""
    return decode_json(read_bytes(path), _OBJECT, source=str(path))


def number(fields: Fields, *names: str) -> float | None:
    """The first of these that is a finite number of at least 0."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
            return float(value) if value < LONGEST_NS else None
    return None


def whole(fields: Fields, *names: str) -> int | None:
    """The same, where it is a count of at least 1."""
    value = number(fields, *names)
    return round(value) if value is not None and 1 <= value < _MOST_TOKENS else None


def word(fields: Fields, *names: str) -> str:
    return next((text for name in names if isinstance(text := fields.get(name), str) and text), "")


def part(fields: Fields, *names: str) -> Fields:
    """An object in an object; empty where there is none."""
    found: object = fields
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def measured_point(
    *,
    batch: int | None = None,
    prompt: int | None = None,
    context: int | None = None,
    ttft_ms: Ranged | None = None,
    tpot_ms: Ranged | None = None,
    prefill_tokens_per_s: Ranged | None = None,
    decode_tokens_per_s: Ranged | None = None,
    weight_bytes: int | None = None,
) -> TokenPoint:
    """What a benchmark measures; it knows nothing of memory, bounds and energy."""
    return TokenPoint(
        batch=batch,
        prompt=prompt,
        context=context,
        ttft_ms=ttft_ms,
        tpot_ms=tpot_ms,
        prefill_tokens_per_s=prefill_tokens_per_s,
        decode_tokens_per_s=decode_tokens_per_s,
        weight_bytes=weight_bytes,
        kv_bytes=None,
        capacity_bytes=None,
        fits=True if ttft_ms or tpot_ms or prefill_tokens_per_s or decode_tokens_per_s else None,
        bound_prefill="",
        bound_decode="",
        energy_per_token_mj=None,
        provenance=Provenance.MEASURED,
    )


def recording(
    path: Path,
    maker: str,
    tool: str,
    *,
    model: str,
    points: tuple[TokenPoint, ...],
    metrics: tuple[Metric, ...] = (),
    notes: tuple[str, ...] = (),
    fields: Fields | None = None,
    target: str = "",
    devices: int | None = None,
    weights: str = "",
    kv: str = "",
    samples_ns: tuple[int, ...] = (),
) -> Recording:
    """Points, totals and every plain value that the file has besides; a file with nothing of these is refused."""
    known = tuple(metric for metric in metrics if metric.value is not None)
    if not points and not known and not samples_ns:
        raise ImportFileError(str(path), "", f"no times and no rates; expected what {tool} writes")
    kept = dict(_plain(fields or {}))
    left = sorted(name for name, value in (fields or {}).items() if isinstance(value, list) and value)
    told = (f"lists that are not kept: {', '.join(left)}",) if left else ()
    found = (
        LanguageModel(model or "unknown", target or "unknown", devices, None, weights, kv, "", points, notes=notes)
        if points
        else None
    )
    return Recording(
        maker=maker,
        tool=tool,
        provenance=Provenance.MEASURED,
        model=model or None,
        network=model,
        target=target or None,
        devices=devices,
        batch=points[0].batch if points else None,
        options=_options(points, weights, kv),
        metrics=known,
        samples_ns=samples_ns,
        language_model=found,
        notes=(*notes, *told),
        details={"benchmark": kept} if kept else {},
    )


def _options(points: tuple[TokenPoint, ...], weights: str, kv: str) -> dict[str, Value]:
    """Under the names that `opscope llm` has for them, so that a comparison says what differs."""
    found: dict[str, Value] = {"weights": weights or None, "kv": kv or None}
    if points:
        found |= {"prompt": points[0].prompt, "context": points[0].context}
    return {name: value for name, value in found.items() if value is not None}


def _plain(fields: Fields) -> Iterator[tuple[str, object]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield name, dict(_plain(value))
        elif not isinstance(value, list):
            yield name, value
