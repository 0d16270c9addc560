"""Where the files of a store are: a folder, or a prefix of an object store that fsspec reaches."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError, in_words, printable
from ..core.files import taking_place, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


INSTALL = "pip install 'opscope[fleet]'"


def needed(package: str, *, install: str = INSTALL) -> ModuleType:
    """A package that only stores and sweeps need, imported; where it is missing, the error says how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise UsageError(f"{package}: is not installed ({error}); expected `{install}`") from error


class Place:
    """Files by their names below one root. Every file appears whole or not at all."""

    def __init__(self, address: str | Path) -> None:
        self.address = str(address)
        self.is_local = "://" not in self.address
        if self.is_local:
            self.root = str(Path(self.address).absolute())
            return
        try:
            self._files, self.root = needed("fsspec").core.url_to_fs(self.address)
        except (ImportError, ValueError) as error:
            known = "a folder, or an address whose fsspec package is installed"
            raise UsageError(f"{printable(self.address)}: cannot be reached ({error}); expected {known}") from error

    @contextmanager
    def reached(self) -> Iterator[None]:
        """What is wrong with a place, in one line: each kind of object store has errors of its own."""
        try:
            yield
        except UsageError:
            raise
        except Exception as error:
            if self.is_local and not isinstance(error, OSError):
                raise
            problem = in_words(error)
            raise UsageError(
                f"{printable(self.address)}: cannot be used ({problem}); expected a place of yours"
            ) from error

    def _path(self, name: str) -> str:
        """Of a file; a name that leads out of the root is a mistake of ours, never to be followed."""
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            raise ValueError(f"{name!r}: leads out of the store")
        return f"{self.root}/{name}"

    def url(self, name: str) -> str:
        """As another program opens it."""
        return self._path(name) if self.is_local else str(self._files.unstrip_protocol(self._path(name)))

    @property
    def filesystem(self) -> Any:
        """Of fsspec; None: a local folder."""
        return None if self.is_local else self._files

    def put(self, name: str, data: bytes) -> None:
        """Write a file, in place of one that has the name."""
        if self.is_local:
            write_bytes(Path(self._path(name)), data)
        else:
            self._files.pipe_file(self._path(name), data)  # an object appears when all of it has arrived

    def put_file(self, name: str, write: Callable[[Path], object]) -> None:
        """The same of a file that somebody else writes to the path that he is given."""
        if self.is_local:
            path = Path(self._path(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            with taking_place(path) as place:
                write(place)
            return
        with TemporaryDirectory() as folder:
            file = Path(folder) / "file"
            write(file)
            self._files.put_file(str(file), self._path(name))

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet; False: another has written it."""
        path = self._path(name)
        try:
            if self.is_local:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                with Path(path).open("xb") as out:
                    out.write(data)
            else:
                self._files.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        return True

    def get(self, name: str) -> bytes | None:
        """Content of a file; None: it is not there."""
        try:
            if self.is_local:
                return Path(self._path(name)).read_bytes()
            return bytes(self._files.cat_file(self._path(name)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """Files below a folder, sorted; those that are being written are left out."""
        return [name for name in self._all(folder) if not _is_temporary(name)]

    def temporary(self) -> list[str]:
        """Files that somebody began to write."""
        return [name for name in self._all("") if _is_temporary(name)]

    def _all(self, folder: str) -> list[str]:
        top = self._path(folder) if folder else self.root
        if self.is_local:
            found = (f"{at}/{file}" for at, _, files in os.walk(top) for file in files)
        else:
            with suppress(FileNotFoundError):
                self._files.invalidate_cache()
                found = iter(self._files.find(top))
        return sorted(path[len(self.root) :].strip("/") for path in found)

    def remove(self, names: Iterable[str]) -> None:
        """Files that are to go; one that is gone already is no error."""
        for name in names:
            with suppress(FileNotFoundError):
                Path(self._path(name)).unlink() if self.is_local else self._files.rm_file(self._path(name))

    def age_s(self, name: str, now_s: float) -> float:
        """Since a file was last written; 0: nobody knows, or it is gone."""
        with suppress(FileNotFoundError, NotImplementedError):
            if self.is_local:
                return now_s - Path(self._path(name)).stat().st_mtime
            return now_s - float(self._files.modified(self._path(name)).timestamp())
        return 0.0

    def size_bytes(self, name: str) -> int:
        with suppress(FileNotFoundError):
            return Path(self._path(name)).stat().st_size if self.is_local else int(self._files.size(self._path(name)))
        return 0


def _is_temporary(name: str) -> bool:
    return name.endswith(".part")
