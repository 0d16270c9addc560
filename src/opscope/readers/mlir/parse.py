"""MLIR file → module, by the parser of the IREE compiler's Python bindings, imported when it is needed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ModelError, UsageError, printable

if TYPE_CHECKING:
    from iree.compiler import ir

INSTALL = "pip install 'opscope[mlir]'"
MAX_FILE_BYTES = 1 << 30  # the parser holds the file and its constants in memory
MAX_NESTING = 200  # brackets and regions within each other; the parser recurses into them

BYTECODE_MAGIC = b"ML\xefR"
TRIAL_SECONDS = 300
_TRIAL_SCRIPT = """
import sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, 1 << 34))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError, OSError):
    pass
from iree.compiler import ir
context = ir.Context()
context.allow_unregistered_dialects = True
ir.Module.parseFile(sys.argv[1], context)
"""
_FUNCTIONS = ("func.func", "util.func")
_PLACE = re.compile(r":(\d+):(\d+)\)?$")
_STRING = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|//[^\n]*+')  # possessive: weights are strings of megabytes
_BRACKETS = re.compile(rb"[(\[{<]+|[)\]}>]+|->|>=|<=")


def parse_module(path: Path) -> ir.Module:
    """Return the module in a file; a syntax error is reported with its line and column."""
    try:
        from iree.compiler import ir
    except ImportError as error:
        raise UsageError(
            f"{path}: an MLIR file, and no MLIR parser is installed; expected the extra [mlir]: {INSTALL}"
        ) from error
    _check_file(path)
    context = ir.Context()
    context.allow_unregistered_dialects = True  # an op of an unknown dialect is an op of unknown cost
    try:
        return ir.Module.parseFile(str(path), context)
    except ir.MLIRError as error:
        raise _syntax_error(path, error) from error
    except (RuntimeError, UnicodeDecodeError) as error:  # the parser's message is not UTF-8
        raise ModelError(str(path), "", "not valid MLIR; expected names and text in UTF-8") from error


def entry_function(module: ir.Module, source: str) -> tuple[ir.Operation, list[str]]:
    """Return the function to read and the names of the other public ones."""
    public = [op.operation for op in module.body.operations if _is_public(op.operation)]
    if not public:
        raise ModelError(source, "", "no public function with a body; expected a func.func, such as @main")
    named = {op.attributes["sym_name"].value: op for op in public}
    name = "main" if "main" in named else next(iter(named))
    return named[name], [other for other in named if other != name]


def _is_public(op: ir.Operation) -> bool:
    if op.name not in _FUNCTIONS or not len(op.regions) or not len(op.regions[0].blocks):
        return False
    return "sym_visibility" not in op.attributes or op.attributes["sym_visibility"].value == "public"


def _check_file(path: Path) -> None:
    """Check size and nesting of text, or try the parser on bytecode, before this process parses the file."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise ModelError(str(path), "", f"{size} bytes; expected at most {MAX_FILE_BYTES} of MLIR")
        with path.open("rb") as file:
            if file.read(len(BYTECODE_MAGIC)) != BYTECODE_MAGIC:
                file.seek(0)
                _check_nesting(file, path)
                return
    except OSError as error:
        raise ModelError(str(path), "", f"cannot be read ({error.strerror}); expected an MLIR file") from error
    _try_in_subprocess(path)


def _try_in_subprocess(path: Path) -> None:
    """Parse bytecode in another process first: damaged bytecode can crash the parser.

    Only a crash or a timeout is an error here; ordinary parse errors are reported when this process parses the file.
    """
    try:
        done = subprocess.run(  # noqa: S603 (our own interpreter, on our own text)
            [sys.executable, "-c", _TRIAL_SCRIPT, str(path)], capture_output=True, timeout=TRIAL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(str(path), "", f"not parsed within {TRIAL_SECONDS} seconds; expected MLIR bytecode") from error
    if done.returncode < 0:
        raise ModelError(str(path), "", "the parser gives up on it; expected whole MLIR bytecode")


def _check_nesting(lines: Iterable[bytes], path: Path) -> None:
    """Refuse text nested so deep that a recursive parser would overflow its stack.

    Brackets in strings and comments do not count.
    """
    depth = 0
    for line, text in enumerate(lines, start=1):
        if not text.isascii():
            _check_text(text, path, line)
        for found in _BRACKETS.finditer(_STRING.sub(b"", text)):
            brackets = found[0]
            if brackets[:1] in b"([{<" and brackets != b"<=":
                depth += len(brackets)
            elif brackets[:1] in b")]}>" and brackets != b">=":
                depth = max(0, depth - len(brackets))
        if depth > MAX_NESTING:
            place = f"line {line}"
            raise ModelError(str(path), place, f"{depth} brackets within each other; expected at most {MAX_NESTING}")


def _check_text(text: bytes, path: Path, line: int) -> None:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(str(path), f"line {line}:{error.start + 1}", "not UTF-8 text; expected MLIR") from error


def _syntax_error(path: Path, error: ir.MLIRError) -> ModelError:
    """Turn the parser's first diagnostic into an error with its place."""
    for diagnostic in error.error_diagnostics:
        try:
            found = _PLACE.search(str(diagnostic.location))
            text = printable(" ".join(str(diagnostic.message).split()), 300)
        except (RuntimeError, UnicodeDecodeError):
            break
        place = f"line {found[1]}:{found[2]}" if found and found[1] != "0" else ""
        return ModelError(str(path), place, f"not valid MLIR: {text}")
    return ModelError(str(path), "", "not valid MLIR")
