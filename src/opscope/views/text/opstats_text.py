"""DeviceSummary as text, in the layout of the vendor's own summary; sections of our own follow behind it."""

from __future__ import annotations

from typing import TextIO

from ...core.errors import printable
from ...core.target_words import TargetWords
from ...recording.summary import DeviceSummary, KindRow, ThreadRow
from .opstats_sections import write_sections

HEADER = (
    "core  ucycles  ucycles(%)     pcycles  pcycles(%)  count      out KB  ucycles/KB  pcycles/KB  stddev(pc/KB)"
    "  opdetails"
)
UNKNOWN = "N/A"


class OpstatsText:
    """One text per stats buffer."""

    suffix = ".summary.txt"

    def __init__(self, *, sections: bool = True, top: int = 20) -> None:
        self.sections = sections
        self.top = top

    def render(self, summary: DeviceSummary, out: TextIO) -> None:
        for number, core in enumerate(summary.cores):
            _write_core(summary, core, number, out)
        _write_totals(summary, out)
        if self.sections:
            write_sections(summary, out, top=self.top)


def _write_core(summary: DeviceSummary, core: int, number: int, out: TextIO) -> None:
    """Everything of one core: op table, threads, frequency, ports and counters. `number` is its place in the device."""
    rows, words = [row for row in summary.kinds if row.core == core], summary.words
    threads = summary.threads_of(core)
    ucycles, pcycles = summary.core_ucycles(core), summary.core_pcycles(core)
    if rows:
        out.write(f"\n{HEADER}\n")
        for row in rows:
            out.write(_kind_line(row, ucycles, pcycles, words))
    out.write(f"\nc{core} total:{ucycles:16d} ucycles{pcycles:16d} pcycles (thread max)\n")
    for thread in threads:
        out.write(_thread_line(thread))
    out.write("\n\n")
    for thread in threads:
        out.write(
            f"c{core:02d}t{thread.thread} batch ucycles:{thread.ucycles:17d} [{thread.start},{thread.end}]"
            f"    pcycles:{thread.pcycles:16d} \n"
        )
    if number < len(summary.inference_pcycles):
        out.write(f"c{core}: Total inference pcycle is {summary.inference_pcycles[number]}\n")
    hertz = summary.effective_hz(core)
    out.write(f"c{core}: Effective frequency is {UNKNOWN if hertz is None else f'{hertz / 1e6:.2f}'}MHz\n")
    for port in summary.ports:
        if port.core == core:
            out.write(f"c{core:02d}t{port.thread}p{port.port} Host_IO_Port ucycles:{port.wait:17d}\n")
    for bell in summary.doorbells:
        if bell.core == core:
            out.write(f"c{core:02d}p{bell.port} doorbell rung at ucycle:{bell.time:16d}\n")
    for thread in threads:
        if thread.activate is not None:
            out.write(f"c{core:02d}t{thread.thread} activate ucycles:{thread.activate:18d}\n")
    _write_counters(summary, core, out)


def _kind_line(row: KindRow, ucycles: int, pcycles: int, words: TargetWords) -> str:
    """A line of the op table; shares are of these cycles of the core."""
    cells = (
        f"c{row.core}".ljust(4),
        f"{row.ucycles:7d}",
        f"{_percent(row.ucycles, ucycles):>10}",
        f"{UNKNOWN if row.pcycles is None else row.pcycles:>10}",
        f"{UNKNOWN if row.pcycles is None else _percent(row.pcycles, pcycles):>10}",
        f"{row.count:5d}",
        f"{_decimal(row.out_kb):>10}",
        f"{_decimal(row.ucycles_per_kb):>10}",
        f"{_decimal(row.pcycles_per_kb):>10}",
        f"{_decimal(row.deviation):>13}",
        _details(row, words),
    )
    return "  ".join(cells) + "\n"


def _details(row: KindRow, words: TargetWords) -> str:
    if row.is_wait:
        return printable(f"{row.kind} {row.group}")
    types = f"({row.types})" if row.types else ""
    return printable(f"{row.kind} {row.group} {words.memory(row.memory)} {types}", 400)


def _thread_line(row: ThreadRow) -> str:
    utilization = f"{UNKNOWN:>8}" if row.utilization is None else f"{100 * row.utilization:7.2f}%"
    return (
        f"c{row.core}".ljust(4)
        + f"  t{row.thread} {printable(row.group):<8}{row.ucycles:16d} ucycles [{row.start}, {row.end}]"
        f"{row.pcycles:16d} pcycles{utilization} utilization\n"
    )


def _write_counters(summary: DeviceSummary, core: int, out: TextIO) -> None:
    """PMU and traffic of outer memory: the vendor's layout of these is not public, so this one is ours."""
    for ddr in summary.ddr:
        if ddr.core == core:
            seconds = ddr.ticks / summary.stats_hz
            moved = ddr.read_bytes + ddr.write_bytes
            rate = f"{moved / seconds / 1e9:.3f}" if seconds else UNKNOWN
            memory = f"c{core:02d} {printable(ddr.memory, 40)}"
            out.write(f"{memory} read bytes:{ddr.read_bytes:20d}\n")
            out.write(f"{memory} write bytes:{ddr.write_bytes:19d}\n")
            out.write(f"{memory}TrafficMB:{moved / 1e6:22.3f}\n")
            out.write(f"{memory}BandwidthGBPerSec:{rate:>14}\n")
    if any(row.core == core for row in summary.pmu):
        out.write(f"c{core:02d} PMU events are the simulator's own: the vendor's numbers are not public\n")
    for row in summary.pmu:
        if row.core == core:
            value = UNKNOWN if row.value is None else row.value
            out.write(f"c{core:02d}t{row.thread} PMU 0x{row.event:X} {printable(row.name)}:{value:>20}\n")
    for active in summary.active:
        if active.core == core:
            out.write(f"c{core:02d} {printable(active.block)}ActivePct:{100 * active.share:20.2f}\n")


def _write_totals(summary: DeviceSummary, out: TextIO) -> None:
    if not summary.threads:
        return
    start, end = summary.window
    out.write(f"total batch ucycles:{end - start:17d} [{start}, {end}]\n")
    seconds = f"{summary.seconds:.6g}"
    for word, count in (("batch", 1), ("inf", summary.batch_size)):
        rate = f"{count / summary.seconds:.6g}" if summary.seconds else UNKNOWN
        out.write(f"[{printable(summary.network)}] Device instance {word}/s: ({count}/{seconds}): {rate}\n")
    for word, inputs in (("input", True), ("output", False)):
        wait = summary.longest_wait(inputs=inputs)
        if wait is not None:
            out.write(f"max {word} wait ucycles:{wait:{18 if inputs else 17}d}\n")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}%" if whole else UNKNOWN


def _decimal(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"
