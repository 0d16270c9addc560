"""Session: a model on the simulated device, from Python. A face on `workflows`; may be used from several threads.

Methods, keywords and units are those of the vendor's Python interface (quic/cloud-ai-sdk-pages, "qaic package").
"""

from __future__ import annotations

import cProfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from io import StringIO
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.totals.summarise import summarise_device
from ...analysis.totals.work import InferenceWork
from ...core.errors import UsageError, printable
from ...core.files import write_whole
from ...device.host.inputs import Array, check_inputs, port_types
from ...machine.target import Target
from ...options import RunOptions, chosen, part_of
from ...program.file_names import PROGRAM_FILE, network_name
from ...program.program import THREAD_LEVEL
from ...program.specializations import choose_specialization
from ...recording.trace import Trace
from ...views.text.opstats_text import OpstatsText
from ...views.timeline.chrome_trace import ChromeTrace
from ...views.timeline.perfetto_trace import PerfettoTrace
from ...workflows import execution
from ...workflows.execution import Execution, Sample
from ...workflows.program_recording import head_of
from .flags import compile_programs
from .session_options import SessionOptions, compiler_words, our_names, read_options, session_call

if TYPE_CHECKING:
    from ...device.host.outputs import Output
    from ...device.host.reference import Reference
    from ...program.program import Program

_Calls = Mapping[tuple[str, int, str], tuple[int, int, float, float, object]]
_MOST_WATCHED = 10_000  # calls of `run`
_LEAST_SHOWN_S = 1e-6  # of a function's own time
_OF_BENCHMARKS = {"activations", "set_size", "num_iter", "seed"}
_METRIC_LINES = {  # as the vendor's interface prints them
    "min_latency": "Minimum latency observed",
    "max_latency": "Maximum latency observed",
    "avg_latency": "Average latency / inference time observed is",
    **{
        f"P{number}": f"P{number} / {share}% of inferences observed latency less than"
        for number, share in ((25, "25"), (50, "50"), (75, "75"), (90, "90"), (99, "99"), (999, "99.9"))
    },
    "total_inference_time": "Sum of all the inference times",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SessionTrace(Trace):
    """A trace that can be written down, beside the tables of the device."""

    execution: Execution
    sample: Sample

    def __repr__(self) -> str:
        length_us = int(self.spans["end_ns"].max(initial=0)) / 1e3
        program = self.program
        place = f"{self.execution.loaded.model.stem} on {program.target}, {program.devices} × {program.cores} cores"
        return f"<SessionTrace {place}: {len(self.spans):,} spans in {length_us:,.1f} us, {self.provenance}>"

    __str__ = __repr__

    def write_trace(self, path: str | Path) -> Path:
        """Write the timeline: Chrome JSON for a name that ends in .json, Perfetto's own form for one in .pftrace."""
        suffix, head = Path(path).suffix, head_of(self.execution.loaded.program)
        if suffix not in (".json", ".pftrace"):
            problem = f"{printable(suffix) or 'no suffix'} says no form of a timeline; expected .json or .pftrace"
            raise UsageError(f"{printable(str(path))}: {problem}")
        view = PerfettoTrace(head) if suffix == ".pftrace" else ChromeTrace(head)
        write_whole(Path(path), lambda out: view.render(self, out))
        return Path(path)

    def write_summary(self, path: str | Path) -> Path:
        """Write the op tables of every device, as `opstats --summary` does."""
        text = StringIO()
        for capture, trace in self.execution.device_traces(self.sample):
            network = network_name(self.program, capture.device)
            work = InferenceWork.of(trace, self.execution.program_index)
            OpstatsText().render(summarise_device(work, capture, network=network), text)
        write_whole(Path(path), lambda out: out.write(text.getvalue().encode()))
        return Path(path)

    @property
    def program(self) -> Program:
        """What ran."""
        return self.execution.loaded.program


class Session:
    """A compiled model that can be run, timed and profiled.

    Args:
        model: path of a model file, of a folder that `opscope compile` wrote, or of the .bin file in it.
        target: name from the catalogue, TOML file or Target, for a model file; default: that of `qaic-compile`.
        options: how to compile, and what to run.
        model_path: the same as model, as the vendor has it.
        qpc: a compiled program, instead of a model.
        output_dir: folder for what is compiled.
        options_path: file with options, one `name: value` a line; keywords come before it.
        enable_profiling: note what calls of `run` do on the host, for `print_profile_data`.
        enable_metrics: as by default; excludes enable_profiling, as the vendor has it.
        named: options by name, ours or the vendor's (aic_num_cores, num_activations, onnx_define_symbol, …).

    Times are simulated; outputs are those of the original model on a reference runtime. Of a network with several
    specializations, the shapes of inputs choose the one that runs.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        target: str | Path | Target | None = None,
        options: SessionOptions | None = None,
        *,
        model_path: str | Path | None = None,
        qpc: str | Path | None = None,
        output_dir: str | Path | None = None,
        options_path: str | Path | None = None,
        enable_profiling: bool = False,
        enable_metrics: bool = False,
        **named: object,
    ) -> None:
        """Load a compiled program, or compile a model for `target`."""
        if enable_profiling and enable_metrics:
            raise UsageError("enable_profiling and enable_metrics exclude each other; expected one of them")
        places = [Path(each) for each in (model, model_path, qpc) if each is not None]
        if len(places) != 1:
            raise UsageError("model (or model_path) and qpc: expected one of them")
        (place,) = places
        listed = {} if options_path is None else our_names(read_options(Path(options_path)))
        given = listed | our_names(named)
        folder = given.pop("output_dir", None) if output_dir is None else output_dir
        words = compiler_words(given)
        choice = chosen(SessionOptions, options, given)
        self._options = part_of(RunOptions, choice)
        self._calls: list[_Calls] | None = [] if enable_profiling else None
        if qpc is not None or place.is_dir() or place.suffix == Path(PROGRAM_FILE).suffix:
            self._programs = execution.load_programs(place.parent if place.name == PROGRAM_FILE else place)
        else:
            named_target = str(target) if isinstance(target, Path) else target
            output = None if folder is None else Path(str(folder))
            call = session_call(place, named_target, choice, words, output)
            made = compile_programs(call)
            self._programs = [execution.loaded_from(compiled.program, place) for _, compiled in made]
        self._lock, self._profiling = Lock(), Lock()
        self._open = True
        self._latencies_ns: list[int] = []
        self._lone: dict[int, Execution] = {}  # by specialization: one inference at a time
        self._reference: Reference | None = None

    @property
    def program(self) -> Program:
        """What runs on the device; of several specializations, the first."""
        return self._programs[0].program

    @property
    def model_input_shape_dict(self) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
        """Shape and type of every input, by name."""
        return port_types(self.program.inputs)

    @property
    def model_output_shape_dict(self) -> dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]:
        """Shape and type of every output, by name."""
        return port_types(self.program.outputs)

    def backend_options(self) -> dict[str, object]:
        """Options that `update_backend_options` can change, in the vendor's names."""
        return {"num_activations": self._options.activations, "set_size": self._options.set_size, "dev_id": 0}

    def update_backend_options(self, **named: object) -> None:
        """Change what benchmarks run: num_activations, set_size, num_iters, seed."""
        given = our_names(named)
        strange = [name for name in named if our_names({name: None}).keys() - _OF_BENCHMARKS]
        if strange:
            expected = "num_activations, set_size, num_iters, seed, dev_id"
            raise UsageError(f"option {printable(strange[0])}: not one of benchmarks; expected {expected}")
        self._options = chosen(RunOptions, self._options, given)

    def setup(self) -> None:
        """Load the reference runtime and simulate the program now, rather than on the first call."""
        self._execution(0)
        self._model()

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Output]:
        """Outputs by name, for all inputs by name; counts as one inference in the metrics.

        An output that is a sequence or a map is a list or a dictionary, as ONNX Runtime returns it.
        """
        number = self._specialization(inputs)
        given = check_inputs(self._programs[number].program, inputs)
        lone, model = self._execution(number), self._model()
        outputs = self._run(model, given)
        with self._lock:
            self._latencies_ns.append(lone.lone_latency_ns(len(self._latencies_ns)))
        return outputs

    def _specialization(self, inputs: Mapping[str, Array] | None) -> int:
        """The number of the program that inputs are for."""
        if inputs is None or len(self._programs) == 1:
            return 0
        shapes = {name: tuple(array.shape) for name, array in inputs.items()}
        return choose_specialization([each.program for each in self._programs], shapes, source="run")

    def _checked(self, inputs: Mapping[str, Array] | None) -> int:
        """The same, of inputs that the program has, in its shapes and types."""
        number = self._specialization(inputs)
        if inputs is not None:
            check_inputs(self._programs[number].program, inputs)
        return number

    def _run(self, model: Reference, given: Mapping[str, Array]) -> dict[str, Output]:
        if self._calls is None:
            return model.run(given)
        with self._profiling:  # one profiler watches one thread at a time
            watcher = cProfile.Profile()
            outputs = watcher.runcall(model.run, given)
            if len(self._calls) < _MOST_WATCHED:
                self._calls.append(_stats_of(watcher))
            return outputs

    def run_benchmark(
        self,
        num_inferences: int | None = None,
        inf_time: float | None = None,
        input_dict: Mapping[str, Array] | None = None,
    ) -> tuple[int, float | None, float, int]:
        """Inferences completed, inferences per second (batch counted), seconds, batch: all simulated.

        So many inferences per activation, or for so many seconds. Times do not depend on the values of inputs; their
        shapes choose the specialization. There is no rate where an op of the program has no known cost; the seconds
        are what the others take.
        """
        self._check_open()
        if num_inferences is not None and inf_time is not None:
            raise UsageError("num_inferences and inf_time exclude each other; expected one of them")
        options = self._options
        if inf_time is not None:
            options = chosen(RunOptions, options, {"num_iter": None, "time": inf_time})
        elif num_inferences is not None:
            options = chosen(RunOptions, options, {"num_iter": num_inferences})
        times, statistics = execution.benchmark(self._programs[self._checked(input_dict)], options)
        with self._lock:
            self._latencies_ns += times.latencies_ns().tolist()
        return statistics.count, statistics.inferences_per_s, statistics.duration_ns / 1e9, statistics.batch

    def profile(self, input_dict: Mapping[str, Array] | None = None) -> SessionTrace:
        """One inference in full: everything that every device did, under the stages of the host.

        `write_trace` and `write_summary` of the result write it down. Shapes of inputs choose the specialization.
        """
        if self.program.stats.level < THREAD_LEVEL:
            raise UsageError(
                f"stats level {self.program.stats.level}: the device writes nothing down; expected stats_level=70"
            )
        lone = self._execution(self._checked(input_dict))
        sample, trace = execution.profile_once(lone)
        parts = {each.name: getattr(trace, each.name) for each in fields(trace)}
        return SessionTrace(**parts, execution=lone, sample=sample)

    def get_metrics(self) -> dict[str, float]:
        """Latencies of all inferences so far, in seconds of simulated time, as the application sees them.

        Where an op of the program has no known cost, there are none: the number of inferences is all.
        """
        from ...device.host.statistics import latency_metrics
        from ...recording.unknown import unknown_of

        with self._lock:
            if unknown_of(self.program.ops):
                return {"num_of_inferences": len(self._latencies_ns)}
            return latency_metrics(np.array(self._latencies_ns, np.int64))

    def print_metrics(self) -> None:
        """Print `get_metrics`, in the vendor's lines."""
        found = self.get_metrics()
        print(f"Number of inferences utilized for calculation are {found['num_of_inferences']:.0f}")  # noqa: T201
        for name, words in _METRIC_LINES.items():
            if name in found:
                print(f"{words} {found[name]:.9f} s")  # noqa: T201 - what it is for
        if len(found) > 1:
            print(f"All times are simulated on {self.program.target}.")  # noqa: T201

    def print_profile_data(self, n: int = 1) -> None:
        """Print what the host did in the first `n` calls of `run`, in seconds: measured, of this machine."""
        if self._calls is None:
            raise UsageError("no calls were watched; expected a session with enable_profiling=True")
        if not isinstance(n, int) or n < 1:
            raise UsageError(f"n {printable(repr(n))}: expected a whole number of calls, at least 1")
        header = f"{'File-Line-Function':<60} | {'num calls':>9} | {'func time':>10} | {'tot time':>10}"
        for number, calls in enumerate(self._calls[:n]):
            print(f"{'' if number == 0 else chr(10)}iteration {number}, measured on this machine\n{header}")  # noqa: T201
            seen = {place: row for place, row in calls.items() if row[2] >= _LEAST_SHOWN_S}
            for (file, line, name), (_, count, own, whole, _) in sorted(seen.items(), key=lambda row: -row[1][2]):
                place = f"{Path(file).name}-{line}-{name}"
                print(f"{place[:60]:<60} | {count:>9} | {own:>10.6f} | {whole:>10.6f}")  # noqa: T201 - what it is for
            if len(seen) < len(calls):
                print(f"… and {len(calls) - len(seen)} functions of less than a microsecond each")  # noqa: T201

    def reset(self) -> None:
        """Let go of what is loaded, which the next call loads again, and forget the metrics and the calls."""
        with self._lock:
            self._latencies_ns.clear()
            self._lone.clear()
            self._reference = None
            self._calls = None if self._calls is None else []

    def close(self) -> None:
        """Let go of the reference runtime; a closed session only gives metrics."""
        with self._lock:
            self._open, self._reference = False, None
            self._lone.clear()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _execution(self, number: int) -> Execution:
        self._check_open()
        with self._lock:
            if number not in self._lone:
                options = replace(self._options, num_iter=1, activations=1, set_size=1)
                self._lone[number] = Execution(self._programs[number], options)
            return self._lone[number]

    def _model(self) -> Reference:
        self._check_open()
        with self._lock:
            if self._reference is None:
                self._reference = execution.reference_of(self._programs[0])
            return self._reference

    def _check_open(self) -> None:
        if not self._open:
            raise UsageError("the session is closed; expected an open one")


def _stats_of(calls: cProfile.Profile) -> _Calls:
    """Function → calls, times of its own and with what it calls, in seconds."""
    calls.create_stats()
    found: _Calls = calls.stats
    return found
