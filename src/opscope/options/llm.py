"""How a language model is held and served, and the points that are asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.errors import UsageError
from . import check_words, shown
from .shared import DEVICES, PARALLEL

MOST_TOKENS = 1 << 23  # of a prompt or a context, and users at once
MOST_POINTS = 4096  # of a language model


@dataclass(frozen=True, slots=True)
class LlmOptions:
    """Options of `llm`: how a language model is stored and served, and which points to estimate."""

    devices: int = field(default=1, metadata=DEVICES)
    weights: str = field(default="f16", metadata=shown("how weights are stored: f16 (default), i8, w4, mxfp6, …", "P"))
    kv: str = field(default="f16", metadata=shown("how keys and values are stored: f16 (default), i8, mxint8", "P"))
    prompt: tuple[int, ...] = field(
        default=(128, 1024), metadata=shown("tokens of the prompt (default 128,1024)", "N,N,…")
    )
    context: tuple[int, ...] | None = field(
        default=None,
        metadata=shown("tokens in the cache when a token is generated (default: as many as the prompt)", "N,N,…"),
    )
    batch: tuple[int, ...] = field(default=(1,), metadata=shown("sequences served at once (default 1)", "N,N,…"))
    parallel: str = field(default="auto", metadata=PARALLEL)
    chunk: int | None = field(
        default=None,
        metadata=shown("tokens of a prompt per prefill step (default: as the target's runtime)", "N", least=1),
    )
    simulate: bool = field(
        default=False, metadata=shown("run the steps on the simulated device, if the target has one (slower)")
    )

    def __post_init__(self) -> None:
        for name in ("prompt", "context", "batch"):
            values = getattr(self, name)
            if values is None and name == "context":
                continue
            found = tuple(dict.fromkeys((values,) if isinstance(values, int) else values))
            object.__setattr__(self, name, found)
            if not found or not all(1 <= value <= MOST_TOKENS for value in found):
                raise UsageError(f"{name} {','.join(map(str, found))}: out of range; expected 1 to {MOST_TOKENS:,}")
        if self.devices < 1:
            raise UsageError(f"devices {self.devices}: out of range; expected at least 1")
        check_words(self)
        if len(self.points) > MOST_POINTS:
            raise UsageError(
                f"{len(self.points):,} points; expected at most {MOST_POINTS:,}: fewer values in the lists"
            )

    @property
    def points(self) -> tuple[tuple[int, int, int], ...]:
        """Batch, prompt and context of each; a cache that does not hold the prompt is none."""
        pairs = [
            (prompt, context)
            for prompt in self.prompt
            for context in ((prompt,) if self.context is None else self.context)
            if context >= prompt
        ]
        if not pairs:
            least, most = min(self.prompt), max(self.context or (0,))
            raise UsageError(f"context {most}: is shorter than every prompt; expected at least {least}")
        return tuple((batch, *pair) for batch in self.batch for pair in pairs)
