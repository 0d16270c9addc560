"""One compilation with Arm's compiler in a process and a folder of its own → the files that it left, read.

Versions 5 say in a table of their debug file which operator a row is of. Versions 4 do not: there, rows have the order
of the command queue, and what was left to the CPU stands in the compiled file alone.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from ...backends.process import Ended, run
from ...core.errors import ModelError, UsageError, printable
from ...readers import read_model
from ...recording.recording import OpRecord, Placed, Recording
from .importer import VelaLayers, VelaSummary
from .options import INSTALL, PACKAGE, VelaOptions

_MODULE = "ethosu.vela"
_PROGRAM = "vela"
_LONGEST_S = 1200
_VERSION_S = 60
_MOST_DEBUG_BYTES = 1 << 28
_PERFORMANCE = "perf"  # table of the debug file of versions 5
_NAME = "model"  # of the copy that is compiled: files are named after it
_TABLE = re.compile(r'<table name=["\'](\w+)["\']>\s*<!\[CDATA\[\n?(.*?)\]\]>', re.DOTALL)
_REFUSED = re.compile(r"operator: (\S+), ofm: '([^\n]*)'\s*\n\s*Reason: ([^\n]+)")


@dataclass(frozen=True, slots=True)
class Row:
    """Where one row of the per-layer table comes from."""

    operator: int  # of the model, by its place in the file
    group: int | None  # operator whose command does this row's work too; None: it has a command of its own


@dataclass(frozen=True, slots=True)
class Compilation:
    """All that one compilation left."""

    layers: Recording
    rows: tuple[Row, ...]  # beside the ops of `layers`
    summary: Recording
    refused: Mapping[str, str]  # output tensor of an operator → why the accelerator does not take it
    producer: Mapping[str, str]


def compile_model(model: Path, options: VelaOptions) -> Compilation:
    """Compile a copy, read everything back, and refuse results for another machine than the one asked for."""
    with TemporaryDirectory(prefix="opscope-vela-") as place:
        folder = Path(place) / "work"
        folder.mkdir()
        compiler = _own_package() if options.tool is None else _program(options.tool, folder)
        copyfile(model, folder / f"{_NAME}.tflite")
        command = [
            *compiler.words,
            f"{_NAME}.tflite",
            "--output-dir",
            "out",
            "--verbose-performance",
            "--show-cpu-operations",
            "--enable-debug-db",
            *options.words(),
        ]
        ended = run(command, folder, longest_s=_LONGEST_S)
        if ended.code:
            raise ModelError(str(model), "", f"Arm's compiler {ended.how}; it says: {ended.last_words}")
        return replace(_read(folder, model, options, ended), producer={PACKAGE: compiler.version})


@dataclass(frozen=True, slots=True)
class _Compiler:
    words: tuple[str, ...]  # that start it
    version: str


def _own_package() -> _Compiler:
    if find_spec("ethosu") is None:
        raise UsageError(f"backend vela: the package {PACKAGE} is not installed; install it: {INSTALL}")
    return _Compiler((sys.executable, "-P", "-m", _MODULE), version(PACKAGE))


def _program(tool: str, folder: Path) -> _Compiler:
    """Of another environment: the program itself, or a folder that it is in."""
    given = Path(tool).absolute()
    places = (given, given / _PROGRAM, given / "bin" / _PROGRAM)
    program = next((str(place) for place in places if place.is_file()), None)
    if program is None:
        raise UsageError(f"--tool {printable(tool)}: no {_PROGRAM} there; expected the program, or its environment")
    ended = run([program, "--version"], folder, longest_s=_VERSION_S)
    if ended.code or not ended.output.strip():
        raise UsageError(f"--tool {printable(tool)}: {ended.how}: {ended.last_words}; expected Arm's compiler")
    return _Compiler((program,), printable(ended.output.split()[-1], 40))


def _read(work: Path, model: Path, options: VelaOptions, ended: Ended) -> Compilation:
    """The compiler's files, checked against each other and against the machine that was asked for."""
    folder = work / "out"
    summary = VelaSummary().read(_only(folder, f"{_NAME}_summary_*.csv", model, ended))
    wanted = " ".join((options.accelerator.replace("-", "_"), options.system, options.memory_mode))
    if (summary.target or "").lower() != wanted.lower():
        raise UsageError(
            f"--accelerator {options.accelerator}: asked for {wanted}, but the compiler worked for {summary.target}; "
            "no result is shown, since it would be of another machine"
        )
    layers = VelaLayers().read(_only(folder, f"{_NAME}_per-layer.csv", model, ended))
    tables = _debug_tables(_only(folder, f"{_NAME}_debug.xml", model, ended), model)
    rows = tuple(_rows(tables) if _PERFORMANCE in tables else _queued(tables, [op.kernel for op in layers.ops]))
    if len(rows) != len(layers.ops):
        raise ModelError(
            str(model),
            "",
            f"the compiler's files disagree: {len(layers.ops)} rows of layers, {len(rows)} in the debug file",
        )
    if _PERFORMANCE not in tables:
        left = tuple(_left_to_cpu(work / f"{_NAME}.tflite", _only(folder, f"{_NAME}_vela.tflite", model, ended)))
        layers = replace(layers, ops=(*layers.ops, *(op for op, _ in left)))
        rows = (*rows, *(row for _, row in left))
    refused = {ofm: printable(reason.strip(), 300) for _, ofm, reason in _REFUSED.findall(ended.output + ended.errors)}
    return Compilation(layers, rows, summary, refused, {})


def _only(folder: Path, pattern: str, model: Path, ended: Ended) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ModelError(str(model), "", f"the compiler left no {pattern}; it says: {ended.last_words}")
    return found[0]


def _debug_tables(file: Path, model: Path) -> dict[str, list[dict[str, str]]]:
    if file.stat().st_size > _MOST_DEBUG_BYTES:
        raise ModelError(str(model), "", f"the compiler's debug file is larger than {_MOST_DEBUG_BYTES >> 20} MB")
    text = file.read_text(encoding="utf-8", errors="replace")
    return {name: list(csv.DictReader(body.strip().splitlines())) for name, body in _TABLE.findall(text)}


def _rows(tables: Mapping[str, list[dict[str, str]]]) -> Iterator[Row]:
    """Through the compiler's own table of performance, which has the order of the per-layer file."""
    operator = _operators(tables)
    source_of = {row["id"]: row["source_id"] for row in tables.get(_PERFORMANCE, ())}
    group_of = {row["id"]: row["group_id"] for row in tables.get("group", ())}
    for row in tables.get(_PERFORMANCE, ()):
        leader = source_of.get(group_of.get(row["id"], ""))
        yield Row(operator.get(row["source_id"], -1), None if leader is None else operator.get(leader, -1))


def _queued(tables: Mapping[str, list[dict[str, str]]], kernels: Sequence[str]) -> Iterator[Row]:
    """Through the queue of commands, which has the order of the per-layer file, but for copies that need no command."""
    operator = _operators(tables)
    optimised = {row["id"]: row for row in tables.get("optimised", ())}
    queue = [optimised[each] for each in dict.fromkeys(row["optimised_id"] for row in tables.get("queue", ()))]
    for kernel in kernels:
        if queue and queue[0]["operator"] == kernel:
            yield Row(operator.get(queue.pop(0)["source_id"], -1), None)
        else:
            yield Row(-1, None)
    yield from (Row(-1, None) for _ in queue)  # more than there are rows: the files disagree


def _operators(tables: Mapping[str, list[dict[str, str]]]) -> dict[str, int]:
    return {row["id"]: int(row["ext_key"]) for row in tables.get("source", ())}


def _left_to_cpu(model: Path, compiled: Path) -> Iterator[tuple[OpRecord, Row]]:
    """Operators of the model that the compiled file still has, by what they write."""
    after = read_model(compiled)
    kept = {after.tensors[place].name for op in after.ops if op.kind != "compiled" for place in op.outputs}
    before = read_model(model)
    tops = (op for op in before.ops if not op.scope)
    for number, op in enumerate(tops):
        if any(before.tensors[place].name in kept for place in op.outputs):
            yield OpRecord(op.name, op.type, placed=Placed.CPU, engines=("CPU",)), Row(number, None)
