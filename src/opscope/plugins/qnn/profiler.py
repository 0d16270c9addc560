"""HtpProfiler: the profiler as a class, for scripts that profile a model and look at its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ...core.provenance import Provenance
from ...recording.finding import Finding
from ...recording.recording import Metric, Recording

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]


class HtpMetrics(Mapping[str, float | None]):
    """Figures by name; None is unknown, and `why` says the reason. `recording` has everything else."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._metrics: dict[str, Metric] = {metric.name: metric for metric in recording.metrics}

    def __getitem__(self, name: str) -> float | None:
        return self._metrics[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def provenance(self, name: str) -> Provenance | None:
        return self._metrics[name].provenance

    def why(self, name: str) -> str:
        return self._metrics[name].note

    @property
    def node_times_us(self) -> dict[str, float | None]:
        """Node → time on the wall."""
        return {n.name: None if n.time_ns is None else n.time_ns / 1e3 for n in self.recording.ops}

    def write_chrome_trace(self, path: str | Path) -> None:
        from ...core.files import write_bytes
        from ...workflows.profiling import chrome_trace

        write_bytes(Path(path), chrome_trace(self.recording))

    def write_qhas(self, path: str | Path) -> None:
        """JSON, or a page when the name ends in .html."""
        from ...core.files import write_bytes
        from .qhas_files import analysis_summary

        form = "html" if str(path).endswith(".html") else "json"
        write_bytes(Path(path), analysis_summary(self.recording, form))


class HtpProfiler:
    """Profiles models with the vendor's compiler and performance model, and runs them in emulation.

    Args:
        profiling_level: basic, detailed, backend, client, linting or optrace.
        perf_profile: balanced, high_performance, extreme_performance or burst; has no effect on an estimate.
        enable_optrace: profile at the level that has every kernel, whatever `profiling_level` says.
        soc: part by name, marketing name or id.
        options: further options of the backend by name, such as {"vtcm-mb": 4}.
    """

    def __init__(
        self,
        profiling_level: str = "detailed",
        perf_profile: str = "balanced",
        enable_optrace: bool = False,
        *,
        soc: str = "SA8255",
        options: Mapping[str, str | int | bool | None] | None = None,
    ) -> None:
        level = "optrace" if enable_optrace else profiling_level
        self.options = {"soc": soc, "profiling-level": level, "perf-profile": perf_profile, **(options or {})}

    def profile_model_execution(
        self, model_path: str | Path, inputs: Mapping[str, Array] | None = None, backend: str = "htp"
    ) -> tuple[dict[str, Array], HtpMetrics]:
        """Outputs of one emulated run, and metrics of the vendor's model; the emulation's timing is not among them.

        Args:
            model_path: path of an ONNX file.
            inputs: array per input of the model; random ones when not given.
            backend: htp.
        """
        from ...workflows import profiling

        if backend != "htp":
            raise UsageError(f"backend {backend!r}: HtpProfiler profiles on htp; expected htp")
        recording = profiling.profile(Path(model_path), backend=backend, options=self.options)
        return self._outputs(Path(model_path), inputs), HtpMetrics(recording)

    def analyze_bottlenecks(self, metrics: HtpMetrics) -> tuple[Finding, ...]:
        """What holds the model back, costliest first."""
        return metrics.recording.causes

    def _outputs(self, model: Path, inputs: Mapping[str, Array] | None) -> dict[str, Array]:
        import numpy as np

        from ...workflows import profiling

        with TemporaryDirectory(prefix="opscope-htp-") as name:
            given, made = Path(name) / "inputs.npz", Path(name) / "outputs.npz"
            if inputs:
                np.savez(given, **{key: np.asarray(value) for key, value in inputs.items()})  # type: ignore[arg-type]
            given_file = given if inputs else None
            profiling.execute(model, made, backend="htp", options=self.options, inputs=given_file)
            with np.load(made) as arrays:
                return {key: arrays[key] for key in arrays.files}
