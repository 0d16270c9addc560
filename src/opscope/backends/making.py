"""An environment while it is being made, as the steps of its making and the finishing step of its plug-in see it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ..core.errors import UsageError
from ..core.manifest import Environment
from .process import run

Report = Callable[[str], None]  # told what is being done
_LONGEST_S = 3600.0
_VARIABLES = {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}  # bytecode would name the folder of the making


@dataclass(frozen=True, slots=True)
class Making:
    """What a finishing step works with: it completes `folder`, so that the programs are in its `bin`.

    Texts in `bin` may hold the path of the folder, which is another one in the end: it is replaced there.
    """

    environment: Environment
    folder: Path  # becomes the environment when everything is done
    wheels: Path | None  # what the user has fetched before: wheels and other packages; None: the network may be used
    report: Report

    @property
    def python(self) -> Path:
        """The interpreter of the virtual environment, where there is one."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Where modules are: of the virtual environment, else of what was unpacked."""
        installed = sorted(self.folder.glob("lib/python3*/site-packages"))
        return installed[0] if installed else self.unpacked

    @property
    def unpacked(self) -> Path:
        """Where packages are that were only unpacked."""
        return self.folder / "packages"

    def run(self, command: Sequence[str | Path], *, variables: Mapping[str, str] | None = None) -> str:
        """What a command prints; one that fails is an error that says why, in one line."""
        words = [str(word) for word in command]
        with TemporaryDirectory(prefix="opscope-setup-") as place:
            work = Path(place) / "work"
            work.mkdir()
            ended = run(words, work, longest_s=_LONGEST_S, variables={**_VARIABLES, **(variables or {})})
        if ended.code:
            where = f"setup {self.environment.name}: {Path(words[0]).name}"
            raise UsageError(f"{where} {ended.how}; it says: {ended.last_words}")
        return ended.output

    def add_program(
        self, name: str, command: Sequence[str | Path], *, variables: Mapping[str, str] | None = None
    ) -> Path:
        """A program in `bin` that starts a command with its own arguments after those given here."""
        settings = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in (variables or {}).items())
        line = " ".join(shlex.quote(str(word)) for word in command)
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\n{settings}exec {line} "$@"\n', encoding="utf-8")
        file.chmod(0o755)
        return file
