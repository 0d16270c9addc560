"""`findings.json` of a Run, and whether it is of this very Run: what was analysed once is not analysed again.

The file holds a key of all that the analysis read and of the code that did it. Times of files say nothing here: they
change when a Run is copied, and do not when its tables are exchanged by another tool within a tick of the clock.
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from .. import __version__
from ..core.errors import ProfilerError
from ..core.files import sha256_of
from .finding import Findings
from .keys import code_of, digest_of
from .recording_file import OLD_FILES, RECORDING_FILE
from .run import GRAPH_FILE, TABLES, Run

FINDINGS_FILE = "findings.json"
MOST_BYTES = 1 << 30
_READ = (
    "run.json",
    "summary.json",
    *(f"{table}.parquet" for table in TABLES),
    GRAPH_FILE,
    RECORDING_FILE,
    *OLD_FILES,
)


def findings_key(folder: Path) -> str:
    """The same for the same tables under the same code."""
    files = [f"{name} {sha256_of(folder / name) if (folder / name).exists() else ''}" for name in _READ]
    return digest_of(__version__, code_of("core", "graph", "program", "recording", "analysis", "workflows"), *files)


def findings_bytes(folder: Path, findings: Findings) -> bytes:
    """The file for findings of the Run in a folder, which is there whole."""
    from .findings_json import FindingsJson

    text = StringIO()
    FindingsJson(key=findings_key(folder)).render(findings, text)
    return text.getvalue().encode()


def known_findings(folder: Path, run: Run) -> Findings | None:
    """What an earlier analysis of this very Run found; None: there is none, or it is of other tables or other code."""
    from .findings_file import decode_findings, key_of

    path = folder / FINDINGS_FILE
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        raw = path.read_bytes()
        if key_of(raw, source=str(path)) != findings_key(folder):
            return None
        return decode_findings(raw, spans=len(run.trace.spans), source=str(path))
    except (OSError, ProfilerError):
        return None
