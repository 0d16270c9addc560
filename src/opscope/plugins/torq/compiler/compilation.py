"""One compilation by the vendor's compiler, in processes and a folder of its own → the files that it left, read."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ....backends import environments
from ....backends.environments import Toolchain
from ....backends.process import Ended, run, work_folder
from ....core.errors import ModelError, ProfilerError, UsageError, printable
from ....graph.graph import Graph
from ....readers import read_model
from ....readers.tflite.flatbuffer import INT32S, Flatbuffer
from ....readers.tflite.model import StoredModel
from ....readers.tflite.schema import SubgraphField, TensorField
from ..annotate.annotated import Listing
from ..importers.compile_csv import CompileRows, read_rows
from ..importers.dump import read_listing
from ..manifest import ENVIRONMENT
from .options import TorqOptions

CONVERTER, COMPILER, RUNNER, OPT = "tosa-converter-for-tflite", "torq-compile", "torq-run-module", "iree-opt"
PACKAGE = "torq-compiler"
TIMELINE = "timeline.csv"
MODULE = "model.vmfb"
_PHASES = "phases"
_LONGEST_S = 3600.0  # ResNet-50 takes minutes
_MOST_KEPT_BYTES = 1 << 26
_ELIDED = 64  # elements of a constant that a dump spells out: weights would make it as large as the model
_LIBRARIES = "iree/compiler/_mlir_libs/iree-lld"
_LINKERS = ("iree-lld", f"*/{_LIBRARIES}", f"lib/python*/site-packages/{_LIBRARIES}")
_ERROR = re.compile(r"\berror: (.*)")
_GENERAL = re.compile(r"failed to (?:run translation|translate executables|serialize)")
_ASSERTION = re.compile(r"Assertion [`'](.*)' failed|LLVM ERROR: (.*)|UNREACHABLE executed(.*)", re.DOTALL)
_LINK = "Linking failed"


@dataclass(frozen=True, slots=True)
class Compilation:
    """All that one compilation left."""

    rows: CompileRows  # the schedule
    listing: Listing | None  # the program behind it; None: it could not be read
    files: Mapping[str, bytes]  # what is worth keeping beside a run
    notes: tuple[str, ...]
    producer: Mapping[str, str]  # package of the compiler → its version


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compilation whose folder is still there."""

    folder: Path
    toolchain: Toolchain
    notes: tuple[str, ...]

    @property
    def module(self) -> Path:
        return self.folder / MODULE


def read_graph(model: Path, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The model's graph; what the compiler cannot be given is refused here, which keeps damaged files from it."""
    if shapes:
        raise UsageError("--shape: the compiler takes the shapes of the file; expected a model with fixed shapes")
    graph = read_model(model)
    if graph.framework not in ("TensorFlow Lite", "MLIR"):
        raise ModelError(str(model), "", f"an {graph.framework} model; expected TensorFlow Lite or MLIR (TOSA)")
    return graph


def compile_model(model: Path, options: TorqOptions) -> Compilation:
    """Compile, and read everything back."""
    with compiled(model, options) as found:
        rows = read_rows(found.folder / TIMELINE, "C")
        dumps = sorted((found.folder / _PHASES).glob("*.mlir"))
        listing, notes = _listing(dumps, found.toolchain)
        files, version = _kept(found.folder / TIMELINE, dumps), environments.version(found.toolchain)
        producer = {PACKAGE: version} if version else {}
        return Compilation(rows, listing, files, (*found.notes, *rows.notes, *notes), producer)


@contextmanager
def compiled(model: Path, options: TorqOptions) -> Iterator[Compiled]:
    """A folder with the compiled module, its schedule and its dumps; gone afterwards."""
    toolchain = environments.found(ENVIRONMENT.name, options.tool)
    with work_folder(ENVIRONMENT.name) as folder:
        source, notes = _as_mlir(model, folder, toolchain)
        words = [
            str(toolchain.programs[COMPILER]),
            source,
            "-o",
            MODULE,
            "--torq-enable-profiling",
            f"--torq-dump-profiling={TIMELINE}",
            f"--dump-compilation-phases-to={_PHASES}",
            "--mlir-print-debuginfo",
            f"--mlir-elide-elementsattrs-if-larger={_ELIDED}",
            *options.words(),
        ]
        linker = _linker(folder, toolchain)
        path = os.pathsep.join(filter(None, (linker, os.environ.get("PATH", os.defpath))))
        ended = run(words, folder, longest_s=_LONGEST_S, variables={"PATH": path})
        if ended.code or not (folder / TIMELINE).is_file():
            raise ModelError(str(model), "", f"{COMPILER} {ended.how}; it says: {_reason(ended)}")
        yield Compiled(folder, toolchain, notes)


def _as_mlir(model: Path, folder: Path, toolchain: Toolchain) -> tuple[str, tuple[str, ...]]:
    """The model in the form that the compiler takes, by name; what was changed on the way."""
    name = re.sub(r"[^\w.]", "_", model.stem)[:80] or "model"
    content = model.read_bytes()
    if content[4:8] != b"TFL3":
        (folder / f"{name}.mlir").write_bytes(content)
        return f"{name}.mlir", ()
    fixed, count = _with_fixed_extents(content, str(model))
    (folder / f"{name}.tflite").write_bytes(fixed)
    words = [str(toolchain.programs[CONVERTER]), "--text", "--emit-debug-info", f"{name}.tflite", "-o", f"{name}.mlir"]
    ended = run(words, folder, longest_s=_LONGEST_S)
    if ended.code or not (folder / f"{name}.mlir").is_file():
        raise ModelError(str(model), "", f"{CONVERTER} {ended.how}; it says: {_reason(ended)}")
    tensors = "1 tensor" if count == 1 else f"{count} tensors"
    return f"{name}.mlir", (f"open extents of {tensors} are fixed to the shapes of the file",) if count else ()


def _linker(folder: Path, toolchain: Toolchain) -> str:
    """A folder with an `ld` that links for the part's own processor, which the one of this machine may not do.

    The compiler starts whatever `ld` comes first; its package brings one that can.
    """
    place = toolchain.programs[COMPILER].parent
    found = next((file for top in (place, place.parent) for pattern in _LINKERS for file in top.glob(pattern)), None)
    if found is None:
        return ""
    beside = folder.with_name("linker")
    beside.mkdir()
    (beside / "ld").write_text(f'#!/bin/sh\nexec {shlex.quote(str(found))} -flavor gnu "$@"\n', encoding="utf-8")
    (beside / "ld").chmod(0o755)
    return str(beside)


def _reason(ended: Ended) -> str:
    """The compiler's own words for what it stopped at: it tries a lot, and complains about what it then avoids."""
    said = ended.errors + ended.output
    if (found := _ASSERTION.search(said)) is not None:
        words = next(filter(None, found.groups()), "")
        return printable(" ".join(words.replace('" "', "").split()), 300)
    errors = [line for line in _ERROR.findall(said) if not _GENERAL.search(line)]
    if not errors and _LINK in said:
        return "ops of the model run on the part's own processor, and no linker for it is here; expected ld.lld as `ld`"
    return printable(errors[-1].strip(), 300) if errors else ended.last_words


def _listing(dumps: list[Path], toolchain: Toolchain) -> tuple[Listing | None, tuple[str, ...]]:
    last = [dump for dump in dumps if dump.name.endswith("executable-targets.mlir")]
    try:
        listing = read_listing(last[0], tool=toolchain.programs[OPT]) if last else None
    except ProfilerError as error:
        why = str(error).removeprefix(f"{last[0]}: ")
        return None, (f"what transfers carry, dependencies and memory are not told: {printable(why, 300)}",)
    return listing, () if listing is None else listing.notes


def _kept(timeline: Path, dumps: list[Path]) -> dict[str, bytes]:
    """The schedule and the dumps of all phases; of very large ones the last alone, which `annotate` takes."""
    files = {timeline.name: timeline.read_bytes()} | {dump.name: dump.read_bytes() for dump in dumps}
    if sum(map(len, files.values())) <= _MOST_KEPT_BYTES:
        return files
    return {name: data for name, data in files.items() if name == timeline.name or "executable-targets" in name}


def _with_fixed_extents(content: bytes, source: str) -> tuple[bytes, int]:
    """The file with `shape` written over every `shape_signature` that leaves an extent open; how many those are."""
    fixed, count = bytearray(content), 0
    model = StoredModel(Flatbuffer(content, source))
    for subgraph in model.subgraph_tables:
        for tensor in subgraph.tables(SubgraphField.TENSORS):
            shape, signature = (tensor.int32s(field) for field in (TensorField.SHAPE, TensorField.SIGNATURE))
            if min(signature, default=0) < 0 and len(shape) == len(signature) < len(INT32S):
                position, _ = tensor.span(TensorField.SIGNATURE)
                INT32S[len(shape)].pack_into(fixed, position, *shape)
                count += 1
    return bytes(fixed), count
