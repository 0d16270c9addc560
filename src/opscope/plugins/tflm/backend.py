"""TensorFlow Lite Micro itself, on this machine: does it run the file, what are the outputs, what does the arena take.

The interpreter of the Python package runs in a process of its own. It has the reference kernels and pointers of 8
bytes; times would be of this CPU and say nothing of a board, so that there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ...backends.host_cpu import ports_of
from ...backends.measuring import filled_options
from ...backends.process import Ended, positive, run_worker, work_folder
from ...backends.registry import BackendState, package_state
from ...core.errors import ModelError, UsageError, printable
from ...core.manifest import Value
from .manifest import BACKEND

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from ...recording.recording import Metric, OpRecord, Recording

PACKAGE = "tflite-micro"
INSTALL = "pip install 'opscope[tflm]'"
_WORKER = "opscope.plugins.tflm.worker"
_LONGEST_S = 120
_LEAST_ARENA = 1 << 20
_MOST_ARENA = (1 << 31) - (1 << 20)  # its sizes are C integers
_WHY = re.compile(r"Didn't find op|Failed to get registration|not supported|failed to prepare|was not true|Unsupported")


class TflmBackend:
    """Runs the model once."""

    name = BACKEND.name
    title = BACKEND.title

    def state(self) -> BackendState:
        """Looks without loading the library."""
        return package_state(BACKEND, PACKAGE, INSTALL, lambda: "runs TFLite models in the interpreter: outputs, arena")

    def profile(
        self, model: Path, options: Mapping[str, Value], *, shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> Recording:
        if find_spec("tflite_micro") is None:
            raise UsageError(f"backend tflm: the package {PACKAGE} is not installed; install it: {INSTALL}")
        if shapes:
            raise UsageError("backend tflm: takes the shapes of the file; expected no --shape and no --batch")
        filled = filled_options(self.name, BACKEND.options, options)
        return _profile(model, seed=positive("seed", filled["seed"], least=0, most=2**32 - 1))


def _profile(model: Path, *, seed: int) -> Recording:
    from ...backends.model_facts import with_model
    from ...core.provenance import Provenance
    from ...readers import read_model
    from ...recording.recording import Recording
    from .interpreter import arena_bytes
    from .logs import allocations

    graph = read_model(model)
    if graph.framework != "TensorFlow Lite":
        raise ModelError(str(model), "", f"an {graph.framework} model; backend tflm runs TFLite; expected such a file")
    request = {
        "model": str(model.resolve()),
        "ports": ports_of(graph, str(model)),
        "outputs": len(graph.outputs),
        "seed": seed,
        "arena_bytes": min(max(4 * arena_bytes(graph), _LEAST_ARENA), _MOST_ARENA),
    }
    with work_folder("tflm") as folder:
        answer, ended = run_worker(_WORKER, request, folder, longest_s=_LONGEST_S)
    if answer is None or not answer["ok"]:
        raise ModelError(str(model), "", f"TensorFlow Lite Micro does not run it: {_reason(answer, ended)}")
    differences = cast("Sequence[float] | None", answer["differences"])
    result = Recording(
        maker="tflm",
        provenance=Provenance.EMULATED,
        ops=tuple(_ops(graph)),
        metrics=tuple(_metrics(allocations(ended.errors + ended.output), differences)),
        notes=tuple(_notes(differences, seed)),
        model=str(model),
        network=model.stem,
        target="tflm",
        options={"seed": seed},
        producer=cast("Mapping[str, str]", answer["producer"]),
        devices=1,
        cores=1,
        inferences=1,
    )
    return with_model(result, graph)


def _reason(answer: Mapping[str, object] | None, ended: Ended) -> str:
    """The interpreter's own words, which it prints before it gives up."""
    said = [line.strip() for line in (ended.errors + ended.output).splitlines() if _WHY.search(line)]
    words = "; ".join(said[:2]) or (ended.how if answer is None else str(answer["problem"]))
    return printable(words, 400)


def _ops(graph: Graph) -> Iterator[OpRecord]:
    from ...recording.recording import OpRecord, Placed

    for op in graph.ops:
        yield OpRecord(op.name, type=op.type, kind=op.kind, location=op.location, placed=Placed.CPU)


def _metrics(sizes: Mapping[str, int], differences: Sequence[float] | None) -> Iterator[Metric]:
    from ...recording.recording import Metric

    for name, size in sizes.items():
        yield Metric(name, size, "bytes", note="of the interpreter here: reference kernels, pointers of 8 bytes")
    for number, difference in enumerate(differences or ()):
        yield Metric(f"output {number}: largest difference from LiteRT", difference, "1")


def _notes(differences: Sequence[float] | None, seed: int) -> Iterator[str]:
    yield "the interpreter ran on this CPU: what it computes is the board's, its time is not, and is not shown"
    yield f"inputs are random (seed {seed})"
    if differences is None:
        yield "outputs are not compared: ai-edge-litert is not installed"
