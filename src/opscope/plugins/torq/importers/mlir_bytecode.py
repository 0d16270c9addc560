"""MLIR bytecode → generic text, in a process of its own: the parser does not survive damaged bytecode."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from struct import Struct

from ....core.errors import ImportFileError, printable

MAGIC = b"ML\xefR"
SECONDS = 120
_ANSWER = Struct("<?q")  # whether it was read, bytes of what follows: the text, or what is wrong

_CHILD = """
import struct, sys
from pathlib import Path
from iree.compiler import ir

out = sys.stdout.buffer
for name in sys.argv[1:]:
    try:
        context = ir.Context()
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(Path(name).read_bytes(), context)
        good, text = True, module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    except Exception as error:
        good, text = False, str(error)
    raw = text.encode("utf-8", "replace")
    out.write(struct.pack("<?q", good, len(raw)) + raw)
    out.flush()
"""


def is_bytecode(path: Path) -> bool:
    """Whether a file begins like bytecode; one that is packed does not."""
    try:
        with path.open("rb") as file:
            return file.read(4) == MAGIC
    except OSError:
        return False


def texts_of(paths: Sequence[Path]) -> dict[Path, bytes]:
    """The text of every file. The first that the parser does not survive is named."""
    if not paths:
        return {}
    names = [str(path.resolve()) for path in paths]
    try:
        done = subprocess.run(  # noqa: S603 - our own words, and no shell
            [sys.executable, "-c", _CHILD, *names], capture_output=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise ImportFileError(str(paths[0]), "", f"not parsed within {SECONDS} s; expected MLIR bytecode") from error
    found: dict[Path, bytes] = {}
    at = 0
    for path in paths:
        if at + _ANSWER.size > len(done.stdout):
            reason = f"the parser ended with code {done.returncode}"
            raise ImportFileError(str(path), "", f"damaged bytecode ({reason}); expected what the compiler wrote")
        good, length = _ANSWER.unpack_from(done.stdout, at)
        at += _ANSWER.size + length
        text = done.stdout[at - length : at]
        if not good:
            raise ImportFileError(str(path), "", f"{_words(text)}; expected MLIR bytecode")
        found[path] = text
    return found


def _words(text: bytes) -> str:
    """The error in what the parser said, without a place: the first line only says that it failed."""
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error:")] or lines[-1:] or ["cannot be parsed"]
    return printable(re.sub(r'^error: (?:"-":0:0: )?', "", errors[0]), 200)
