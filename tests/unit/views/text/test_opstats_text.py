"""The summary text: the vendor's layout to the space, its arithmetic, and what stands behind it."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest

from opscope.analysis.totals.summarise import summarise_device
from opscope.analysis.totals.work import InferenceWork, ProgramIndex
from opscope.core.errors import CaptureError
from opscope.machine.catalogue import load
from opscope.options import CompileOptions, options_of
from opscope.plugins.qaic.summary_text import read_opstats_text
from opscope.program.program import Group, MemoryInfo, StatsOptions
from opscope.recording.summary import DeviceSummary
from opscope.views.text.opstats_text import OpstatsText
from support.decode.build import EVENTS, small
from support.decode.opstats_identities import check_identities
from support.plugins.qaic_published import summary_text


def rendered(summary: DeviceSummary, **options: bool) -> str:
    out = StringIO()
    OpstatsText(**options).render(summary, out)  # type: ignore[arg-type]
    return out.getvalue()


def summary_of(stats: StatsOptions | None = None) -> DeviceSummary:
    profile = small(stats)
    return summarise_device(InferenceWork.of(profile.trace(), profile.index), profile.captures[0], network="network")


def test_the_published_summary_is_read_and_written_back_byte_for_byte() -> None:
    text = summary_text()
    summary = read_opstats_text(StringIO(text), source="published")
    assert rendered(summary) == text


def test_the_identities_hold_in_the_published_summary() -> None:
    text = summary_text()
    summary = read_opstats_text(StringIO(text), source="published")
    check_identities(summary, text)
    assert (summary.network, summary.batch_size, summary.cores) == ("QAicGraph", 8, (0, 1))
    hmx = sum(row.ucycles for row in summary.kinds if row.core == 0 and row.group == "HMX")
    assert hmx / summary.core_ucycles(0) == pytest.approx(0.995, abs=0.003)  # the row covers the timeline


def test_the_identities_hold_in_ours() -> None:
    text = rendered(summary_of(replace(EVENTS, level=70)))
    check_identities(read_opstats_text(StringIO(text), source="ours"), text)


def test_an_event_that_is_not_simulated_is_not_a_zero() -> None:
    stats = replace(
        EVENTS, events=(0x2, 0x5), event_names=("THREAD_CYCLES", "not simulated"), event_counts=("cycles", "")
    )
    lines = [line for line in rendered(summary_of(stats)).splitlines() if "PMU 0x5" in line]
    assert len(lines) == 2 * 6
    assert lines[0] == "c00t0 PMU 0x5 not simulated:                 N/A"


def test_doorbells_are_shown_and_read_back() -> None:
    text = rendered(summary_of())
    assert "c00p100 doorbell rung at ucycle:   9803252406782\n" in text
    assert read_opstats_text(StringIO(text), source="ours").doorbells == summary_of().doorbells != ()
    assert "doorbell" not in rendered(summary_of(StatsOptions(level=40)), sections=False)


def test_sync_and_work_of_a_single_thread_cover_the_timeline_up_to_its_last_command() -> None:
    summary = summary_of()
    hmx = [row for row in summary.kinds if row.core == 0 and row.group == "HMX"]
    thread = next(row for row in summary.threads if row.core == 0 and row.group == "HMX")
    after = 3000 * 19.2e6 / 1.2e9  # core 1 works so many cycles longer
    assert sum(row.ucycles for row in hmx) == thread.ucycles - after


def test_commands_whose_word_is_that_of_a_wait_are_no_waits() -> None:
    profile = small()
    program = replace(profile.program, kinds=tuple("sync" for _ in profile.program.kinds))
    index = ProgramIndex.of(program)
    summary = summarise_device(InferenceWork.of(profile.trace(), index), profile.captures[0], network="network")
    works = [row for row in summary.kinds if row.kind == "sync" and row.pcycles is not None]
    assert works
    assert not any(row.is_wait for row in works)
    assert any(row.is_wait for row in summary.kinds)
    memories = {row.memory for row in works}
    assert all(any(memory in line for line in rendered(summary).splitlines()) for memory in memories if memory)


def test_rows_are_laid_out_in_the_columns_of_the_header() -> None:
    lines = rendered(summary_of()).splitlines()
    header = next(line for line in lines if line.startswith("core  "))
    ends = [match.end() for match in re.finditer(r"\S+(?: KB)?", header)][1:-1]
    for line in lines[lines.index(header) + 1 :]:
        if not line:
            break
        assert all(line[end - 1] != " " and line[end : end + 1] in (" ", "") for end in ends), line


@pytest.mark.parametrize(
    ("level", "has", "lacks", "note"),
    [
        (40, "c00t0 activate ucycles:", "Host_IO_Port", "no operator cycle counts at this stats level; compile with"),
        (50, "c00t0p100 Host_IO_Port ucycles:               40", "elementadd", "--stats-level 70 or more"),
        (70, "elementadd HVX VTCM (float16)", "Extended PMU", "no PMU counters"),
    ],
)
def test_each_level_prints_what_it_has_and_says_what_is_missing(level: int, has: str, lacks: str, note: str) -> None:
    text = rendered(summary_of(StatsOptions(level=level)))
    assert has in text
    assert lacks not in text
    assert note in text


@pytest.mark.parametrize(("target", "memory"), [("aic100-ultra", "TCM"), ("torq-sl2610", "VTCM")])
def test_memories_are_spelled_as_by_the_vendor_of_the_target_alone(target: str, memory: str) -> None:
    text = rendered(replace(summary_of(), words=load(target).words))
    assert f"elementadd HVX {memory} (float16)" in text


def test_counters_of_outer_memory_bear_its_name() -> None:
    profile = small(EVENTS)
    program = replace(profile.program, memories=(MemoryInfo("XRAM", is_outer=True), *profile.program.memories[1:]))
    index = ProgramIndex.of(program)
    work = InferenceWork.of(profile.trace(), index)
    text = rendered(summarise_device(work, profile.captures[0], network="network"))
    assert re.search(r"^c00 XRAM read bytes: +80000$", text, re.M)
    assert re.search(r"^c00 XRAMTrafficMB: +[\d.]+$", text, re.M)
    assert not re.search(r"DDR (read|write) bytes|DDRTraffic|DDRBandwidth", text)


def test_a_share_at_work_is_called_after_the_block_of_its_event() -> None:
    stats = replace(EVENTS, event_names=("THREAD_CYCLES", "DMA_ACTIVE"), event_blocks=("", "matrix"))
    assert re.search(r"^c00 matrixActivePct: +\d+\.\d\d$", rendered(summary_of(stats)), re.M)
    older = replace(EVENTS, event_names=("THREAD_CYCLES", "at work"))  # the group that it counts
    assert re.search(r"^c00 HMXActivePct: +\d+\.\d\d$", rendered(summary_of(older)), re.M)


def test_counters_of_the_pmu_of_ddr_and_of_single_ops_are_printed() -> None:
    text = rendered(summary_of(EVENTS))
    assert re.search(r"^c00t4 PMU 0x200 HMX_ACTIVE: +\d+$", text, re.M)
    assert re.search(r"^c00 HMXActivePct: +\d+\.\d\d$", text, re.M)
    assert re.search(r"^c00 DDR read bytes: +80000$", text, re.M)
    assert re.search(r"^c00 DDRBandwidthGBPerSec: +\d+\.\d{3}$", text, re.M)
    assert "Extended PMU stats, by kind of op" in text
    assert "no PMU counters" not in text


def test_a_name_with_control_characters_cannot_reach_the_terminal() -> None:
    profile = small()
    groups = (Group("H\nX", "HVX", 4), *profile.program.groups[1:])
    kinds = ("bad\x1b[31m", *profile.program.kinds[1:])
    index = ProgramIndex.of(replace(profile.program, kinds=kinds, groups=groups))
    text = rendered(
        summarise_device(InferenceWork.of(profile.trace(), index), profile.captures[0], network="n\x00et\n[fake] line")
    )
    assert "\x1b" not in text
    assert "\x00" not in text
    assert r"bad\x1b[31m H\nX" in text


def test_a_text_that_is_no_summary_is_refused() -> None:
    with pytest.raises(CaptureError, match=r"^x\.txt: byte 0x0: not an opstats summary; expected lines such as"):
        read_opstats_text(StringIO("hello\n"), source="x.txt")


def test_flags_that_are_advised_are_those_of_compile() -> None:
    known = {f"--{name.replace('_', '-')}" for name in options_of(CompileOptions)}
    for level in (40, 50, 70):
        advised = set(re.findall(r"(?<=\s)--?[a-z][a-z-]+", rendered(summary_of(StatsOptions(level=level)))))
        assert advised <= known
        assert {"--ddr-stats", "--pmu-recipe"} <= advised
