"""What viewers show of a command beside its times: the part that is the same in every inference, and in whose words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.meaning import LaneRole
from ...core.plugins import trace_words
from ...core.target_words import TargetWords
from ...machine.catalogue import words_of
from ...recording.run import CommandTable, RunInfo
from ...recording.trace import SpanKind, Trace

_OWN = (
    *("opPCycle", "opUCycle", "effectiveFreq", "PCyclesPerKB", "UCyclesPerKB", "opOutputSize"),
    *("opKind", "opName", "opMemory", "opAttributes", "opShape", "opOperand"),
    *("opSyncDurUs", "waitsOn", "waitsOnName", "waitsOnEngine", "waitsOnDevice", "waitsOnCore", "waitsOnOc"),
)
_LONGEST_KEY = 60
_MAKERS = ("backend", "imported_as")  # options of a run that say who made it


@dataclass(frozen=True, slots=True)
class ArgumentWords:
    """What spans and their arguments are called: our own words, or those of plug-ins.

    Memories and the category are those of the target, arguments those of the plug-in that made the run.
    """

    target: TargetWords
    category: str
    ordinal: str = "oc"
    arguments: Mapping[str, str] | None = None  # ours → theirs; None: ours

    @classmethod
    def of(cls, info: RunInfo) -> ArgumentWords:
        maker = next((str(info.options[key]) for key in _MAKERS if key in info.options), "")
        target, found = words_of(info.words, info.target), trace_words(maker)
        if found is None:
            return cls(target, target.trace_category)
        return cls(target, found.category, found.ordinal, dict(found.arguments))

    def name(self, argument: str) -> str:
        """Empty: it is left out."""
        if self.arguments is not None:
            return self.arguments.get(argument, "")
        return argument if argument in _OWN else ""

    def counters(self, names: Sequence[str]) -> list[str]:
        """Keys of the counters of a command; names may be of a file, and keys are written as they are."""
        kept, prefix = ("0-9A-Za-z_", "PMU_") if self.arguments is None else ("0-9A-Za-z_ ()", "")
        return [prefix + re.sub(f"[^{kept}]", "_", name)[:_LONGEST_KEY] for name in names]


class Templates:
    """Commands of which all constant arguments are the same, numbered; what they say is made when it is asked for."""

    def __init__(self, table: CommandTable, words: ArgumentWords) -> None:
        self.table, self.words = table, words
        commands, details = table.rows, max(len(table.names), 1)
        codes, number = np.unique(commands["kind"].astype(np.int64) * details + commands["detail"], return_inverse=True)
        self.of_command: npt.NDArray[np.int64] = number.reshape(-1).astype(np.int64)
        self._pairs: list[tuple[int, int]] = [divmod(code, details) for code in codes.tolist()]

    def __len__(self) -> int:
        return len(self._pairs)

    def args(self, number: int) -> dict[str, str]:
        """In the words of the run."""
        found = dict(constant_args(self.table, *self._pairs[number], self.words.target))
        named = {word: text for key, text in found.items() if (word := _numbered(self.words, key))}
        return named if self.words.arguments is None else named | _lines(found.get("opAttributes", ""))

    def kind(self, number: int) -> str:
        return self.table.kinds[self._pairs[number][0]]

    def name(self, number: int) -> str:
        return self.table.names[self._pairs[number][1]]


def _lines(attributes: str) -> dict[str, str]:
    """Lines of NAME=VALUE."""
    pairs = (line.partition("=") for line in attributes.split("\n"))
    return {name: text for name, equals, text in pairs if equals}


def _numbered(words: ArgumentWords, key: str) -> str:
    """The word for an argument that may bear a number, such as opOperand1; empty: it is left out."""
    plain = key.rstrip("0123456789")
    word = words.name(plain)
    return word and word + key[len(plain) :]


def shown_kinds(table: CommandTable, spans: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Kind of every span; PHASE where no command says what it is: then its own name and times are all there is."""
    command, rows = spans["command"], table.rows
    told = (command >= 0) & (command < len(rows))
    named = np.array([kind != "" for kind in table.kinds] or [False])
    told[told] = named[rows["kind"][command[told]]]
    return np.where(told | (spans["kind"] == SpanKind.HOST), spans["kind"], SpanKind.PHASE).astype(np.int64)


def is_instant(trace: Trace) -> npt.NDArray[np.bool_]:
    """Spans that mark a moment, such as the ring of a doorbell: they have no length, on a lane that only marks."""
    spans, marks = trace.spans, np.array([lane.role is LaneRole.MARKER for lane in trace.lanes] or [False])
    found: npt.NDArray[np.bool_] = marks[spans["lane"]] & (spans["start_ns"] == spans["end_ns"])
    return found


def constant_args(table: CommandTable, kind: int, detail: int, words: TargetWords) -> Iterator[tuple[str, str]]:
    """Key and value of what a command's kind and detail say."""
    memory, attributes, shape = table.memories[detail], table.attributes[detail], table.shapes[detail]
    yield "opKind", table.kinds[kind]
    yield "opName", table.names[detail]
    yield "opMemory", words.memory(memory)
    if attributes:
        yield "opAttributes", attributes
    if shape:
        yield "opShape", shape
    for number, operand in enumerate(table.operands[detail]):
        yield f"opOperand{number}", operand.text(words.memory(table.place(operand)))
