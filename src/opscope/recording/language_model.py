"""What a run tells of a language model: times, rates, bytes and energy by batch, prompt and context.

An estimate and the file of a benchmark have the same form. None is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.provenance import Provenance


@dataclass(frozen=True, slots=True)
class Ranged:
    """A number, with the range that it is thought to lie in, or that samples of it lay in."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class TokenPoint:
    """One batch, prompt and context."""

    batch: int | None  # users at once
    prompt: int | None  # tokens that are read before the first answer
    context: int | None  # tokens that the cache holds when the next one is made
    ttft_ms: Ranged | None  # to the first token
    tpot_ms: Ranged | None  # from token to token of one user
    prefill_tokens_per_s: Ranged | None
    decode_tokens_per_s: Ranged | None  # of all users together
    weight_bytes: int | None
    kv_bytes: int | None
    capacity_bytes: int | None
    fits: bool | None
    bound_prefill: str
    bound_decode: str
    energy_per_token_mj: Ranged | None  # of a token that is decoded
    provenance: Provenance
    shares_prefill: Mapping[str, float] = field(default_factory=dict)  # of the time, by block
    shares_decode: Mapping[str, float] = field(default_factory=dict)
    decode_read_bytes: Ranged | None = None  # that a step of decode moves: weights that it needs, and the cache

    @property
    def decode_tokens_per_s_per_user(self) -> Ranged | None:
        return None if self.tpot_ms is None else inverse(self.tpot_ms, 1e3)

    @property
    def needed_bytes(self) -> int | None:
        """Weights and cache; None: one of them is not known."""
        return None if self.weight_bytes is None or self.kv_bytes is None else self.weight_bytes + self.kv_bytes

    @property
    def words(self) -> str:
        """`batch=1,prompt=128,context=1024`"""
        return ",".join(
            f"{name}={value}"
            for name, value in (("batch", self.batch), ("prompt", self.prompt), ("context", self.context))
            if value is not None
        )


@dataclass(frozen=True, slots=True)
class LargestFit:
    """The most that fits: of this batch the longest context, or of this context the largest batch."""

    batch: int
    context: int


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """All points of a run; the first one is that of its timeline."""

    model: str
    target: str
    devices: int | None
    cards: int | None  # boards that the devices are on
    weights: str  # precision, as --weights has it; empty: not known
    kv: str
    parallel: str
    points: tuple[TokenPoint, ...]
    largest: tuple[LargestFit, ...] = ()
    notes: tuple[str, ...] = ()  # what was taken for granted

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a language model without points; expected at least one")


def scaled(found: Ranged | None, factor: float) -> Ranged | None:
    """So many times as much."""
    if found is None:
        return None
    low, high = (None if end is None else end * factor for end in (found.low, found.high))
    return Ranged(found.value * factor, low, high)


def inverse(found: Ranged, of: float) -> Ranged | None:
    """A rate of a time, or a time of a rate: the slow end of the one is the low end of the other."""
    ends = [None if not end else of / end for end in (found.high, found.low)]
    return Ranged(of / found.value, *ends) if found.value else None
