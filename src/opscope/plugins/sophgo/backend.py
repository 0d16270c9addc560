"""Sophgo's chips through tpu-mlir: the schedule of the vendor's model, memory and placement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends import environments
from ...backends.registry import BackendState
from ...core.manifest import Value
from .manifest import BACKEND, CHIP_NAMES, ENVIRONMENT

if TYPE_CHECKING:
    from ...recording.recording import Recording


class SophgoBackend:
    """Compiles for a chip, and gives the schedule of the compiler's own model."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Whether the compiler's programs are here."""
        found = environments.state(ENVIRONMENT.name)
        detail = f"schedules and memory for {len(CHIP_NAMES)} chips; no device needed" if found.works else found.detail
        return BackendState(self.name, self.title, found.works, found.version, detail, found.install)

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        from .options import SophgoOptions
        from .profile import profile_model

        return profile_model(model, SophgoOptions.of(options), shapes=shapes or {})
