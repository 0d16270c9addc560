"""`opscope profile`, `whatif` and `doctor` behind the api: wires backends, importers and the files of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..backends import registry as backends
from ..backends.model_facts import with_model
from ..backends.registry import BackendState
from ..core.converting_options import DATA, PRECISION
from ..core.errors import ModelError, UsageError, printable
from ..core.files import sha256_of, write_bytes
from ..core.manifest import MODULES, Can, Value
from ..core.plugins import load_place, manifests
from ..readers import is_torch_model, model_format, unpacked
from ..recording.recording import Recording

if TYPE_CHECKING:
    from ..conversion.convert import Converted
    from ..readers.torch import TorchModel
    from ..recording.what_if import WhatIf

PROFILING = "profiling"  # what `step` is told while a backend is at work
Shapes = Mapping[str, tuple[int, ...]]


def profile(
    model: Path | TorchModel,
    *,
    backend: str,
    options: Mapping[str, Value],
    shapes: Shapes | None = None,
    advise: bool = False,
    step: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Recording:
    """Profile a model on a backend, converted to what it takes; with `advise`, causes cite what-if points."""
    from ..conversion.convert import converted  # not for the simulated device

    what_ifs = backends.load_what_ifs(backend, Can.ADVISE) if advise else None  # one that cannot says so at once
    entry = backends.find(backend)
    if MODULES in entry.models:
        if step is not None:
            step(PROFILING)
        return _of_module(model, backend, options, shapes or {})
    with unpacked(model, shapes) as file, converted(file, entry, options, shapes=shapes, tell=step) as given:
        if step is not None:
            step(PROFILING)
        result = backends.load(backend).profile(given.file, given.options, shapes=given.shapes)
        if given.steps or result.batch is None:  # else the backend has read this very model
            result = _with_graph(result, file, shapes)
        if what_ifs is not None:
            result = what_ifs.advise(given.file, result, given.options, shapes=given.shapes or {}, progress=progress)
        if given.steps:
            result = _of_converted(result, given, options)
    return result if given.file == model else replace(result, model=str(model))


def _of_module(model: Path | TorchModel, backend: str, options: Mapping[str, Value], shapes: Shapes) -> Recording:
    """A model of PyTorch profiled as it is; a file of another form is refused."""
    if isinstance(model, Path) and not is_torch_model(model):
        problem = f"is {model_format(model).name}, and backend {backend} runs modules of PyTorch"
        raise ModelError(str(model), "", f"{problem}; expected package.module:factory, hf:FOLDER or a .pt2 file")
    from ..readers.torch import load

    given = load(model, weights=True) if isinstance(model, Path) else model
    strange = [name for name in shapes if name not in given.input_names()]
    if strange:
        names = ", ".join(given.input_names()) or "none: it runs on the inputs that it was exported with"
        raise UsageError(f"--shape {printable(strange[0])}=…: no input of {given}; expected one of {names}")
    found = backends.load_modules(backend).profile_module(given.with_shapes(shapes, None), options)
    return replace(found, model=str(model))


def _of_converted(result: Recording, given: Converted, options: Mapping[str, Value]) -> Recording:
    """What was found out with a converted model: how it was made, and its files."""
    chosen = {name: options[name] for name in (PRECISION, DATA) if options.get(name)}
    return replace(
        result,
        options={**result.options, **chosen},
        notes=(*given.notes, *result.notes),
        caveats=(*given.caveats, *result.caveats),
        details={**result.details, "conversion": given.details},
        files={**result.files, **given.kept},
    )


def what_if(
    model: Path,
    axes: Mapping[str, Sequence[str]],
    *,
    backend: str | None = None,
    shapes: Shapes | None = None,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> WhatIf:
    """The grid of all combinations, each compiled by the vendor's own compiler; by default the first that can."""
    able = backends.names(Can.WHAT_IF)
    if backend is None and not able:
        raise UsageError("what-if: no backend here has one; expected a plug-in that does (see docs/plugins.md)")
    what_ifs = backends.load_what_ifs(backend or able[0], Can.WHAT_IF)
    with unpacked(model, shapes) as file:
        result = what_ifs.grid(file, axes, shapes=shapes or {}, jobs=jobs, progress=progress)
    return result if file == model else _of_model(result, file, model)


def _of_model(result: WhatIf, file: Path, model: Path) -> WhatIf:
    """What was found out with an unpacked model, said of the file that it was in."""
    points = tuple(
        replace(
            point,
            recording=point.recording and replace(point.recording, model=str(model)),
            problem=point.problem.replace(str(file), str(model)),
        )
        for point in result.points
    )
    return replace(result, model=str(model), points=points)


def execute(
    model: Path,
    output: Path,
    *,
    backend: str,
    options: Mapping[str, Value],
    inputs: Path | None = None,
    shapes: Shapes | None = None,
) -> None:
    """Run a model on a backend for its outputs; `inputs` and `output` are archives of arrays (.npz)."""
    with unpacked(model, shapes) as file:
        backends.load_executing(backend).execute(file, options, output, inputs=inputs, shapes=shapes)


def backend_states() -> tuple[BackendState, ...]:
    """Every backend that is known, and whether it works here."""
    from .own_backends import own_states

    return (*own_states(), *map(backends.state_now, backends.names()))


def chrome_trace(recording: Recording) -> bytes:
    """The timeline for chrome://tracing and Perfetto."""
    from ..analysis.run_analysis import RunAnalysis
    from ..recording.build import to_run
    from .record import trace_json

    if not len(recording.trace.spans):
        raise UsageError(
            f"--output-chrome-trace: backend {recording.maker} has no timeline of {recording.target}; expected a part "
            "that it knows (see `opscope doctor`), or kernels that can be timed one by one"
        )
    return trace_json(RunAnalysis(to_run(recording, command=(), created="", sha256=None)))


def summary_file(recording: Recording, name: str, form: str) -> bytes:
    """A file that a plug-in makes of a profile, such as its vendor's own summary."""
    for manifest in manifests():
        for file in manifest.summary_files:
            if file.name == name:
                make = cast("Callable[[Recording, str], bytes]", load_place(manifest, file.place))
                return make(recording, form)
    raise UsageError(f"--{name}: no plug-in makes it; expected one that does")


def _with_graph(result: Recording, model: Path, shapes: Shapes | None) -> Recording:
    """With what our own reader can tell of the model; a runtime may read models that it cannot."""
    from ..core.errors import ProfilerError
    from ..readers import read_model

    try:
        return with_model(result, read_model(model, shapes=shapes))
    except ProfilerError:
        return replace(result, batch=1)


def write_runs(result: WhatIf, model: Path, folder: Path, *, command: Sequence[str], created: str) -> None:
    """A Run per point, in folders named by their choices; and the table beside them."""
    from ..views.text.what_if_views import WhatIfJson
    from .record import analysed

    sha256 = sha256_of(model)
    for point in result.points:
        if point.recording is not None:
            name = re.sub(r"[^\w.+-]+", "-", point.label)
            recording = replace(point.recording, batch=point.recording.batch or 1)
            analysed(recording, folder / name, command=command, created=created, sha256=sha256)
    text = StringIO()
    WhatIfJson().render(result, text)
    write_bytes(folder / "whatif.json", text.getvalue().encode())
