"""Synaptics Torq through its own compiler: the schedule of int8 models, and their outputs by its simulator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ....backends import environments
from ....backends.registry import BackendState
from ....core.manifest import Value
from ..manifest import BACKEND, ENVIRONMENT, PARTS
from .options import TorqOptions

if TYPE_CHECKING:
    from ....recording.recording import Recording

Shapes = Mapping[str, tuple[int, ...]]


class TorqBackend:
    """Compiles for a part, and gives the compiler's own schedule."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Looks, and starts nothing."""
        toolchain = environments.find(ENVIRONMENT.name)
        if toolchain is None:
            detail = f"{ENVIRONMENT.programs[0]} is not found"
            return BackendState(self.name, self.title, False, "", detail, f"opscope setup {ENVIRONMENT.name}")
        detail = f"schedules for {' and '.join(PARTS)} from TFLite and MLIR; outputs by its simulator; no device needed"
        return BackendState(self.name, self.title, True, environments.version(toolchain), detail)

    def profile(self, model: Path, options: Mapping[str, Value], *, shapes: Shapes | None = None) -> Recording:
        from .profile import profile_model

        return profile_model(model, TorqOptions.of(options), shapes=shapes or {})

    def execute(
        self,
        model: Path,
        options: Mapping[str, Value],
        output: Path,
        *,
        inputs: Path | None = None,
        shapes: Shapes | None = None,
    ) -> None:
        """Run once in the vendor's simulator; `output` gets the arrays. Functional only: it has no time."""
        from .execution import execute_model

        execute_model(model, TorqOptions.of(options), shapes=shapes or {}, inputs=inputs, output=output)
