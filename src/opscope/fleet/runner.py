"""Runner: cells in warm processes of their own, with limits of time and memory; one that dies is replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from platform import node
from select import select
from tempfile import TemporaryFile
from threading import Lock
from time import monotonic, sleep
from typing import BinaryIO, cast

import msgspec

from ..core.errors import ProfilerError, printable
from .cell import Job, Outcome, Outcomes, record_failure
from .plan import Cell
from .store import Store
from .worker import OUT_OF_MEMORY, framed, read_message

_END_S = 5.0  # for what a process does between its last word and its end
_START_S = 120.0  # the most that a process may take until it is ready
_TAIL_BYTES = 2000
_OUTCOME = msgspec.msgpack.Decoder(Outcome)


class ProcessDiedError(ProfilerError):
    """The process of a cell ended, or was ended, before it answered."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late  # it ran out of time, which no other process would change


class Child:
    """One warm process."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.served = 0
        self._lock = Lock()
        self._errors = TemporaryFile()  # noqa: SIM115 - read when the process has ended
        package = str(Path(__file__).parents[2])
        paths = [package, *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "opscope.fleet.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # with a group of its own, so that what it starts ends with it
        )
        try:
            self._answered(msgspec.msgpack.encode(job), _START_S)
        except ProcessDiedError:
            self.close()
            raise

    def run(self, cell: Cell) -> Outcome:
        """The outcome of a cell; a process that dies of it is an error."""
        found = self._answered(msgspec.msgpack.encode(cell), self.job.time_limit_s)
        self.served += 1
        return found

    def _answered(self, question: bytes, limit_s: float) -> Outcome:
        answers = cast("BinaryIO", self._process.stdout)
        with suppress(BrokenPipeError):
            stream = cast("BinaryIO", self._process.stdin)
            stream.write(framed(question))
            stream.flush()
        end = monotonic() + limit_s
        while not select([answers], [], [], max(0.0, end - monotonic()))[0]:
            if monotonic() >= end:
                self.kill()
                raise ProcessDiedError(f"took longer than {limit_s:g} s; expected less (--time-limit)", late=True)
        message = read_message(answers)
        if message is None:
            raise ProcessDiedError(self._last_words(), late=False)
        return _OUTCOME.decode(message)

    def _last_words(self) -> str:
        """Why a process has ended: its status, and the end of what it printed."""
        end = monotonic() + _END_S
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        with suppress(ChildProcessError):  # another thread has ended it
            while monotonic() < end and not os.waitid(os.P_PID, self._process.pid, flags):
                sleep(0.01)  # its answers have ended, and so will it
        self.kill()
        code = self._process.returncode
        if code == OUT_OF_MEMORY:
            limit = self.job.memory_limit_bytes
            most = "the machine has" if limit is None else f"{limit >> 20} MiB, the limit (--memory-limit)"
            return f"out of memory: needs more than {most}"
        with suppress(OSError):
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - _TAIL_BYTES))
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
            said = f": {printable(lines[-1], 300)}" if lines else ""
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            return f"the process ended ({how}){said}"
        return "the process ended"

    def kill(self) -> None:
        """End it, and all that it started; who waits for its answer is told."""
        with self._lock:
            if self._process.returncode is None:  # not reaped yet, so that the number is still that of its group
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def close(self) -> None:
        """End it, when nobody waits for it."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with suppress(BrokenPipeError):
                cast("BinaryIO", stream).close()


class Runner:
    """Runs cells from several threads, each in a process that runs no other at the same time."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.closed = False
        self._idle: list[Child] = []
        self._all: set[Child] = set()
        self._lock = Lock()
        self._store = Store(job.store)

    def run(self, cell: Cell) -> Outcome:
        """The outcome of a cell, whose row is in the store when this returns.

        A process that served others before may die of what they left behind: the cell then gets a new one.
        """
        start = monotonic()
        while True:
            child = self._take()
            warm = child.served > 0
            try:
                outcome = child.run(cell)
            except ProcessDiedError as error:
                with self._lock:
                    self._all.discard(child)
                child.close()
                if self.closed:
                    raise
                if warm and not error.late:
                    continue
                return record_failure(self._store, cell, self.job, str(error), monotonic() - start, host=node())
            with self._lock:
                kept = not self.closed
                if kept:
                    self._idle.append(child)
            if not kept:
                child.close()
            return outcome

    def _take(self) -> Child:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        child = Child(self.job)
        with self._lock:
            self._all.add(child)
        if self.closed:
            child.kill()
        return child

    def close(self) -> None:
        """End all processes; cells that are under way leave no row."""
        self.closed = True
        with self._lock:
            idle, self._idle = self._idle, []
            busy = self._all.difference(idle)
        for child in busy:
            child.kill()
        for child in idle:
            child.close()


def outcomes_here(cells: Sequence[Cell], job: Job, *, jobs: int) -> Outcomes:
    """Every cell on this machine, `jobs` at a time; in the order in which they end."""
    runner = Runner(job)
    waiting = iter(cells)
    threads = ThreadPoolExecutor(jobs)
    under_way: set[Future[Outcome]] = set()
    try:
        for cell in waiting:
            under_way.add(threads.submit(runner.run, cell))
            if len(under_way) < 2 * jobs:  # one that waits for each that runs: no process is ever idle
                continue
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ended)
        while under_way:
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ended)
    finally:
        for future in under_way:
            future.cancel()
        runner.close()
        threads.shutdown()
