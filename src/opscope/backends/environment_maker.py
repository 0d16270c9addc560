"""Environment → a folder with its programs, below the user's cache: whole or not at all."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from .. import __version__
from ..core.errors import UsageError, printable
from ..core.files import write_bytes
from ..core.manifest import Environment
from ..core.plugins import load_place, manifests
from .environments import RECORD, SCHEMA, Record, made_folder, package_key, read_record
from .installers import Command, Installer, installer_for
from .making import Making, Report

_LARGEST_TEXT = 1 << 20  # of files in which the path of the folder may stand


@dataclass(frozen=True, slots=True)
class MakingStep:
    """One command of the making of an environment."""

    words: str
    command: Command


@dataclass(frozen=True, slots=True)
class MakingPlan:
    """How an environment would be made here."""

    environment: Environment
    folder: Path  # where it will be
    wheels: Path | None
    installer: Installer
    steps: tuple[MakingStep, ...]


def plan(environment: Environment, *, wheels: Path | None = None, python: Path | None = None) -> MakingPlan:
    """What `make` does; an error where it cannot be done here. Nothing is fetched or written.

    Args:
        wheels: take packages from this folder, and nothing from the network.
        python: the interpreter to use.
    """
    system = f"{sys.platform}-{platform.machine().lower()}"
    if os.name != "posix" or (environment.systems and system not in environment.systems):
        known = ", ".join(environment.systems) or "a Unix"
        raise UsageError(f"setup {environment.name}: this machine is {system}; expected {known}")
    if wheels is not None and not wheels.is_dir():
        raise UsageError(f"--wheels {printable(str(wheels))}: no such folder; expected one of wheels (*.whl)")
    installer = installer_for(environment, python)
    final = made_folder(environment)
    folder, place = _temporary(final), None if wheels is None else wheels.resolve()
    steps = []
    if environment.packages:
        words = f"making a virtual environment{f' of Python {environment.python}' if environment.python else ''}"
        steps.append(MakingStep(words, installer.venv(folder, environment.name)))
        words = f"installing {_listed(environment.packages)} with {installer.title}"
        steps.append(MakingStep(words, installer.install(folder, environment, place)))
    for group in environment.unpacked:
        made_for = f" for Python {group.python}" if group.python else ""
        words = f"unpacking {_listed(group.packages)}{made_for} with {installer.title}"
        steps.append(MakingStep(words, installer.unpack(folder / "packages", group, place)))
    return MakingPlan(environment, final, place, installer, tuple(steps))


def make(planned: MakingPlan, *, is_agreed: bool, report: Report) -> Path:
    """Make the environment beside its place and move it there; one that was there before is replaced.

    Args:
        is_agreed: whether the user agrees to the terms of its packages, where they have any.
        report: told every step.
    """
    environment, final, folder = planned.environment, planned.folder, _temporary(planned.folder)
    if environment.agreement and not is_agreed:
        terms = f"its terms must be agreed to first ({environment.agreement})"
        raise UsageError(f"setup {environment.name}: {terms}; expected --yes, or an answer at a terminal")
    _check_ours(final)
    with _alone(final, environment):
        making = Making(environment, folder, planned.wheels, report)
        finish = _finishing(environment)  # before anything is fetched
        for step in planned.steps:
            report(step.words)
            making.run(step.command)
        finish(making)
        _check_programs(making)
        write_bytes(folder / RECORD, _record(making, planned))
        _correct_paths(folder, final)
        _replace(final, folder)
    return final


def remove(environment: Environment) -> Path | None:
    """Remove what `make` made; None: it is not there. A folder of somebody else's is left alone."""
    final = made_folder(environment)
    if not final.exists():
        return None
    _check_ours(final)
    with _alone(final, environment):
        shutil.rmtree(final)
    return final


def _check_ours(final: Path) -> None:
    if final.exists() and read_record(final) is None:
        raise UsageError(f"{final}: has no {RECORD} of {SCHEMA}; expected a folder that `opscope setup` made, or none")


def size_bytes(folder: Path) -> int:
    """Of all files in it; one with several names counts once."""
    found = {(status.st_dev, status.st_ino): status.st_size for _, status in _files(folder)}
    return sum(found.values())


def _temporary(final: Path) -> Path:
    return final.with_name(f".{final.name}.part")


@contextmanager
def _alone(final: Path, environment: Environment) -> Iterator[None]:
    """One setup of an environment at a time; what one that was killed has left is removed, and ours in any case."""
    import fcntl

    folder = _temporary(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    with final.with_name(f".{final.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            where = f"setup {environment.name}"
            raise UsageError(f"{where}: another one is at work in {final.parent}; expected it to end first") from error
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _finishing(environment: Environment) -> Callable[[Making], None]:
    if not environment.finish:
        return lambda _: None
    (manifest,) = (m for m in manifests() if environment.name in {each.name for each in m.environments})
    return cast("Callable[[Making], None]", load_place(manifest, environment.finish))


def _check_programs(making: Making) -> None:
    programs = making.environment.programs
    missing = [name for name in programs if not os.access(making.folder / "bin" / name, os.X_OK)]
    if missing:
        where = f"setup {making.environment.name}"
        raise UsageError(f"{where}: its packages have no {', '.join(missing)}; expected {', '.join(programs)}")


def _record(making: Making, planned: MakingPlan) -> bytes:
    """Versions of everything that is in the folder, and how it got there."""
    infos = [*making.packages.glob("*.dist-info"), *making.unpacked.glob("*.dist-info")]
    pairs = [info.name.removesuffix(".dist-info").partition("-") for info in sorted(infos)]
    made_with = {"opscope": __version__, "installer": planned.installer.title}
    made_with["source"] = "network" if planned.wheels is None else str(planned.wheels)
    if making.environment.packages:
        made_with["python"] = making.run([making.python, "-c", "import platform; print(platform.python_version())"])
    made_with = {name: value.strip() for name, value in made_with.items()}
    versions = {package_key(name): version for name, _, version in pairs}
    return msgspec.json.format(
        msgspec.json.encode(Record(SCHEMA, making.environment.name, versions, made_with)), indent=1
    )


def _correct_paths(folder: Path, final: Path) -> None:
    """Scripts, and what else a virtual environment says of itself, name the folder that it will be in."""
    ours, theirs = os.fsencode(folder.name), os.fsencode(final.name)  # a script may have quoted what is before
    for path, status in _files(folder):
        is_script = status.st_mode & stat.S_IXUSR or path.parent == folder / "bin" or path.name == "pyvenv.cfg"
        if is_script and status.st_size <= _LARGEST_TEXT:
            text = path.read_bytes()
            if ours in text and b"\0" not in text:
                path.write_bytes(text.replace(ours, theirs))


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every plain file below a folder; links are not followed."""
    for top, _, names in os.walk(folder):
        for name in names:
            path = Path(top, name)
            with suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path, status


def _replace(final: Path, folder: Path) -> None:
    """Move a folder to its place; what was there is removed once the new one stands."""
    if not final.exists():
        folder.rename(final)
        return
    swapped = final.with_name(f".{final.name}.old")
    shutil.rmtree(swapped, ignore_errors=True)
    final.rename(swapped)
    folder.rename(final)
    shutil.rmtree(swapped, ignore_errors=True)


def _listed(packages: tuple[str, ...]) -> str:
    shown = [re.sub(r"==", " ", package) for package in packages[:4]]
    more = len(packages) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
