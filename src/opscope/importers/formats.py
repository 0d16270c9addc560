"""Vendor file → Trace, rows per op and totals. Formats are told apart by the signatures in manifests of plug-ins; the
importer of the one that fits is loaded, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from ..core.errors import ImportFileError, UsageError, printable
from ..core.manifest import Format
from ..core.plugins import load_place, manifests
from ..recording.recording import Recording
from .reading import head_of
from .trace_build import AxisError


class UnknownFormatError(ImportFileError):
    """A file that no importer reads, and no plug-in knows."""


class Importer(Protocol):
    """Reads files of one format."""

    def read(self, path: Path) -> Recording:
        """Read it. Damage is an ImportFileError; a row that cannot be read is counted in the notes.

        Which file it was, `source`, need not be said.
        """


def formats() -> tuple[Format, ...]:
    """Every format that is known here, in the order in which files are offered to them."""
    known = [form for manifest in manifests() for form in manifest.formats]
    return tuple(sorted(known, key=lambda form: form.is_generic))


def load_importer(form: Format) -> Importer:
    """What reads files of a format."""
    (manifest,) = (manifest for manifest in manifests() if form in manifest.formats)
    found = load_place(manifest, form.importer)
    importer = found() if isinstance(found, type) else found
    if not hasattr(importer, "read"):
        raise UsageError(f"plug-in {manifest.name} ({form.importer}): no importer; expected an object with read(path)")
    return cast("Importer", importer)


def find_format(path: Path, *, form: str | None = None) -> Format:
    """The format of a file: by its content, or by name."""
    if form is not None:
        chosen = next((known for known in formats() if known.name == form), None)
        if chosen is None:
            raise UsageError(f"format {form!r}: not known; expected one of {_names()}")
        return chosen
    head = head_of(path)
    found = _known(head, path.name)
    if found is None:
        raise _refused(path, head)
    return found


def _refused(path: Path, head: bytes) -> ImportFileError:
    """What a file is that no importer reads, and what to do with it, where a plug-in knows."""
    for hint in (hint for manifest in manifests() for hint in manifest.hints):
        if any(signature.fits(head, path.name) for signature in hint.signatures):
            return ImportFileError(str(path), "", f"{hint.what}; expected {hint.expected}")
    words = f"looks like {appearance(head)}, of no known format; known are {_names()}"
    return UnknownFormatError(str(path), "", words)


def is_profile(path: Path) -> bool:
    """Whether a file has a format that is known here."""
    return _known(head_of(path), path.name) is not None


def _known(head: bytes, name: str) -> Format | None:
    return next((form for form in formats() if form.fits(head, name)), None)


def _names() -> str:
    return ", ".join(form.name for form in formats())


def read_profile(path: Path, *, form: str | None = None) -> Recording:
    """Read a profile file of any known format.

    Args:
        path: the file.
        form: name of the format; found by content when not given.
    """
    (found,) = read_profiles([path], form=form)
    return found


def read_profiles(paths: Sequence[Path], *, form: str | None = None) -> list[Recording]:
    """Read profile files about one run. Those that a format is told with are read with its files; a format that is
    told with itself has one file for each part of a run, and all of them are read as one."""
    forms = {path: find_format(path, form=form) for path in paths}
    names = {known.name for known in forms.values()}
    told = {name for known in forms.values() for name in known.with_formats if name != known.name} & names
    first = {known.name: path for path, known in reversed(forms.items())}  # which the others of its format go with
    return [
        _read(path, known, [other for other, its in forms.items() if other != path and its.name in known.with_formats])
        for path, known in forms.items()
        if known.name not in told and (known.name not in known.with_formats or first[known.name] == path)
    ]


def _read(path: Path, form: Format, beside: Sequence[Path]) -> Recording:
    importer = load_importer(form)
    try:
        found = importer.read(path, beside=beside) if beside else importer.read(path)  # type: ignore[call-arg]
        return found if found.source else replace(found, source=str(path))
    except RecursionError as error:
        raise ImportFileError(str(path), "", f"nested too deep; expected {form.describe}") from error
    except AxisError as error:
        raise ImportFileError(str(path), "", str(error)) from error


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
