"""Session: a model on the simulated device, from Python. A face on `workflows`; may be used from several threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import UsageError
from ...core.files import PROGRAM_FILE
from ...machine.target import Target
from ...options import CompileOptions, RunOptions, Shapes, chosen, part_of
from ...program.program import OP_LEVEL, THREAD_LEVEL
from ...workflows import execution
from ...workflows.execution import Execution
from ...workflows.model_compiler import compile_model

if TYPE_CHECKING:
    from ...device.host.inputs import Array
    from ...device.host.outputs import Output
    from ...device.host.reference import Reference
    from ...program.program import Program
    from ...recording.trace import Trace


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session compiles, and what it runs; fields mean what they mean in CompileOptions and RunOptions."""

    cores: int | None = None
    devices: int = 1
    batch: int | None = None
    shapes: Shapes | None = None
    precision: str | None = None
    stats_level: int = OP_LEVEL
    ddr_stats: bool = False
    pmu_recipe: str | None = None
    pmu_events: str | None = None
    stats_batchsize: int | None = None
    activations: int = 1  # these and what follows: of benchmarks
    set_size: int = 10
    num_iter: int = 40
    seed: int = 0


class Session:
    """A compiled model that can be run, timed and profiled.

    Args:
        model: path of a model file, or of a folder that `opscope compile` wrote.
        target: name from the catalogue, TOML file or Target; needed for a model file, and only then.
        options: how to compile, and what to run.
        named: options by name.

    Times are simulated; outputs are those of the original model on a reference runtime.
    """

    def __init__(
        self,
        model: str | Path,
        target: str | Path | Target | None = None,
        options: SessionOptions | None = None,
        **named: object,
    ) -> None:
        """Load a compiled program, or compile a model for `target`."""
        choice = chosen(SessionOptions, options, named)
        self._options = part_of(RunOptions, choice)
        place = Path(model)
        if place.is_dir() or place.name == PROGRAM_FILE:
            self._loaded = execution.load_program(place)
        else:
            compiled = compile_model(place, _given(target, place), part_of(CompileOptions, choice))
            self._loaded = execution.loaded_from(compiled.program, place)
        self._lock = Lock()
        self._open = True
        self._latencies_ns: list[int] = []
        self._lone: Execution | None = None  # one inference at a time
        self._reference: Reference | None = None

    @property
    def program(self) -> Program:
        """What runs on the device."""
        return self._loaded.program

    def setup(self) -> None:
        """Load the reference runtime and simulate the program now, rather than on the first call."""
        self._execution()
        self._model()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        """Outputs by name, for all inputs by name; counts as one inference in the metrics.

        An output that is a sequence or a map is a list or a dictionary, as ONNX Runtime returns it.
        """
        from ...device.host.inputs import check_inputs

        given = check_inputs(self.program, inputs)
        lone, model = self._execution(), self._model()
        outputs = model.run(given)
        with self._lock:
            self._latencies_ns.append(lone.lone_latency_ns(len(self._latencies_ns)))
        return outputs

    def run_benchmark(self) -> tuple[int, float | None, float, int]:
        """Inferences completed, inferences per second (batch counted), seconds, batch: all simulated.

        There is no rate where an op of the program has no known cost; the seconds are what the others take.
        """
        self._check_open()
        times, statistics = execution.benchmark(self._loaded, self._options)
        with self._lock:
            self._latencies_ns += times.latencies_ns().tolist()
        return statistics.count, statistics.inferences_per_s, statistics.duration_ns / 1e9, statistics.batch

    def profile(self) -> Trace:
        """One inference in full: everything that every device did, under the stages of the host."""
        if self.program.stats.level < THREAD_LEVEL:
            raise UsageError(
                f"stats level {self.program.stats.level}: the device writes nothing down; expected stats_level=70"
            )
        return execution.profile_once(self._execution())

    def get_metrics(self) -> dict[str, float]:
        """Latencies of all inferences so far, in milliseconds of simulated time, as the application sees them.

        Where an op of the program has no known cost, there are none: the number of inferences is all.
        """
        from ...device.host.statistics import latency_metrics
        from ...recording.unknown import unknown_of

        with self._lock:
            if unknown_of(self.program.ops):
                return {"num_of_inferences": len(self._latencies_ns)}
            return latency_metrics(np.array(self._latencies_ns, np.int64))

    def print_metrics(self) -> None:
        """Print `get_metrics`."""
        for name, value in self.get_metrics().items():
            shown = f"{value:.0f}" if name == "num_of_inferences" else f"{value:.3f} ms (simulated)"
            print(f"{name:<22}{shown}")  # noqa: T201 - what it is for

    def reset(self) -> None:
        """Forget the metrics."""
        with self._lock:
            self._latencies_ns.clear()

    def close(self) -> None:
        """Let go of the reference runtime; a closed session only gives metrics."""
        with self._lock:
            self._open, self._lone, self._reference = False, None, None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _execution(self) -> Execution:
        self._check_open()
        with self._lock:
            if self._lone is None:
                options = replace(self._options, num_iter=1, activations=1, set_size=1)
                self._lone = Execution(self._loaded, options, device_cores=None)
            return self._lone

    def _model(self) -> Reference:
        self._check_open()
        with self._lock:
            if self._reference is None:
                self._reference = execution.reference_of(self._loaded)
            return self._reference

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("the session is closed; expected an open one")


def _given(target: str | Path | Target | None, model: Path) -> str | Path | Target:
    if target is None:
        raise UsageError(f"{model}: no target to compile for; expected target=NAME, or a folder with a program")
    return target
