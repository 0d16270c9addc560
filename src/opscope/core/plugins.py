"""Installed packages → manifests of plug-ins, found by the entry point group `opscope.plugins`.

Our own plug-ins are registered in the same way as a stranger's. A plug-in that cannot be used is left out, and
`problems` has a line about it; the others work.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import NamedTuple

from .errors import UsageError, printable
from .manifest import Manifest, TraceWords

GROUP = "opscope.plugins"
_METADATA = re.compile(r"(?P<name>[^-]+).*\.(?:dist|egg)-info")
_NOT_INSTALLED = "no plug-in is registered; expected opscope to be installed (`pip install -e .` in a checkout)"


class _Found(NamedTuple):
    manifests: tuple[Manifest, ...]
    problems: tuple[str, ...]


def manifests() -> tuple[Manifest, ...]:
    """Of every plug-in that can be used: by their order, then by name."""
    return _found().manifests


def problems() -> tuple[str, ...]:
    """One line per plug-in that cannot be used."""
    return _found().problems


def load_place(manifest: Manifest, place: str) -> object:
    """What ".module:attribute" names; without an attribute, the module."""
    module, _, attribute = place.partition(":")
    try:
        found: object = import_module(module, manifest.package)
        return getattr(found, attribute) if attribute else found
    except (ImportError, AttributeError) as error:
        raise UsageError(f"plug-in {manifest.name} ({place}): cannot be loaded ({_reason(error)})") from error


def vendor_memory_name(memory: str) -> str:
    """A memory of a target file as files in its vendor's own formats spell it."""
    return next((theirs for m in manifests() for ours, theirs in m.memory_names if ours == memory), memory)


def trace_words(maker: str) -> TraceWords | None:
    """Words for a timeline of what a backend or an importer made; None: its plug-in has none of its own."""
    for manifest in manifests():
        if maker in {*(backend.name for backend in manifest.backends), *(form.name for form in manifest.formats)}:
            return manifest.trace_words
    return None


@cache  # what is installed does not change while a program runs; `reload` is for tests
def _found() -> _Found:
    """Manifests that can be used, our own first, and why others cannot: unreadable, or a name that is taken."""
    usable: list[Manifest] = []
    bad: list[str] = []
    for name, value in sorted(_entries(), key=lambda entry: not entry[1].startswith("opscope.")):
        found = _read(name, value)
        taken = set() if isinstance(found, str) else found.names() & {n for other in usable for n in other.names()}
        if isinstance(found, str):
            bad.append(found)
        elif taken:
            bad.append(f"plug-in {name} ({value}): left out, as another has {', '.join(sorted(taken))}")
        else:
            usable.append(found)
    if not usable and not bad:
        bad.append(_NOT_INSTALLED)
    return _Found(tuple(sorted(usable, key=lambda manifest: (manifest.order, manifest.name))), tuple(bad))


def reload() -> None:
    """Forget what was found, so that the next call looks at what is installed."""
    _found.cache_clear()


def _read(name: str, value: str) -> Manifest | str:
    """The manifest of an entry point, or what is wrong with it."""
    module, _, attribute = value.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # whatever a package of someone else's raises
        return f"plug-in {name} ({value}): cannot be loaded ({_reason(error)})"
    if not isinstance(found, Manifest):
        return f"plug-in {name} ({value}): is no manifest; expected an opscope.core.manifest.Manifest"
    mistake = next(found.mistakes(), None)
    return found if mistake is None else f"plug-in {name} ({value}): {mistake}"


def _reason(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {error}", 200)


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
        for package, place in _metadata(folder or "."):
            if package not in seen:  # the first on the path is the one that is imported
                seen.add(package)
                yield from _of_file(os.path.join(place, "entry_points.txt"))  # noqa: PTH118 - faster than pathlib


def _metadata(folder: str) -> Iterator[tuple[str, str]]:
    """Name of every package that is installed in a folder, and where its metadata are."""
    try:
        with os.scandir(folder) as entries:
            named = sorted(entry.name for entry in entries if entry.name.endswith(("dist-info", "egg-info")))
    except OSError:
        return
    for name in named:
        match = _METADATA.fullmatch(name)
        if match is not None:
            yield re.sub(r"[-_.]+", "-", match["name"]).lower(), f"{folder}/{name}"


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
