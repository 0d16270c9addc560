"""Perfetto's protocol buffers: read back with Perfetto's own schema, they say what the Chrome JSON says."""

from __future__ import annotations

import pytest

from opscope.analysis.totals.summarise import timeline
from opscope.analysis.totals.work import InferenceWork
from opscope.decode import Barriers, Threads, merge_traces
from opscope.program.wire import StatsSection
from opscope.views.timeline.perfetto_spans import ORDERING_FLOW, Interned
from opscope.views.timeline.perfetto_trace import PerfettoTrace
from opscope.workflows.program_recording import head_of
from support.decode.build import EVENTS, small
from support.viewers.trace_forms import Reader, both, from_json, instants_of


@pytest.mark.parametrize("threads", list(Threads))
def test_the_two_forms_agree_event_for_event(threads: Threads) -> None:
    profile = small()
    trace = profile.trace(threads=threads, barriers=Barriers.ALL)
    counted = timeline(InferenceWork.of(profile.trace(), profile.index))
    for one in (trace, counted):
        chrome, proto = both(profile, one)
        spans, counters, arrows = from_json(chrome)
        found = Reader(proto)
        assert sorted(found.spans) == sorted(spans)
        assert sorted(found.counters) == sorted(counters)
        assert found.instants == instants_of(chrome) != []
        assert sorted(
            (str(i % ORDERING_FLOW), "ordering" if i & ORDERING_FLOW else "true") for i in found.arrows
        ) == sorted(arrows)
        assert all(len(ends) == 2 for ends in found.arrows.values())


@pytest.mark.parametrize("threads", list(Threads))
def test_counters_of_single_ops_are_arguments_of_both_forms(threads: Threads) -> None:
    profile = small(EVENTS)
    trace = profile.trace(threads=threads)
    chrome, proto = both(profile, merge_traces([trace, trace]))  # rows of the second are numbered on
    spans, _, _ = from_json(chrome)
    assert sorted(Reader(proto).spans) == sorted(spans)
    counted = {(row, key): value for row, _, _, _, args in spans for key, value in args if key.startswith("PMU_")}
    assert {key for _, key in counted} == {"PMU_THREAD_CYCLES", "PMU_HMX_ACTIVE"}
    active = [
        int(dict(args)["PMU_HMX_ACTIVE"])
        for row, _, _, _, args in spans
        if row == "network_Core_0_HMX" and "PMU_HMX_ACTIVE" in dict(args)
    ]
    pmu = profile.captures[0].sections[StatsSection.PMU, 0]
    assert sum(active) == 2 * int(pmu["value"][pmu["event"] == 0x200].sum())


def test_the_protobuf_form_is_several_times_smaller() -> None:
    profile = small()
    chrome, proto = both(profile, profile.trace())
    interned = len(PerfettoTrace(head_of(profile.program))._interned.encoded())
    assert len(chrome) > 3 * (len(proto) - interned)


def test_processes_and_threads_carry_their_order() -> None:
    profile = small()
    _, proto = both(profile, profile.trace())
    tracks = [p.track_descriptor for p in Reader(proto).packets if p.HasField("track_descriptor")]
    assert [t.process.legacy_sort_index for t in tracks if t.HasField("process")] == [1, 2, 3]
    orders = [t.thread.legacy_sort_index for t in tracks if t.HasField("thread")]
    assert sorted(orders) == list(range(1, len(orders) + 1))


def test_a_string_is_interned_once() -> None:
    table = Interned()
    assert [table.number(Interned.NAMES, name) for name in ("a", "b", "a")] == [1, 2, 1]
    assert table.encoded() == table.encoded()
    assert table.number(Interned.VALUES, "a") == 1
