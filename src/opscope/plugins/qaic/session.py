"""Session: a model on the simulated device, from Python. A face on `workflows`; may be used from several threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import UsageError
from ...core.files import PROGRAM_FILE
from ...estimate.machines import with_precision
from ...machine.target import Target
from ...program.program import THREAD_LEVEL
from ...workflows import execution
from ...workflows.compiling import Request, compile_request
from ...workflows.execution import Execution

if TYPE_CHECKING:
    from ...device.host.inputs import Array
    from ...device.host.reference import Reference
    from ...program.program import Program
    from ...recording.trace import Trace


class Session:
    """A compiled model that can be run, timed and profiled.

    Args:
        model: path of a model file, or of a folder that `opscope compile` wrote.
        target: name from the catalogue, TOML file or Target; needed for a model file, and only then.
        cores: cores to use per device; all of them when not given.
        devices: devices to use.
        batch: leading dimension of every input.
        shapes: input name → shape, for dimensions the model leaves open.
        precision: data type that float tensors run as on the device.
        stats_level: what the device writes down; 70 is every operator.
        ddr_stats: count DDR traffic per core.
        pmu_recipe: name of a set of PMU events.
        pmu_events: comma list of PMU event numbers, hexadecimal.
        stats_batchsize: inferences in one batch; the model's batch when not given.
        activations: instances of the program on the device, in benchmarks.
        set_size: inferences of an activation on their way at once, in benchmarks.
        num_iter: inferences per activation of a benchmark.
        seed: chooses everything that varies.

    Times are simulated; outputs are those of the original model on a reference runtime.
    """

    def __init__(
        self,
        model: str | Path,
        target: str | Path | Target | None = None,
        *,
        cores: int | None = None,
        devices: int = 1,
        batch: int | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        precision: str | None = None,
        stats_level: int = 70,
        ddr_stats: bool = False,
        pmu_recipe: str | None = None,
        pmu_events: str | None = None,
        stats_batchsize: int | None = None,
        activations: int = 1,
        set_size: int = 10,
        num_iter: int = 40,
        seed: int = 0,
    ) -> None:
        from ...device.host.options import RunOptions

        self._options = RunOptions(num_iter, activations=activations, set_size=set_size, seed=seed)
        place = Path(model)
        if place.is_dir() or place.name == PROGRAM_FILE:
            self._loaded = execution.load_program(place)
        else:
            request = Request(
                model=place,
                target=with_precision(_given(target, place), precision),
                cores=cores,
                devices=devices,
                batch=batch,
                shapes=shapes,
                stats_level=stats_level,
                ddr_stats=ddr_stats,
                pmu_recipe=pmu_recipe,
                pmu_events=pmu_events,
                stats_batchsize=stats_batchsize,
                parallel="tensor",
                network=None,
            )
            self._loaded = execution.loaded_from(compile_request(request, None, None).program, place)
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

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name, for all inputs by name; counts as one inference in the metrics."""
        from ...device.host.inputs import check_inputs

        given = check_inputs(self.program, inputs)
        lone, model = self._execution(), self._model()
        outputs = model.run(given)
        with self._lock:
            self._latencies_ns.append(lone.lone_latency_ns(len(self._latencies_ns)))
        return outputs

    def run_benchmark(self) -> tuple[int, float, float, int]:
        """Inferences completed, inferences per second (batch counted), seconds, batch: all simulated."""
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
        """Latencies of all inferences so far, in milliseconds of simulated time, as the application sees them."""
        from ...device.host.statistics import latency_metrics

        with self._lock:
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
                options = replace(self._options, iterations=1, activations=1, set_size=1)
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
