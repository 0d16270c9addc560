"""Where the programs of an environment are: `--tool`, its variable, the PATH, or the folder that `setup` made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UsageError, did_you_mean, printable
from ..core.manifest import Environment
from ..core.plugins import manifests


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The programs of an environment that were found here."""

    environment: Environment
    programs: Mapping[str, Path]
    origin: str  # who said where: --tool, the variable, PATH, or opscope setup


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
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "opscope" / "environments" / environment.name


def find(name: str, tool: str | None = None) -> Toolchain | None:
    """The programs of an environment; None: it is not here. A place that was named and lacks one is an error."""
    environment = named(name)
    for origin, place in _named_places(environment, tool):
        programs = _programs_at(environment, Path(place).expanduser())
        missing = [program for program in environment.programs if program not in programs]
        if missing:
            raise UsageError(
                f"{origin} {printable(place)}: {', '.join(missing)} not found; expected a program of "
                f"{environment.title}, its folder, or a folder with `bin` in it"
            )
        return Toolchain(environment, programs, origin)
    on_path = {program: Path(found) for program in environment.programs if (found := shutil.which(program))}
    for origin, programs in (
        ("PATH", on_path),
        (f"opscope setup {name}", _programs_at(environment, made_folder(environment))),
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


def _named_places(environment: Environment, tool: str | None) -> Iterator[tuple[str, str]]:
    if tool:
        yield "--tool", tool
    elif variable := os.environ.get(environment.variable):
        yield environment.variable, variable


def _programs_at(environment: Environment, place: Path) -> dict[str, Path]:
    """By name: in a folder, in its `bin`, or beside a program."""
    folders = (place, place / "bin") if place.is_dir() else (place.parent,)
    return {
        program: folder.absolute() / program
        for folder in reversed(folders)
        for program in environment.programs
        if os.access(folder / program, os.X_OK) and (folder / program).is_file()
    }
