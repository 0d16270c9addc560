"""Text of a qaic-opstats summary → DeviceSummary: of the vendor's tool, and of ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

from ...core.errors import CaptureError
from ...recording.summary import KB, DeviceSummary, DoorbellRow, KindRow, PortRow, ThreadRow

STATS_HZ = 19.2e6  # the vendor's UTimer; the text does not say it
INPUT_PORT = 100
_KIND = re.compile(
    r"c(\d+)\s+(\d+)\s+(?:[\d.]+%|N/A)\s+(\d+|N/A)\s+(?:[\d.]+%|N/A)\s+(\d+)\s+([\d.]+|N/A)\s+(?:[\d.]+|N/A)\s+(?:[\d.]+|N/A)"
    r"\s+([\d.]+|N/A)  (.*)"
)
_WAIT = re.compile(r"(sync|barrier) (\S+)")
_DETAILS = re.compile(r"(\S+ ?) (\S+) (\S+) (?:\((.*)\))?")
_THREAD = re.compile(
    r"c(\d+)\s+t(\d+) (\S+)\s+\d+ ucycles \[(\d+), (\d+)\]\s+(\d+) pcycles\s+(?:([\d.]+)%|N/A) utilization"
)
_INFERENCE = re.compile(r"c(\d+): Total inference pcycle is (\d+)")
_PORT = re.compile(r"c(\d+)t(\d+)p(\d+) Host_IO_Port ucycles:\s*(\d+)")
_DOORBELL = re.compile(r"c(\d+)p(\d+) doorbell rung at ucycle:\s*(\d+)")  # of ours; the vendor's form is not public
_ACTIVATE = re.compile(r"c(\d+)t(\d+) activate ucycles:\s*(\d+)")
_RATE = re.compile(r"\[(.+)\] Device instance inf/s: \((\d+)/[\d.e+-]+\): (?:[\d.e+-]+|N/A)")
_ROW = re.compile(r"c\d+\s+t?\d")  # of the tables of op kinds and of threads
T = TypeVar("T", int, float)
_MOST_LINES = 10_000_000


@dataclass(slots=True)
class _Found:
    """Rows as they are met."""

    kinds: list[KindRow] = field(default_factory=list)
    threads: list[tuple[int, int, str, int, int, int, int | None]] = field(default_factory=list)
    ports: list[PortRow] = field(default_factory=list)
    doorbells: list[DoorbellRow] = field(default_factory=list)
    activate: dict[tuple[int, int], int] = field(default_factory=dict)
    inference: list[int] = field(default_factory=list)
    network: str = ""
    batch_size: int = 1

    def kind(self, match: re.Match[str]) -> bool:
        core, ucycles, pcycles, count, out_kb, deviation, details = match.groups()
        numbers = (int(ucycles), _optional(int, pcycles), int(count))
        size = None if out_kb == "N/A" else round(float(out_kb) * KB)
        wait, whole = _WAIT.fullmatch(details), _DETAILS.fullmatch(details)
        if wait is not None:
            self.kinds.append(KindRow(int(core), wait[1], wait[2], "", "", *numbers, None, None, is_wait=True))
            return True
        if whole is not None:
            kind, group, memory, types = whole.groups()
            row = KindRow(int(core), kind, group, memory, types or "", *numbers, size, _optional(float, deviation))
            self.kinds.append(row)
        return whole is not None

    def thread(self, match: re.Match[str]) -> None:
        core, thread, group, start, end, pcycles, utilization = match.groups()
        busy = None if utilization is None else round(float(utilization) / 100 * int(pcycles))
        self.threads.append((int(core), int(thread), group, int(start), int(end), int(pcycles), busy))

    def port(self, match: re.Match[str]) -> None:
        core, thread, port, wait = map(int, match.groups())
        self.ports.append(PortRow(core, thread, port, wait, port == INPUT_PORT))

    def doorbell(self, match: re.Match[str]) -> None:
        self.doorbells.append(DoorbellRow(*map(int, match.groups())))

    def activated(self, match: re.Match[str]) -> None:
        core, thread, ticks = map(int, match.groups())
        self.activate[core, thread] = ticks

    def whole(self, match: re.Match[str]) -> None:
        self.inference.append(int(match[2]))

    def rate(self, match: re.Match[str]) -> None:
        self.network, self.batch_size = match[1], int(match[2])


def read_opstats_text(text: TextIO, *, source: str, unread: Callable[[str, str], None] | None = None) -> DeviceSummary:
    """The tables of a summary; what the text does not hold is unknown.

    Args:
        text: the open file.
        source: its name, for errors.
        unread: told the place and the text of every row that could not be read.
    """
    found = _Found()
    kinds: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], bool | None]], ...] = (
        (_KIND, found.kind),
        (_THREAD, found.thread),
        (_PORT, found.port),
        (_DOORBELL, found.doorbell),
        (_ACTIVATE, found.activated),
        (_INFERENCE, found.whole),
        (_RATE, found.rate),
    )
    for number, line in enumerate(text):
        if number >= _MOST_LINES:
            raise CaptureError(source, 0, f"more than {_MOST_LINES} lines; expected a summary of one inference")
        matches = ((pattern.fullmatch(line.rstrip("\n")), take) for pattern, take in kinds)
        taken = next((take(match) for match, take in matches if match is not None), False)
        if taken is False and unread is not None and _ROW.match(line) is not None:
            unread(f"line {number + 1}", line)
    if not found.threads:
        raise CaptureError(source, 0, "not an opstats summary; expected lines such as `c0    t0 HVX  … utilization`")
    threads = [ThreadRow(*row, found.activate.get((row[0], row[1]))) for row in found.threads]
    return DeviceSummary(
        network=found.network,
        device=None,
        inference=None,
        level=None,
        batch_size=found.batch_size,
        stats_hz=STATS_HZ,
        kinds=tuple(found.kinds),
        threads=tuple(threads),
        ports=tuple(found.ports),
        doorbells=tuple(found.doorbells),
        inference_pcycles=tuple(found.inference),
    )


def _optional(convert: Callable[[str], T], text: str) -> T | None:
    return None if text == "N/A" else convert(text)
