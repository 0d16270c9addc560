"""One compilation with Arm's compiler in a process and a folder of its own → the files that it left, read."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from ...backends.process import Ended, run
from ...core.errors import ModelError, UsageError, printable
from ...recording.recording import Recording
from .importer import VelaLayers, VelaSummary
from .options import INSTALL, PACKAGE, VelaOptions

_MODULE = "ethosu.vela"
_LONGEST_S = 1200
_MOST_DEBUG_BYTES = 1 << 28
_NAME = "model"  # of the copy that is compiled: files are named after it
_TABLE = re.compile(r'<table name="(\w+)">\s*<!\[CDATA\[\n?(.*?)\]\]>', re.DOTALL)
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
    if find_spec("ethosu") is None:
        raise UsageError(f"backend vela: the package {PACKAGE} is not installed; install it: {INSTALL}")
    with TemporaryDirectory(prefix="opscope-vela-") as place:
        folder = Path(place) / "work"
        folder.mkdir()
        copyfile(model, folder / f"{_NAME}.tflite")
        command = [
            sys.executable,
            "-P",
            "-m",
            _MODULE,
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
        return _read(folder / "out", model, options, ended)


def _read(folder: Path, model: Path, options: VelaOptions, ended: Ended) -> Compilation:
    """The compiler's files, checked against each other and against the machine that was asked for."""
    summary = VelaSummary().read(_only(folder, f"{_NAME}_summary_*.csv", model, ended))
    wanted = " ".join((options.accelerator.replace("-", "_"), options.system, options.memory_mode))
    if (summary.target or "").lower() != wanted.lower():
        raise UsageError(
            f"--accelerator {options.accelerator}: asked for {wanted}, but the compiler worked for {summary.target}; "
            "no result is shown, since it would be of another machine"
        )
    layers = VelaLayers().read(_only(folder, f"{_NAME}_per-layer.csv", model, ended))
    tables = _debug_tables(_only(folder, f"{_NAME}_debug.xml", model, ended), model)
    rows = tuple(_rows(tables))
    if len(rows) != len(layers.ops):
        raise ModelError(
            str(model),
            "",
            f"the compiler's files disagree: {len(layers.ops)} rows of layers, {len(rows)} in the debug file",
        )
    refused = {ofm: printable(reason.strip(), 300) for _, ofm, reason in _REFUSED.findall(ended.output + ended.errors)}
    return Compilation(layers, rows, summary, refused, {PACKAGE: version(PACKAGE)})


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
    operator = {row["id"]: int(row["ext_key"]) for row in tables.get("source", ())}
    source_of = {row["id"]: row["source_id"] for row in tables.get("perf", ())}
    group_of = {row["id"]: row["group_id"] for row in tables.get("group", ())}
    for row in tables.get("perf", ()):
        leader = source_of.get(group_of.get(row["id"], ""))
        yield Row(operator.get(row["source_id"], -1), None if leader is None else operator.get(leader, -1))
