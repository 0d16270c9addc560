"""Where the programs of an environment are: `--tool`, its variable, the PATH, or the folder that `setup` made.

Looking is cheap: no program is started, but for a version that no file tells.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ..core.errors import ProfilerError, UsageError, did_you_mean, printable
from ..core.manifest import Environment
from ..core.plugins import manifests
from .process import run

SCHEMA = "opscope.environment/1"
RECORD = "environment.json"  # what `setup` leaves in the folder
_VERSION_S = 10.0
_MOST_RECORD_BYTES = 1 << 20
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
_METADATA = ("*", "lib/python*/site-packages", "*/lib/python*/site-packages")  # below the folder that `bin` is in


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The programs of an environment that were found here."""

    environment: Environment
    programs: Mapping[str, Path]
    origin: str  # who said where: --tool, the variable, PATH, or opscope setup

    @property
    def place(self) -> Path:
        """The folder of its first program."""
        return self.programs[self.environment.programs[0]].parent

    @property
    def python(self) -> Path:
        """The interpreter beside the programs, for workers."""
        return self.place / "python"


class Record(msgspec.Struct):
    """What `setup` says about a folder that it made."""

    schema: str
    name: str
    versions: dict[str, str]  # of packages
    made_with: dict[str, str]


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """Whether an environment is here, for `doctor`."""

    name: str
    title: str
    works: bool
    version: str  # empty: not known
    origin: str  # who said where; empty: not found
    place: str
    detail: str
    install: str  # the command that brings it; empty: it is there
    licence: str
    megabytes: int


def known() -> tuple[Environment, ...]:
    """Every environment of every plug-in."""
    return tuple(environment for manifest in manifests() for environment in manifest.environments)


def named(name: str) -> Environment:
    """The environment of that name; a name that no plug-in has is an error."""
    names = [environment.name for environment in known()]
    if name not in names:
        hint = did_you_mean(name, names)
        raise UsageError(f"environment {printable(name)!r}: not known; {hint}known: {', '.join(names) or 'none'}")
    return known()[names.index(name)]


def made_folder(environment: Environment) -> Path:
    """Where `opscope setup` puts it: below the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    return Path(cache) / "opscope" / "environments" / environment.name


def find(name: str, tool: str | None = None) -> Toolchain | None:
    """The programs of an environment; None: it is not here. A place that was named and lacks one is an error."""
    environment = named(name)
    for origin, place in _named_places(environment, tool):
        programs = _programs_at(environment, place)
        missing = [program for program in environment.programs if program not in programs]
        if missing:
            raise UsageError(
                f"{origin} {printable(place)}: {', '.join(missing)} not found; expected a program of "
                f"{environment.title}, its folder, or a folder with `bin` in it"
            )
        return Toolchain(environment, programs, origin)
    for origin, programs in (
        ("PATH", _programs_on_path(environment)),
        (f"opscope setup {name}", _programs_at(environment, str(made_folder(environment)))),
    ):
        if len(programs) == len(environment.programs):
            return Toolchain(environment, programs, origin)
    return None


def found(name: str, tool: str | None = None) -> Toolchain:
    """The programs of an environment; an error that says how to get them."""
    toolchain = find(name, tool)
    if toolchain is None:
        environment = named(name)
        raise UsageError(
            f"{environment.title}: {', '.join(environment.programs)} not found; expected `opscope setup {name}`, "
            f"--tool PATH or {environment.variable}"
        )
    return toolchain


def version(toolchain: Toolchain) -> str:
    """Of the first package: as its record or the package's own metadata say, else the program; empty: not known."""
    package = package_key(re.split(r"[^\w.-]", toolchain.environment.first_package)[0])
    folder = Path(os.path.realpath(toolchain.programs[toolchain.environment.programs[0]])).parent.parent
    record = read_record(folder)
    if record is not None and package in record.versions:
        return record.versions[package]
    for pattern in _METADATA if package else ():
        for info in sorted(folder.glob(f"{pattern}/*.dist-info")):
            found_name, _, found_version = info.name.removesuffix(".dist-info").partition("-")
            if package_key(found_name) == package:
                return found_version
    return _told_version(toolchain)


def state(name: str) -> EnvironmentState:
    """What `doctor` says of an environment; nothing that is wrong with it is an error."""
    environment = named(name)
    about = (environment.licence, environment.megabytes)
    try:
        toolchain = find(name)
    except ProfilerError as error:
        return EnvironmentState(name, environment.title, False, "", "", "", str(error), _install(environment), *about)
    if toolchain is None:
        words = f"{', '.join(environment.programs)} not found; or say where: --tool PATH, {environment.variable}"
        return EnvironmentState(name, environment.title, False, "", "", "", words, _install(environment), *about)
    place, origin = str(toolchain.place), toolchain.origin
    words = f"{', '.join(environment.programs)} in {place} ({origin})"
    return EnvironmentState(name, environment.title, True, version(toolchain), origin, place, words, "", *about)


def read_record(folder: Path) -> Record | None:
    """What `setup` left in a folder; None: it did not make it."""
    try:
        with (folder / RECORD).open("rb") as file:
            record = msgspec.json.decode(file.read(_MOST_RECORD_BYTES), type=Record)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record if record.schema == SCHEMA else None


def package_key(name: str) -> str:
    """The name of a package as it is compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _install(environment: Environment) -> str:
    return f"opscope setup {environment.name}"


def _told_version(toolchain: Toolchain) -> str:
    environment = toolchain.environment
    if not environment.version_words:
        return ""
    program = toolchain.programs[environment.programs[0]]
    with TemporaryDirectory(prefix="opscope-version-") as place:
        folder = Path(place) / "work"
        folder.mkdir()
        try:
            ended = run([str(program), *environment.version_words], folder, longest_s=_VERSION_S)
        except ProfilerError:
            return ""
    told = _VERSION.search(ended.output) or _VERSION.search(ended.errors)
    return told[0] if told and ended.code == 0 else ""


def _named_places(environment: Environment, tool: str | None) -> Iterator[tuple[str, str]]:
    if tool:
        yield "--tool", tool
    elif variable := os.environ.get(environment.variable):
        yield environment.variable, variable


def _programs_on_path(environment: Environment) -> dict[str, Path]:
    """Those beside the first one before any other: another package may have programs of the same names."""
    first = shutil.which(environment.programs[0])
    if first is None:
        return {}
    beside = _programs_at(environment, first)
    others = {program: Path(found) for program in environment.programs if (found := shutil.which(program))}
    return {**others, **beside}


def _programs_at(environment: Environment, place: str) -> dict[str, Path]:
    """By name: in a folder, in its `bin`, or beside a program."""
    try:
        top = Path(place).expanduser().absolute()
        folders = (top, top / "bin") if top.is_dir() else (top.parent,)
        return {
            program: folder / program
            for folder in reversed(folders)
            for program in environment.programs
            if (folder / program).is_file() and os.access(folder / program, os.X_OK)
        }
    except (OSError, RuntimeError, ValueError):  # a name that no file can have, a home that no user has
        return {}
