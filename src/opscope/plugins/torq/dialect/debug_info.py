"""`--torq-debug-info=DIR`: a file of MLIR bytecode per dispatch, which `annotate` takes with the runtime's log."""

from __future__ import annotations

import io
from pathlib import Path

from ....core.errors import UsageError
from ....core.files import write_bytes
from .dump_writer import ExecutableTargets
from .sequenced import Scheduled
from .tables import dispatch_name

_NEEDS = "needs iree-base-compiler 3.10; expected `pip install 'opscope[mlir]'`"


def debug_file(folder: Path, scheduled: Scheduled) -> Path:
    """Named after the dispatch, as logs of the host name it."""
    return folder / f"{dispatch_name(scheduled.program)}.mlirb"


def write_debug_info(folder: Path, scheduled: Scheduled) -> Path:
    """Write the one dispatch that a program is; returns the file."""
    try:
        from iree.compiler import ir
    except ImportError as error:
        raise UsageError(f"--torq-debug-info: bytecode {_NEEDS}") from error
    context = ir.Context()
    context.allow_unregistered_dialects = True
    packed = io.BytesIO()
    ir.Module.parse(ExecutableTargets(scheduled).render(), context).operation.write_bytecode(packed)
    path = debug_file(folder, scheduled)
    write_bytes(path, packed.getvalue())
    return path
