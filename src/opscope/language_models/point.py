"""What is found out of a language model at one batch, prompt and context; and of all points that were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.provenance import Provenance


@dataclass(frozen=True, slots=True)
class Spread:
    """A number with its range."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Phase:
    """Prefill (all tokens of the prompt), or one step of decode."""

    time_ms: Spread | None  # None: not known, as where a cost is not
    bound: str  # what binds it: compute, memory, link, launch …; empty: not known
    shares: Mapping[str, float]  # part of the time by block: attention, feed-forward, head, cache …
    read_bytes: Spread | None  # that the step reads from the memory where weights and cache are
    energy_mj: Spread | None


@dataclass(frozen=True, slots=True)
class Point:
    """One batch, prompt and context."""

    batch: int
    prompt: int  # tokens that are read before the first answer
    context: int  # tokens that the cache holds when the next one is made
    prefill: Phase
    decode: Phase
    weight_bytes: int
    kv_bytes: int
    capacity_bytes: int | None  # for weights, cache and what a step needs besides; None: the target does not say
    fits: bool | None
    provenance: Provenance

    @property
    def ttft_ms(self) -> Spread | None:
        return self.prefill.time_ms

    @property
    def tpot_ms(self) -> Spread | None:
        return self.decode.time_ms

    @property
    def prefill_tokens_per_s(self) -> Spread | None:
        return _rate(self.batch * self.prompt, self.prefill.time_ms)

    @property
    def decode_tokens_per_s(self) -> Spread | None:
        """Of all users together."""
        return _rate(self.batch, self.decode.time_ms)


def _rate(tokens: int, time_ms: Spread | None) -> Spread | None:
    """Tokens per second; the slow end of a time is the low end of its rate."""
    if time_ms is None or not time_ms.low:
        return None
    return Spread(*(tokens * 1000 / time for time in (time_ms.value, time_ms.high, time_ms.low)))
