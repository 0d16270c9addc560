"""`opscope profile`, `whatif` and `doctor` behind the api: wires backends, importers and the files of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..backends import registry as backends
from ..backends.registry import BackendState
from ..core.errors import UsageError
from ..core.manifest import Can, Value
from ..core.plugins import load_place, manifests
from ..recording.profiled import NodeTotal, Profiled, WhatIf
from ..recording.summary import Latency, OpTotal, Summary

if TYPE_CHECKING:
    from ..program.program import OpInfo, Program
    from ..recording.run import Run, RunInfo
    from .record import Recorded

Shapes = Mapping[str, tuple[int, ...]]
Write = Callable[[Path, bytes], None]  # a file that appears whole or not at all


def profile(
    model: Path,
    *,
    backend: str,
    options: Mapping[str, Value],
    shapes: Shapes | None = None,
    advise: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Profiled:
    """Profile a model on a backend; with `advise`, causes cite what-if points."""
    what_ifs = backends.load_what_ifs(backend, Can.ADVISE) if advise else None  # one that cannot says so at once
    result = backends.load(backend).profile(model, options, shapes=shapes)
    if what_ifs is None:
        return result
    return what_ifs.advise(model, result, options, shapes=shapes or {}, progress=progress)


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
    return what_ifs.grid(model, axes, shapes=shapes or {}, jobs=jobs, progress=progress)


def backend_states() -> tuple[BackendState, ...]:
    """Every backend that is known, and whether it works here."""
    from .own_backends import own_states

    return (*own_states(), *(backends.load(name).state() for name in backends.names()))


def chrome_trace(profiled: Profiled) -> bytes:
    """The timeline for chrome://tracing and Perfetto."""
    from ..views.timeline.chrome_trace import ChromeTrace

    if profiled.trace is None or profiled.program is None:
        title = profiled.target.get("name")
        raise UsageError(
            f"--output-chrome-trace: backend {profiled.backend} has no timeline of {title}; expected a part that it "
            "knows (see `opscope doctor`), or kernels that can be timed one by one"
        )
    out = BytesIO()
    ChromeTrace(profiled.program, flows=True).render(profiled.trace, out)
    return out.getvalue()


def summary_file(profiled: Profiled, name: str, form: str) -> bytes:
    """A file that a plug-in makes of a profile, such as its vendor's own summary."""
    for manifest in manifests():
        for file in manifest.summary_files:
            if file.name == name:
                make = cast("Callable[[Profiled, str], bytes]", load_place(manifest, file.place))
                return make(profiled, form)
    raise UsageError(f"--{name}: no plug-in makes it; expected one that does")


def record_profiled(
    profiled: Profiled,
    folder: Path | None,
    *,
    command: Sequence[str],
    created: str,
    sha256: str | None,
    batch: int = 1,
) -> Recorded:
    """A profile as a Run, analysed; without a timeline its tables of spans are empty."""
    from ..analysis.analyse import analyse
    from ..analysis.run_totals import with_breakdown
    from ..recording.known_findings import PROFILE_FILE
    from ..views.json.profiled_json import ProfiledJson
    from .analysing import merged
    from .record import Recorded, record

    run, program = run_of(profiled, command=command, created=created, sha256=sha256, batch=batch)
    run = with_breakdown(run)
    found = analyse(run)
    findings = replace(found, findings=merged(profiled.causes, found.findings))
    files: tuple[str, ...] = ()
    if folder is not None:
        text = StringIO()
        ProfiledJson().render(profiled, text)
        files = record(run, program, findings, folder, model=None, extra={PROFILE_FILE: text.getvalue().encode()})
    return Recorded(run, findings, folder, files, profiled=profiled)


def batch_of(model: Path, shapes: Shapes | None) -> int:
    """Inputs at once, where our own reader can tell; a runtime may read models that it cannot."""
    from ..core.errors import ProfilerError
    from ..readers import read_model

    try:
        graph = read_model(model, shapes=shapes)
    except ProfilerError:
        return 1
    shape = graph.tensors[graph.inputs[0]].shape if graph.inputs else None
    return shape[0] if shape else 1


def run_of(
    profiled: Profiled, *, command: Sequence[str], created: str, sha256: str | None, batch: int = 1
) -> tuple[Run, Program]:
    """The Run of a profile, and the program that its tables are written from."""
    from ..program.program import OpInfo, bare_program
    from ..recording.classify import with_meaning
    from ..recording.imported import empty_trace
    from ..recording.run import CommandTable, Run

    info = replace(_run_info(profiled, command=tuple(command), created=created, sha256=sha256), batch=batch)
    ops = [OpInfo(node.name, node.type, "", "") for node in profiled.nodes]
    program = profiled.program or bare_program(info.network, info.target, ops)
    program = replace(program, ops=tuple(_with_covered(program.ops, profiled.nodes)))
    trace = profiled.trace or empty_trace(profiled.provenance)
    run = Run(info, program.ops, CommandTable.of(program), trace, summary_of(profiled, batch=batch))
    return with_meaning(run, program)


def _with_covered(ops: Sequence[OpInfo], nodes: Sequence[NodeTotal]) -> list[OpInfo]:
    """Ops that do the work of others of the model say so: by that they are found in runs where those run alone."""
    covers = {node.name: node.covers for node in nodes if node.covers}
    return [
        replace(op, location=", ".join(([op.location] if op.location else []) + list(covers[op.name])))
        if op.name in covers
        else op
        for op in ops
    ]


def write_runs(
    result: WhatIf, folder: Path, *, command: Sequence[str], created: str, sha256: str | None, write: Write
) -> None:
    """A Run per point, in folders named by their choices; and the table beside them."""
    from ..views.json.profiled_json import WhatIfJson

    for point in result.points:
        if point.profiled is not None:
            name = re.sub(r"[^\w.+-]+", "-", point.label)
            record_profiled(point.profiled, folder / name, command=command, created=created, sha256=sha256)
    text = StringIO()
    WhatIfJson().render(result, text)
    write(folder / "whatif.json", text.getvalue().encode())


def _run_info(profiled: Profiled, *, command: tuple[str, ...], created: str, sha256: str | None) -> RunInfo:
    from ..recording.run import RunInfo

    options = {key: value for key, value in profiled.options.items() if value is not None}
    clock = profiled.target.get("clock_hz")
    return RunInfo(
        command=command,
        created=created,
        model=profiled.model,
        sha256=sha256,
        target=str(profiled.target.get("name", "")),
        provenance=profiled.provenance,
        network=Path(profiled.model).stem,
        devices=1,
        cores=1,
        batch=1,
        clocks_hz={} if clock is None else {"core": float(clock)},
        inferences=profiled.inferences,
        options={"backend": profiled.backend, **options},
        caveats=profiled.caveats,
    )


def summary_of(profiled: Profiled, *, batch: int = 1) -> Summary:
    """The totals of a profile in the form that every Run has."""
    latency = profiled.latency or Latency(None, None, None, profiled.provenance)
    ops = tuple(
        OpTotal(
            name=node.name,
            type=node.type,
            wall_ns=node.wall_ns,
            busy_ns=node.wall_ns,
            wait_ns=node.wait_ns,
            share=node.path_share,
            commands=node.kernels,
            out_bytes=None,
            moved_bytes=_sum(node.dram_read_bytes, node.dram_write_bytes),
            macs=node.macs,
            engine=node.engines[0] if node.engines else "",
            placed=node.placed,
            reason=node.reason,
            on_cpu=node.placed == "cpu",
        )
        for node in profiled.nodes
    )
    rate = batch * 1e9 / latency.value_ns if latency.value_ns else None
    return Summary(
        latency,
        rate,
        batch,
        lanes=profiled.lanes,
        memory=profiled.memory,
        ops=ops,
        samples_ns=profiled.samples_ns,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
