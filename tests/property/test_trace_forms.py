"""The two forms of a trace say the same, event for event, on random programs; needs Perfetto's schema."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from test_decode import Profiled, profiles

from opscope.decode import Barriers, Threads, merge_traces
from opscope.views.timeline.perfetto_spans import ORDERING_FLOW
from support.viewers.trace_forms import Reader, both, from_json


@given(profiles(), st.sampled_from(Threads), st.sampled_from(Barriers))
@settings(max_examples=40)
def test_json_and_protobuf_hold_the_same_spans_and_arrows(
    profile: Profiled, threads: Threads, barriers: Barriers
) -> None:
    devices = range(profile.program.devices)
    trace = merge_traces([profile.trace(device, threads=threads, barriers=barriers) for device in devices])
    chrome, proto = both(profile, trace)
    spans, _, arrows = from_json(chrome)
    found = Reader(proto)
    assert sorted(found.spans) == sorted(spans)
    kinds = [(str(i % ORDERING_FLOW), "ordering" if i & ORDERING_FLOW else "true") for i in found.arrows]
    assert sorted(kinds) == sorted(arrows)
