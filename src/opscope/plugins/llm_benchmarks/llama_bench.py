"""llama-bench of llama.cpp (tools/llama-bench/README.md of github.com/ggml-org/llama.cpp): JSON, JSON lines and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...core.errors import ImportFileError
from ...importers.reading import Unread, read_text
from ...recording.language_model import Ranged, TokenPoint, inverse
from ...recording.recording import Metric, Recording
from .benchmark import Fields, measured_point, number, recording, whole, word

TOOL = "llama-bench"
_MOST_ROWS = 100_000
_ROW = msgspec.json.Decoder(dict[str, object])
_ROWS = msgspec.json.Decoder(list[msgspec.Raw])
_WEIGHTS = {"F16": "f16", "BF16": "bf16", "F32": "f32", "Q8_0": "w8", "Q4_0": "w4"}  # words of `opscope llm --weights`
_CACHES = {"f16": "f16", "f32": "f32", "q8_0": "i8", "q4_0": "i4"}


class LlamaBench:
    """Each test is one phase: `pp` reads a prompt, `tg` makes tokens, at a depth that the cache has before."""

    name = "llama-bench"

    def read(self, path: Path) -> Recording:
        """A point for each test; of those that mix both phases, the rate alone."""
        unread = Unread("tests")
        rows = list(_rows(path, unread))
        if not rows:
            raise ImportFileError(str(path), "", "no tests; expected rows with n_prompt, n_gen and avg_ts")
        models = dict.fromkeys(word(row, "model_type", "model_filename") for row in rows)
        if len(models) > 1:
            known = ", ".join(list(models)[:3])
            raise ImportFileError(str(path), "", f"tests of several models ({known}); expected one: import them apart")
        first = rows[0]
        points = tuple(point for row in rows if (point := _point(row)) is not None)
        return recording(
            path,
            self.name,
            f"{TOOL} {word(first, 'build_commit')}".strip(),
            model=next(iter(models)),
            points=points,
            metrics=tuple(_mixed(rows)),
            notes=(
                "of a test of n tokens, the context is its depth and half of them",
                *unread.notes(),
            ),
            fields=first,
            target=word(first, "gpu_info") or word(first, "cpu_info"),
            weights=next((ours for theirs, ours in _WEIGHTS.items() if theirs in next(iter(models)).split()), ""),
            kv=_CACHES.get(word(first, "type_k"), "") if word(first, "type_k") == word(first, "type_v") else "",
        )


def _rows(path: Path, unread: Unread) -> Iterator[Fields]:
    text = read_text(path)
    start = text.lstrip()[:1]
    if start in "[{" and start:
        found = _json_rows(path, text, unread)
    else:
        found = (
            {name: _value(value) for name, value in row.items() if name} for row in csv.DictReader(text.splitlines())
        )
    for count, row in enumerate(found, start=1):
        if count > _MOST_ROWS:
            raise ImportFileError(str(path), "", f"more than {_MOST_ROWS} tests; expected fewer")
        if number(row, "avg_ts") is None or (number(row, "n_prompt") is None and number(row, "n_gen") is None):
            unread.add(f"test {count}", str(dict(row)))
        else:
            yield row


def _json_rows(path: Path, text: str, unread: Unread) -> Iterator[Fields]:
    raws: list[bytes | msgspec.Raw]
    try:
        raws = (
            list(_ROWS.decode(text))
            if text.lstrip().startswith("[")
            else [line.encode() for line in text.splitlines() if line.strip()]
        )
    except msgspec.MsgspecError as error:
        raise ImportFileError(str(path), "", f"{error}; expected JSON of {TOOL}") from error
    for count, raw in enumerate(raws, start=1):
        try:
            yield _ROW.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            unread.add(f"test {count}", str(error))


def _value(text: str | None) -> object:
    try:
        return float(text or "")
    except ValueError:
        return text


def _point(row: Fields) -> TokenPoint | None:
    """None: the test mixes both phases, or does neither."""
    prompt, made, depth = (number(row, name) or 0 for name in ("n_prompt", "n_gen", "n_depth"))
    rate = _rate(row)
    if bool(prompt) == bool(made) or rate is None:
        return None
    weights = whole(row, "model_size")
    if prompt:
        return measured_point(
            batch=1,
            prompt=round(prompt),
            context=round(depth + prompt),
            ttft_ms=inverse(rate, 1e3 * prompt),
            prefill_tokens_per_s=rate,
            weight_bytes=weights,
        )
    return measured_point(
        batch=1,
        context=round(depth + made / 2),
        tpot_ms=inverse(rate, 1e3),
        decode_tokens_per_s=rate,
        weight_bytes=weights,
    )


def _rate(row: Fields) -> Ranged | None:
    """Tokens per second, with the slowest and the fastest sample, or else a deviation."""
    value = number(row, "avg_ts")
    if not value:
        return None
    listed = row.get("samples_ts")
    samples = [each for each in listed if isinstance(each, int | float)] if isinstance(listed, list) else []
    if samples:
        return Ranged(value, float(min(samples)), float(max(samples)))
    deviation = number(row, "stddev_ts")
    return Ranged(value) if deviation is None else Ranged(value, max(value - deviation, 0.0), value + deviation)


def _mixed(rows: list[Fields]) -> Iterator[Metric]:
    for row in rows:
        prompt, made = number(row, "n_prompt"), number(row, "n_gen")
        if prompt and made:
            name = f"tokens per second, {prompt:.0f} read and {made:.0f} made"
            yield Metric(name, number(row, "avg_ts"), "1/s")
