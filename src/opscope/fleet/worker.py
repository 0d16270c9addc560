"""The process that cells run in: reads a job and then cells from its input, answers each, ends with its input.

A message is its length in four bytes, then MessagePack. What a vendor's tool prints goes where errors go, so that it is
never taken for an answer.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from platform import node
from struct import Struct
from typing import BinaryIO, cast

import msgspec

from .cell import Job, Models, Outcome, Profile, run_cell
from .plan import Cell
from .store import Store

LENGTH = Struct("<I")
OUT_OF_MEMORY = 82  # exit status that nothing else has


def read_message(stream: BinaryIO) -> bytes | None:
    """The next message; None: the other side has ended."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    data = stream.read(size)
    return data if len(data) == size else None


def framed(message: bytes) -> bytes:
    return LENGTH.pack(len(message)) + message


def place_of(text: str) -> Profile:
    """What `module:attribute` names."""
    module, _, attribute = text.partition(":")
    return cast("Profile", getattr(import_module(module), attribute))


def limit_memory(limit: int | None) -> None:
    """Of what this process and its children may allocate each; where a system has no such limit, none."""
    if limit is None:
        return
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def main() -> int:
    """Serve cells until there are no more."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides what an interrupt means
    gc.set_threshold(200_000, 50, 50)
    questions = cast("BinaryIO", sys.stdin.buffer)
    first = read_message(questions)
    if first is None:
        return 0
    job = msgspec.msgpack.decode(first, type=Job)
    limit_memory(job.memory_limit_bytes)
    profile, store, models, host = place_of(job.profile), Store(job.store), Models(), node()
    cells = msgspec.msgpack.Decoder(Cell)
    answers.write(framed(msgspec.msgpack.encode(Outcome("", "ready"))))
    while (message := read_message(questions)) is not None:
        try:
            outcome = run_cell(cells.decode(message), job, models, store, profile, host=host)
        except MemoryError:
            return OUT_OF_MEMORY
        answers.write(framed(msgspec.msgpack.encode(outcome)))
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except MemoryError:
        code = OUT_OF_MEMORY
    os._exit(code)  # what a vendor's library does when it is unloaded must not take an answer back
