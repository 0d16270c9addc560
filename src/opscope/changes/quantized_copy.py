"""A quantised copy of a model, and both of them profiled: one that a backend refuses does not hide the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import ModelError
from ..core.manifest import Value
from ..machine.target import Target
from ..options import QuantizeOptions
from ..quantization.quantise import check_choice, quantise
from ..recording.quantized import ProfiledCopy, Quantized
from ..workflows import catalogue, own_backends
from .profile_model import profile_by


@dataclass(frozen=True, slots=True)
class Look:
    """How model and copy are profiled, where a target or a backend is given."""

    target: str | Path | Target | None
    backend: str | None
    options: Mapping[str, Value]  # of the backend
    runs: Path | None  # gets the folders `before` and `after`
    command: Sequence[str]
    created: str


def quantize_and_look(
    model: Path, output: Path, choice: QuantizeOptions, look: Look, *, step: Callable[[str], None] | None = None
) -> Quantized:
    """Write the copy, made for the backend that looks at it; the model is profiled first, so that a mistake about the
    backend comes before the long work."""
    check_choice(choice)
    if look.backend is None and look.target is not None:
        look = replace(look, backend=catalogue.choose(look.target, options=look.options, model=model).backend)
    before = _profiled(model, "before", choice, look, step)
    maker = None if look.backend in own_backends.OWN else look.backend
    made = quantise(model, output, choice, backend=maker, step=step)
    return replace(made, before=before, after=_profiled(output, "after", choice, look, step))


def _profiled(
    file: Path, name: str, choice: QuantizeOptions, look: Look, step: Callable[[str], None] | None
) -> ProfiledCopy | None:
    """What a profile came to, or why the model cannot be profiled there; None: nobody looks."""
    if look.target is None and look.backend is None:
        return None
    if step is not None:
        step(f"profiling {name}")
    folder = None if look.runs is None else look.runs / name
    try:
        recorded = profile_by(
            look.backend,
            file,
            look.target,
            look.options,
            shapes=choice.shapes,
            folder=folder,
            command=tuple(look.command),
            created=look.created,
        )
    except ModelError as error:
        return ProfiledCopy("", None, problem=str(error))
    info, place = recorded.run.info, None if folder is None else str(folder)
    return ProfiledCopy(f"{info.target} ({recorded.recording.maker})", recorded.run.summary.latency, place)
