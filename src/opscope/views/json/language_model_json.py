"""A language model at every point, for programs: `opscope.llm/1`. A number with a range is {value, low, high}."""

from __future__ import annotations

from dataclasses import asdict
from typing import TextIO

from ...core.json_files import PRODUCER, write_json
from ...gate.verdict import Verdict
from ...recording.language_model import LanguageModel, TokenPoint, scaled

SCHEMA = "opscope.llm/1"


class LanguageModelJson:
    """Null is not known.

    Args:
        verdict: of a budget, where there was one.
    """

    def __init__(self, *, verdict: Verdict | None = None) -> None:
        self.verdict = verdict

    def render(self, found: LanguageModel, out: TextIO) -> None:
        data: dict[str, object] = {
            "schema": SCHEMA,
            "producer": PRODUCER,
            "model": found.model,
            "target": found.target,
            "devices": found.devices,
            "cards": found.cards,
            "weights": found.weights or None,
            "kv": found.kv or None,
            "parallel": found.parallel or None,
            "points": [_point(found, point) for point in found.points],
            "largest": [asdict(each) for each in found.largest],
            "notes": list(found.notes),
        }
        if self.verdict is not None and self.verdict.checks:
            checks = [{"name": c.name, "verdict": c.word, "reason": c.reason} for c in self.verdict.checks]
            data["budget"] = {"verdict": self.verdict.word, "checks": checks}
        write_json(data, out)


def _point(found: LanguageModel, point: TokenPoint) -> dict[str, object]:
    per_user = point.decode_tokens_per_s_per_user
    per_device = scaled(point.decode_tokens_per_s, 1 / found.devices) if found.devices else None
    per_card = scaled(point.decode_tokens_per_s, 1 / found.cards) if found.cards else None
    rates = {
        "decode_tokens_per_s_per_user": None if per_user is None else asdict(per_user),
        "decode_tokens_per_s_per_device": None if per_device is None else asdict(per_device),
        "decode_tokens_per_s_per_card": None if per_card is None else asdict(per_card),
    }
    words = {"bound_prefill": point.bound_prefill or None, "bound_decode": point.bound_decode or None}
    return asdict(point) | words | rates
