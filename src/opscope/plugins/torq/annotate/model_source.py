"""Which op of the model's own file a location points to: `tosa.conv2d@L7`, `onnx.Relu@L12`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ....core.errors import ImportFileError, printable
from ....importers.mlir_location import positions
from ....importers.reading import read_text

_MOST_BYTES = 1 << 26
_TORCH = re.compile(r'torch\.operator\s+"([\w.:-]{1,200})"')
_OP = re.compile(r'(?:^|=)\s*"?((?:tosa|linalg|stablehlo|arith|onnx)\.[\w.]{1,100})')


def operators_of(
    locations: Iterable[str], *, source: Path | None, folders: Iterable[Path]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Ops of every location, and notes on files that are not there.

    Args:
        locations: as `positions` takes them.
        source: the model's file, whatever the locations call it.
        folders: where to look for the files that they name, if no source is given.
    """
    files = _Files(source, tuple(folders))
    found = {location: tuple(files.operators(location)) for location in dict.fromkeys(locations)}
    return {location: names for location, names in found.items() if names}, tuple(files.notes())


class _Files:
    """Lines of the files that locations name, each read once."""

    def __init__(self, source: Path | None, folders: tuple[Path, ...]) -> None:
        self.source, self.folders = source, folders
        self._lines: dict[str, list[str]] = {}
        self._missing: dict[str, None] = {}

    def operators(self, location: str) -> Iterator[str]:
        for file, line, _ in sorted(positions(location), key=lambda position: position[1]):
            lines = self._read(file)
            if 0 < line <= len(lines):
                name = _operator(lines[line - 1])
                if name:
                    yield f"{name}@L{line}"

    def _read(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = self._found(file)
        return self._lines[file]

    def _found(self, file: str) -> list[str]:
        places = [self.source] if self.source else [folder / file for folder in (Path(), *self.folders)]
        for place in places:
            try:
                if place.is_file() and place.stat().st_size <= _MOST_BYTES:
                    return read_text(place).split("\n")
            except (OSError, ValueError, ImportFileError):
                continue
        self._missing[file] = None
        return []

    def notes(self) -> Iterator[str]:
        if self._missing:
            names = ", ".join(printable(name, 80) for name in list(self._missing)[:3])
            yield f"{names}: not found, so that ops of the model have no names; give it with --source"


def _operator(line: str) -> str | None:
    torch = _TORCH.search(line)
    if torch is not None:
        return torch[1]
    op = _OP.search(line)
    return op[1] if op else None
