"""A dump in the vendor's own assembly → generic form, by the `iree-opt` of the vendor's compiler.

Only a parser that knows Torq's dialects reads that form. The vendor's package has one; stock IREE's, of the same name,
does not know them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ....backends import environments
from ....core.errors import ImportFileError, UsageError, printable
from ....importers.reading import read_bytes
from ..manifest import ENVIRONMENT

OPTION, VARIABLE, TOOL = "--iree-opt", "IREE_OPT", "iree-opt"
SECONDS = 600
_FLAGS = ("--mlir-print-op-generic", "--mlir-print-debuginfo", "-o", "-")
EXPECTED = (
    f"expected generic form (--mlir-print-op-generic), or the vendor's {TOOL}: {OPTION} FILE, {VARIABLE}, "
    f"`opscope setup {ENVIRONMENT.name}`, or beside torq-compile on the PATH"
)


def find_tool(given: Path | None) -> Path | None:
    """The vendor's tool: as given, as its own scripts name it, of its environment, or beside its compiler; None."""
    named = given or (Path(found) if (found := os.environ.get(VARIABLE)) else None)
    if named is not None:
        if not named.is_file():
            origin = OPTION if given is not None else VARIABLE
            raise UsageError(f"{origin} {printable(str(named))}: there is no such file; expected the vendor's {TOOL}")
        return named
    if (toolchain := environments.find(ENVIRONMENT.name)) is not None:
        return toolchain.programs[TOOL]
    compiler = shutil.which("torq-compile")
    beside = Path(compiler).with_name(TOOL) if compiler else None
    return beside if beside is not None and beside.is_file() else None


def generic_text(path: Path, tool: Path, problem: str) -> bytes:
    """The same dump in generic form, with its locations; `problem` is what our own parser said.

    Through a pipe: what has no location in the dump then does not get one in the dump's own file.
    """
    try:
        done = subprocess.run(  # noqa: S603 - a tool that the user names, and no shell
            [str(tool), "-", *_FLAGS], input=read_bytes(path), capture_output=True, check=False, timeout=SECONDS
        )
    except OSError as error:
        raise UsageError(f"{tool}: cannot be run ({error.strerror}); expected the vendor's {TOOL}") from error
    except subprocess.TimeoutExpired as error:
        raise ImportFileError(str(path), "", f"{tool} does not end within {SECONDS} s; {EXPECTED}") from error
    if done.returncode:
        lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if "error" in line]
        said = printable(lines[0], 200) if lines else f"code {done.returncode}"
        raise ImportFileError(str(path), "", f"{problem}; {tool} does not read it either ({said}); {EXPECTED}")
    return done.stdout
