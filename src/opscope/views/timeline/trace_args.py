"""What viewers show of a command beside its times: the part that is the same in every inference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ...core.meaning import LaneRole
from ...core.plugins import vendor_memory_name
from ...recording.run import CommandTable
from ...recording.trace import SpanKind, Trace

CATEGORY = "aic"
_LONGEST_KEY = 60


def template_of_commands(table: CommandTable) -> tuple[npt.NDArray[np.int64], list[tuple[int, int]]]:
    """Template number of every command, and the kind and detail of every template."""
    commands, details = table.rows, max(len(table.names), 1)
    codes, number = np.unique(commands["kind"].astype(np.int64) * details + commands["detail"], return_inverse=True)
    return number.reshape(-1).astype(np.int64), [divmod(code, details) for code in codes.tolist()]


def shown_kinds(table: CommandTable, spans: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Kind of every span; PHASE where no command says what it is: then its own name and times are all there is."""
    command, rows = spans["command"], table.rows
    told = (command >= 0) & (command < len(rows))
    named = np.array([kind != "" for kind in table.kinds] or [False])
    told[told] = named[rows["kind"][command[told]]]
    return np.where(told | (spans["kind"] == SpanKind.HOST), spans["kind"], SpanKind.PHASE).astype(np.int64)


def counter_args(names: Sequence[str]) -> list[str]:
    """Keys of the counters of a command; names are of a file, and keys are written as they are."""
    return [f"PMU_{re.sub(r'[^0-9A-Za-z_]', '_', name)[:_LONGEST_KEY]}" for name in names]


def is_instant(trace: Trace) -> npt.NDArray[np.bool_]:
    """Spans that mark a moment, such as the ring of a doorbell: they have no length, on a lane that only marks."""
    spans, marks = trace.spans, np.array([lane.role is LaneRole.MARKER for lane in trace.lanes] or [False])
    found: npt.NDArray[np.bool_] = marks[spans["lane"]] & (spans["start_ns"] == spans["end_ns"])
    return found


def constant_args(table: CommandTable, kind: int, detail: int) -> Iterator[tuple[str, str]]:
    """Key and value of what a command's kind and detail say."""
    memory, attributes, shape = table.memories[detail], table.attributes[detail], table.shapes[detail]
    yield "opKind", table.kinds[kind]
    yield "opName", table.names[detail]
    yield "opMemory", vendor_memory_name(memory)
    if attributes:
        yield "opAttributes", attributes
    if shape:
        yield "opShape", shape
    for number, operand in enumerate(table.operands[detail]):
        yield f"opOperand{number}", operand.text(vendor_memory_name(table.place(operand)))
