"""What efficient-transformers prints behind a run on Cloud AI cards, all users together and with two decimals.

The lines are those of QEfficient/generation/text_generation_inference.py in github.com/quic/efficient-transformers.
"""

from __future__ import annotations

import re
from pathlib import Path

from ...core.errors import ImportFileError
from ...importers.reading import Unread, number_in, numbered
from ...recording.language_model import Ranged, TokenPoint, inverse, scaled
from ...recording.recording import Metric, Recording
from .benchmark import measured_point, recording

TOOL = "efficient-transformers"
_HALF = 0.005  # of the last digit that is printed
_LONGEST_LINE = 100_000
# `Average Prefill time a.k.a TTFT is= 0.25 sec`, `Prefill time a.k.a TTFT (batch) is : 0.25 s`
_PREFILL = re.compile(r"(?:Average )?Prefill time a\.k\.a TTFT(?: \(batch\))? is ?[=:]\s*([\d.]+)")
# `Decode is= 71.2 tokens/sec`, `Decode token/sec is= 71.2`, `Decode: 71.2 tok/s`, `Decode (batch): 71.2 tok/s`
_DECODE = re.compile(r"Decode(?: \(batch\))?(?: tokens?/sec)?(?: is)? ?[=:]\s*([\d.]+)")
_TOTAL = re.compile(r"(?:Total|E2E)(?: \(batch\))?(?: tokens?/sec)?(?: is)? ?[=:]\s*([\d.]+)")
_WHOLE = re.compile(r"Total \(E2E\) inference time(?: \(batch\))? is ?[=:]\s*([\d.]+)")
_BATCH = re.compile(r"[-_ '\"]batch[-_]size['\"]?(?:\s*[=:,]\s*|\s+)['\"]?(\d{1,6})\b")
_PROMPT = re.compile(r"[-_ '\"](?:prompt|prefill)_(?:seq_)?len['\"]?(?:\s*[=:,]\s*|\s+)['\"]?(\d{1,8})\b")
_CONTEXT = re.compile(r"[-_ '\"]ctx_len['\"]?(?:\s*[=:,]\s*|\s+)['\"]?(\d{1,8})\b")
_MODEL = re.compile(r"--model[-_]name[= ]+(\S+)")
_WORDS = {"batch": _BATCH, "prompt": _PROMPT, "context": _CONTEXT}


class EfficientTransformers:
    """The output of a run as it was saved, with the command that is in it, where it is."""

    name = "efficient-transformers"

    def read(self, path: Path) -> Recording:
        """One point for each block of figures; a block that is printed twice is one."""
        unread = Unread("lines with a figure")
        asked: dict[str, int] = {}
        model = ""
        blocks: list[dict[str, float]] = []
        for number, line in numbered(path):
            text = line.strip()[:_LONGEST_LINE]
            for name, pattern in _WORDS.items():
                if found := pattern.search(text):
                    asked.setdefault(name, int(found[1]))
            if found := _MODEL.search(text):
                model = model or found[1]
            _figure(text, f"line {number}", blocks, unread)
        different = [block for number, block in enumerate(blocks) if block not in blocks[:number]]
        points = tuple(_point(block, asked) for block in different)
        if not points:
            raise ImportFileError(str(path), "", "no figures; expected lines such as `Decode is= 71.2 tokens/sec`")
        return recording(
            path,
            self.name,
            TOOL,
            model=model,
            points=points,
            metrics=(
                Metric("tokens per second", blocks[0].get("total"), "1/s", note="prompt and answer"),
                Metric("duration", _ns(blocks[0].get("whole")), "ns"),
            ),
            notes=(*_notes(asked, points), *unread.notes()),
        )


def _figure(text: str, place: str, blocks: list[dict[str, float]], unread: Unread) -> None:
    """A figure of the block that the time of the prompt began."""
    for name, pattern in (("prefill", _PREFILL), ("whole", _WHOLE), ("decode", _DECODE), ("total", _TOTAL)):
        found = pattern.match(text)
        if found is None:
            continue
        value = number_in(found[1])
        if value is None or (name != "prefill" and not blocks):
            unread.add(place, text)
        elif name == "prefill":
            blocks.append({name: value})
        else:
            blocks[-1][name] = value
        return


def _point(block: dict[str, float], asked: dict[str, int]) -> TokenPoint:
    """Ranges are what the printed digits leave open; a time that rounds to nothing is not known."""
    rate, batch = _rounded(block.get("decode")), asked.get("batch")
    prefill = _rounded(block.get("prefill"))
    return measured_point(
        batch=batch,
        prompt=asked.get("prompt"),
        context=asked.get("context"),
        ttft_ms=scaled(prefill, 1e3),
        tpot_ms=None if rate is None or batch is None else inverse(rate, 1e3 * batch),
        decode_tokens_per_s=rate,
    )


def _rounded(value: float | None) -> Ranged | None:
    return Ranged(value, max(value - _HALF, 0.0), value + _HALF) if value else None


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e9


def _notes(asked: dict[str, int], points: tuple[TokenPoint, ...]) -> tuple[str, ...]:
    missing = [name for name in _WORDS if name not in asked]
    told = [f"the text does not say: {', '.join(missing)}"] if missing else []
    if "batch" in missing:
        told.append("without the batch, tokens per second of all users say nothing of the time from token to token")
    if any(point.ttft_ms is None for point in points):
        told.append("a time to the first token that is printed as 0.0 is below 5 ms, and not known")
    return tuple(told)
