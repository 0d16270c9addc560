"""Installed packages → manifests of plug-ins, found by the entry point group `opscope.plugins`.

Our own plug-ins are registered in the same way as a stranger's. A plug-in that cannot be used is left out, and
`problems` has a line about it; the others work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from .errors import UsageError, in_words
from .manifest import Manifest, TraceWords

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "opscope.plugins"
_NOT_INSTALLED = "no plug-in is registered; expected opscope to be installed (`pip install -e .` in a checkout)"


def manifests() -> tuple[Manifest, ...]:
    """Of every plug-in that can be used: by their order, then by name."""
    return _found()[0]


def problems() -> tuple[str, ...]:
    """One line per plug-in that cannot be used."""
    return _found()[1]


def load_place(manifest: Manifest, place: str) -> object:
    """What ".module:attribute" names; without an attribute, the module."""
    module, _, attribute = place.partition(":")
    try:
        found: object = import_module(module, manifest.package)
        return getattr(found, attribute) if attribute else found
    except (ImportError, AttributeError) as error:
        raise UsageError(f"plug-in {manifest.name} ({place}): cannot be loaded ({in_words(error)})") from error


def target_folder(manifest: Manifest) -> Path | None:
    """Where its target files are; None: it has none."""
    from pathlib import Path  # not for `opscope --help`

    if not manifest.targets:
        return None
    folder = Path(manifest.targets)
    return folder if folder.is_absolute() else Path(import_module(manifest.package).__path__[0], folder)


def target_files() -> Mapping[str, tuple[Manifest, Path]]:
    """Name → the plug-in and the file of every target that plug-ins bring; of one name, the first is the one."""
    return _target_files(manifests())


@lru_cache(maxsize=4)  # what is installed does not change while a program runs, and every sample of a run asks
def _target_files(found: tuple[Manifest, ...]) -> Mapping[str, tuple[Manifest, Path]]:
    files: dict[str, tuple[Manifest, Path]] = {}
    for manifest in found:
        folder = target_folder(manifest)
        for path in sorted(folder.glob("*.toml")) if folder is not None else ():
            files.setdefault(path.stem, (manifest, path))
    return files


def trace_words(maker: str) -> TraceWords | None:
    """Words for a timeline of what a backend or an importer made; None: its plug-in has none of its own."""
    for manifest in manifests():
        if maker in {*(backend.name for backend in manifest.backends), *(form.name for form in manifest.formats)}:
            return manifest.trace_words
    return None


@cache  # what is installed does not change while a program runs; `reload` is for tests
def _found() -> tuple[tuple[Manifest, ...], tuple[str, ...]]:
    """Manifests that can be used, our own first, and why others cannot: unreadable, or a name that is taken."""
    usable: list[Manifest] = []
    bad: list[str] = []
    names: set[str] = set()
    for name, value in sorted(_entries(), key=lambda entry: not entry[1].startswith("opscope.")):
        found = _read(name, value)
        if isinstance(found, str):
            bad.append(found)
        elif taken := found.names() & names:
            bad.append(f"plug-in {name} ({value}): left out, as another has {', '.join(sorted(taken))}")
        else:
            usable.append(found)
            names |= found.names()
    if not usable and not bad:
        bad.append(_NOT_INSTALLED)
    return tuple(sorted(usable, key=lambda manifest: (manifest.order, manifest.name))), tuple(bad)


def reload() -> None:
    """Forget what was found, so that the next call looks at what is installed."""
    _found.cache_clear()


def _read(name: str, value: str) -> Manifest | str:
    """The manifest of an entry point, or what is wrong with it."""
    module, _, attribute = value.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # whatever a package of someone else's raises
        return f"plug-in {name} ({value}): cannot be loaded ({in_words(error)})"
    if not isinstance(found, Manifest):
        return f"plug-in {name} ({value}): is no manifest; expected an opscope.core.manifest.Manifest"
    mistake = next(found.mistakes(), None)
    return found if mistake is None else f"plug-in {name} ({value}): {mistake}"


def _entries() -> list[tuple[str, str]]:
    """Name and value of every entry point of the group.

    Read here, as importing importlib.metadata takes longer than all of `opscope --help`. It is asked where no folder
    on the path has our own metadata, as in a zipped application.
    """
    found = list(_of_folders())
    if not any(value.startswith("opscope.") for _, value in found):
        from importlib.metadata import entry_points

        found = [(entry.name, entry.value) for entry in entry_points(group=GROUP)]
    return found


def _of_folders() -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for folder in dict.fromkeys(sys.path):
        for name in _metadata(folder or "."):
            package = name.rpartition(".")[0].partition("-")[0].replace(".", "_").lower()
            if package not in seen:  # the first on the path is the one that is imported
                seen.add(package)
                yield from _of_file(f"{folder or '.'}/{name}/entry_points.txt")


def _metadata(folder: str) -> list[str]:
    """The folders with metadata of the packages that are installed in a folder, NAME-VERSION.dist-info."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return []


def _of_file(path: str) -> Iterator[tuple[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - faster than pathlib
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return
    _, header, rest = text.partition(f"[{GROUP}]")
    if header:
        for line in rest.partition("\n[")[0].splitlines():
            name, equals, value = line.partition("=")
            if equals:
                yield name.strip(), value.partition("[")[0].strip()
