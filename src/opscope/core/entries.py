"""What plug-ins bring to the catalogue besides target files, found by any name that people have for it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, cast

from .errors import UsageError
from .manifest import BackendEntry, Entry, Manifest
from .plugins import load_place, manifests


class Known(NamedTuple):
    """An entry, with where it is from."""

    entry: Entry
    backend: BackendEntry
    manifest: Manifest

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that it is called, as lists show it."""
        return (self.entry.name, *self.entry.aliases)

    @property
    def words(self) -> tuple[str, ...]:
        """Everything that means it."""
        return (*self.names, *self.entry.spellings)


class _Loaded(NamedTuple):
    entries: tuple[Known, ...]
    problems: tuple[str, ...]


def known_entries() -> tuple[Known, ...]:
    """Of every plug-in, in their order."""
    return _loaded(manifests()).entries


def entry_problems() -> tuple[str, ...]:
    """One line per plug-in whose entries cannot be used; the others work."""
    return _loaded(manifests()).problems


def called(text: str) -> tuple[Known, ...]:
    """The entries that a word means: a name, an alias or another spelling; those whose own name it is come first."""
    return _index(manifests()).get(name_key(text), ())


def name_key(text: str) -> str:
    """A name as it is compared: case, spaces and dashes do not matter."""
    return "".join(c for c in text.lower() if c.isalnum() or c == "+")


def typed(name: str) -> str:
    """A name as one word of a command line."""
    return "-".join(name.lower().split())


@lru_cache(maxsize=4)
def _loaded(found: tuple[Manifest, ...]) -> _Loaded:
    entries: list[Known] = []
    problems: list[str] = []
    for manifest in found:
        backends = {backend.name: backend for backend in manifest.backends}
        try:
            own = _entries_of(manifest)
        except UsageError as error:
            problems.append(f"{error}; its entries are left out")
            continue
        for entry in (*own, *_of_backends(backends.values(), own)):
            if entry.backend in backends:
                entries.append(Known(entry, backends[entry.backend], manifest))
            else:
                wrong = f"has no backend {entry.backend}; entry {entry.name} is left out"
                problems.append(f"plug-in {manifest.name}: {wrong}")
    return _Loaded(tuple(entries), tuple(problems))


def _entries_of(manifest: Manifest) -> tuple[Entry, ...]:
    if not isinstance(manifest.entries, str):
        return manifest.entries
    return cast("tuple[Entry, ...]", load_place(manifest, manifest.entries))


def _of_backends(backends: Iterable[BackendEntry], entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """A backend without entries is one itself."""
    told = {entry.backend for entry in entries}
    return tuple(Entry(each.name, each.title, each.name, ()) for each in backends if each.name not in told)


@lru_cache(maxsize=4)
def _index(found: tuple[Manifest, ...]) -> dict[str, tuple[Known, ...]]:
    """Every word as it is compared → the entries that it means; what one of a name is called, all of it are."""
    groups: dict[str, list[Known]] = {}
    for known in _loaded(found).entries:
        groups.setdefault(known.entry.name, []).append(known)
    index: dict[str, list[Known]] = {}
    for group in groups.values():
        for wanted in {name_key(word) for known in group for word in known.words} - {""}:
            index.setdefault(wanted, []).extend(group)
    return {
        wanted: tuple(sorted(meant, key=lambda known: name_key(known.entry.name) != wanted))
        for wanted, meant in index.items()
    }
