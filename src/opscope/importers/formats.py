"""Vendor file → Trace, rows per op and totals: one module per format, found by content.

A format is a class with a name, a line that describes it, `looks_like` and `read`. Those of this package stand in
IMPORTERS; others are found through entry points of the group `opscope.importers`, each naming an Importer object.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from ..core.errors import ImportFileError, UsageError, printable
from ..plugins.ethosu.importer import VelaLayers, VelaSummary
from ..plugins.iree.iree_perf import IreePerf
from ..plugins.litert.benchmark_importer import TfliteBenchmark
from ..plugins.ort.importer import OrtProfile
from ..plugins.qaic.compile_metrics import CompileMetrics
from ..plugins.qaic.runner_files import LatencyFile, LatencyPercentiles, RunnerStdout
from ..plugins.qaic.summary_importer import OpstatsSummary
from ..plugins.qnn.importers.device_files import QNN_IMPORTERS
from ..plugins.tables.openvino import OpenVinoCounters, OpenVinoReport
from ..plugins.tables.stedgeai import StEdgeAiInfo
from ..plugins.tables.stedgeai_text import StEdgeAiReport
from ..plugins.tables.tensorrt import TensorRtLayers, TensorRtProfile
from ..plugins.torq.importers.compile_csv import TORQ_COMPILE
from ..plugins.torq.importers.host import TORQ_HOST
from ..plugins.torq.importers.runtime_csv import TorqRuntime
from ..plugins.traces.kineto import Kineto
from ..plugins.traces.trace_json import TraceJson
from ..recording.recording import Recording
from .reading import head_of

GROUP = "opscope.importers"


@runtime_checkable
class Importer(Protocol):
    """One format."""

    name: str
    describe: str

    def looks_like(self, head: bytes, name: str) -> bool:
        """Whether a file that begins like this, inflated if it was packed, is of this format. `name` is a hint only."""

    def read(self, path: Path) -> Recording:
        """Read it. Damage is an ImportFileError; a row that cannot be read is counted in the notes."""


IMPORTERS: tuple[Importer, ...] = (  # add yours here: the first that knows a file reads it
    OrtProfile(),
    Kineto(),
    VelaLayers(),
    VelaSummary(),
    TfliteBenchmark(),
    StEdgeAiInfo(),
    StEdgeAiReport(),
    TensorRtProfile(),
    TensorRtLayers(),
    OpenVinoCounters(),
    OpenVinoReport(),
    OpstatsSummary(),
    RunnerStdout(),
    LatencyFile(),
    LatencyPercentiles(),
    CompileMetrics(),
    *QNN_IMPORTERS,
    IreePerf(),
    *TORQ_COMPILE,
    TorqRuntime(),
    *TORQ_HOST,
)
ANY_TIMELINE: tuple[Importer, ...] = (TraceJson(),)  # after all others, plug-ins too: they know their own traces better


def importers() -> tuple[Importer, ...]:
    """Every format that is known here, in the order in which files are offered to them."""
    return tuple(_in_turn())


def _in_turn() -> Iterator[Importer]:
    """Plug-ins are looked for when none of our own formats fits: it takes longer than reading a short file."""
    yield from IMPORTERS
    yield from _plugins()
    yield from ANY_TIMELINE


def _plugins() -> tuple[Importer, ...]:
    from importlib.metadata import entry_points

    found: list[Importer] = []
    for entry in entry_points(group=GROUP):
        try:
            plugin = entry.load()
        except Exception as error:  # whatever a package of someone else's raises
            reason = printable(f"{type(error).__name__}: {error}", 200)
            raise UsageError(f"plug-in {entry.name} ({entry.value}): cannot be loaded ({reason})") from error
        if not isinstance(plugin, Importer):
            raise UsageError(
                f"plug-in {entry.name} ({entry.value}): no importer; expected name, describe, looks_like, read"
            )
        found.append(plugin)
    return tuple(found)


def find_importer(path: Path, *, form: str | None = None) -> Importer:
    """The importer for a file: by its content, or by the name of a format."""
    if form is not None:
        chosen = next((importer for importer in _in_turn() if importer.name == form), None)
        if chosen is None:
            raise UsageError(f"format {form!r}: not known; expected one of {_names()}")
        return chosen
    head = head_of(path)
    found = _known(head, path.name)
    if found is None:
        raise ImportFileError(str(path), "", f"looks like {appearance(head)}, of no known format; known are {_names()}")
    return found


def is_profile(path: Path) -> bool:
    """Whether a file has a format that is known here."""
    return _known(head_of(path), path.name) is not None


def _known(head: bytes, name: str) -> Importer | None:
    return next((importer for importer in _in_turn() if importer.looks_like(head, name)), None)


def _names() -> str:
    return ", ".join(importer.name for importer in importers())


def read_profile(path: Path, *, form: str | None = None) -> Recording:
    """Read a profile file of any known format.

    Args:
        path: the file.
        form: name of the format; found by content when not given.
    """
    importer = find_importer(path, form=form)
    try:
        return importer.read(path)
    except RecursionError as error:
        raise ImportFileError(str(path), "", f"nested too deep; expected {importer.describe}") from error


def appearance(head: bytes) -> str:
    """What a file looks like, in a few words, for one that nobody knows."""
    known = (
        (b"PK\x03\x04", "a ZIP archive"),
        (b"SQLite format 3", "an SQLite database"),
        (b"PAR1", "a Parquet table"),
        (b"\x1f\x8b", "damaged gzip"),
        (b"\x7fELF", "an ELF binary"),
        (b"\x89PNG", "a picture"),
    )
    for start, words in known:
        if head.startswith(start):
            return words
    if not head.strip():
        return "an empty file"
    text = head[:4096].decode("utf-8", "replace")
    if sum(not c.isprintable() and not c.isspace() for c in text) + text.count("�") > max(len(text) // 20, 1):
        return f"binary data (starts with {head[:8].hex(' ')})"
    first = printable(text.strip().split("\n", 1)[0], 60)
    kind = {"{": "a JSON object", "[": "a JSON array", "<": "XML or HTML"}.get(first[:1])
    kind = kind or ("a table" if any(first.count(mark) > 1 for mark in ",;\t") else "text")
    return f"{kind} that starts with {first!r}"
