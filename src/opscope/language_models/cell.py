"""One point of a language model as a cell of a sweep: the backend `llm`, which takes a config for a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.manifest import Option
from ..options import LlmOptions, chosen, options_of

if TYPE_CHECKING:
    from ..workflows.record import Recorded

BACKEND = "llm"  # who tells, in runs and stores
_LISTS = ("prompt", "context", "batch")  # of which a cell has one value each
OPTIONS = tuple(
    Option(
        name,
        option.help,
        choices=option.choices,
        is_flag=name == "simulate",
        is_number=name in _LISTS or option.least is not None,
        metavar="N" if name in _LISTS else option.metavar or "V",
    )
    for name, option in options_of(LlmOptions).items()
)


def profile_point(
    config: Path, target: str, options: Mapping[str, str | int | bool], *, folder: Path | None, created: str
) -> Recorded:
    """The point that the options of a cell name."""
    from .llm import llm

    named = {name: (value,) if name in _LISTS else value for name, value in options.items()}
    choice = chosen(LlmOptions, None, named)
    return llm(config, target, choice, run=folder, command=("opscope", "sweep"), created=created)
