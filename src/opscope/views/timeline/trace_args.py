"""What viewers show of a command beside its times: the part that is the same in every inference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...core.plugins import vendor_memory_name
from ...program.program import Detail, Program
from ...recording.trace import SpanKind

CATEGORY = "aic"


def template_of_commands(program: Program) -> tuple[npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Template number of every command, and the kind and detail of every template."""
    commands, details = program.commands, max(len(program.details), 1)
    codes, number = np.unique(commands["kind"].astype(np.int64) * details + commands["detail"], return_inverse=True)
    return number.reshape(-1).astype(np.int64), [divmod(code, details) for code in codes.tolist()]


def shown_kinds(program: Program, spans: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Kind of every span; PHASE where no command says what it is: then its own name and times are all there is."""
    command, rows = spans["command"], program.commands
    told = (command >= 0) & (command < len(rows))
    named = np.array([kind != "" for kind in program.kinds] or [False])
    told[told] = named[rows["kind"][command[told]]]
    return np.where(told | (spans["kind"] == SpanKind.HOST), spans["kind"], SpanKind.PHASE).astype(np.int64)


def constant_args(program: Program, kind: int, detail: int) -> Iterator[tuple[str, str]]:
    """Key and value of what a command's kind and detail say."""
    known: Detail = program.details[detail]
    yield "opKind", program.kinds[kind]
    yield "opName", known.name
    yield "opMemory", vendor_memory_name(known.memory)
    if known.attributes:
        yield "opAttributes", known.attributes
    if known.shape:
        yield "opShape", known.shape
    for number, operand in enumerate(known.operands):
        memory = program.memory_name(operand.memory)
        yield f"opOperand{number}", operand.text(vendor_memory_name(memory))
