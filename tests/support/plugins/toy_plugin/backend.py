"""The toy's runtime."""

from collections.abc import Mapping
from pathlib import Path

from opscope.backends.registry import BackendState
from opscope.core.manifest import Value
from opscope.core.provenance import Provenance
from opscope.recording.recording import Metric, Recording
from opscope.recording.summary import Latency


class ToyBackend:
    """Takes as many nanoseconds as its option says."""

    name = "toy"

    def state(self) -> BackendState:
        return BackendState(self.name, "A toy runtime", True, "1.0", "always works")

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        del shapes
        nanoseconds = int(options.get("speed") or 1)
        return Recording(
            maker=self.name,
            provenance=Provenance.MEASURED,
            model=str(model),
            target="toy-chip",
            options=dict(options),
            producer={"toy": "1.0"},
            latency=Latency(nanoseconds, nanoseconds, nanoseconds, Provenance.MEASURED),
            metrics=(Metric("speed", nanoseconds, "1"),),
        )
