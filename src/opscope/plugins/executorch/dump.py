"""ETDump, a flatbuffer (etdump_schema_flatcc.fbs) → blocks of events. The runtime writes its size in front of it."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import ImportFileError, ModelError
from ...readers.tflite.flatbuffer import UINT32, UINT64, Flatbuffer, Table

IDENTIFIER = b"ED00"
_MOST_EVENTS = 5_000_000
_ROOT = {"version": 0, "runs": 1}  # fields of the tables, by number
_RUN = {"name": 0, "bundled_input": 1, "allocators": 2, "events": 3}
_EVENT = {"profile": 0, "allocation": 1, "debug": 2}
_PROFILE = {"name": 0, "chain": 1, "instruction": 2, "delegate_int": 3, "delegate_str": 4, "start": 6, "end": 7}


@dataclass(frozen=True, slots=True)
class DumpEvent:
    """Something that took time. Times are ticks of the runtime's clock."""

    name: str
    instruction: int
    delegate: str  # who it was inside of a delegate: a name, or a number; empty: nothing of a delegate
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """One run of the method, or what came before the first."""

    name: str
    events: tuple[DumpEvent, ...]
    allocated: tuple[tuple[str, int], ...]  # allocator, bytes
    debug_events: int  # values of tensors, which are not kept


def read_dump(raw: bytes, *, source: str) -> tuple[Block, ...]:
    """Blocks in file order; damage is named by its byte."""
    prefix = 4 if raw[8:12] == IDENTIFIER else 0
    if raw[prefix + 4 : prefix + 8] != IDENTIFIER:
        raise ImportFileError(source, f"byte {prefix + 4:#x}", "no ETDump: its mark ED00 is missing")
    file = Flatbuffer(raw, source)
    try:
        root = file.table(file.follow(prefix))
        blocks, left = [], _MOST_EVENTS
        for run in root.tables(_ROOT["runs"]):
            blocks.append(_block(run))
            left -= len(blocks[-1].events)
            if left < 0:
                raise ImportFileError(
                    source, "", f"more than {_MOST_EVENTS} events; expected the profile of one session"
                )
    except ModelError as error:
        raise ImportFileError(source, "", str(error).removeprefix(f"{source}: ")) from error
    return tuple(blocks)


def _block(run: Table) -> Block:
    names = [each.string(0) for each in run.tables(_RUN["allocators"])]
    events, allocated, debug = [], [], 0
    for event in run.tables(_RUN["events"]):
        profile, allocation = event.table(_EVENT["profile"]), event.table(_EVENT["allocation"])
        if profile is not None:
            events.append(_profile(profile))
        elif allocation is not None:
            number = allocation.number(0, UINT32)
            name = names[number - 1] if 0 < number <= len(names) else f"allocator {number}"
            allocated.append((name, allocation.number(1, UINT64)))
        else:
            debug += event.has(_EVENT["debug"])
    return Block(run.string(_RUN["name"]), tuple(events), tuple(allocated), debug)


def _profile(event: Table) -> DumpEvent:
    number = event.int32(_PROFILE["delegate_int"], -1)
    return DumpEvent(
        event.string(_PROFILE["name"]),
        event.int32(_PROFILE["instruction"], -1),
        event.string(_PROFILE["delegate_str"]) or (str(number) if number >= 0 else ""),
        event.number(_PROFILE["start"], UINT64),
        event.number(_PROFILE["end"], UINT64),
    )
