"""Chrome JSON: rows, names, arguments and arrows."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO

import pytest

from opscope.analysis.totals.summarise import timeline
from opscope.analysis.totals.work import InferenceWork
from opscope.core.meaning import Direction
from opscope.decode import Barriers, Threads, merge_traces
from opscope.machine.catalogue import words_of
from opscope.program.program import Detail, Operand
from opscope.recording.trace import Trace
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.workflows.program_recording import head_of
from support.decode.build import Profiled, small
from support.device.build import HMX, HVX, Step

Event = dict[str, object]


def events_of(profile: Profiled, trace: Trace | None = None, **options: object) -> list[dict[str, object]]:
    out = BytesIO()
    ChromeTrace(head_of(profile.program), **options).render(profile.trace() if trace is None else trace, out)  # type: ignore[arg-type]
    return json.loads(out.getvalue())["traceEvents"]  # type: ignore[no-any-return]


def rows_of(events: list[Event]) -> dict[object, object]:
    return {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}  # type: ignore[index]


def test_a_process_per_device_and_core_and_a_row_per_engine_in_reading_order() -> None:
    events = events_of(small())
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}  # type: ignore[index]
    assert processes == {1000: "network Device 0", 2000: "network_Core_0", 2001: "network_Core_1"}
    order = {e["tid"]: e["args"]["sort_index"] for e in events if e["name"] == "thread_sort_index"}  # type: ignore[index]
    names = rows_of(events)
    assert [names[tid] for tid in sorted(order, key=order.__getitem__)] == [
        "network Device 0",
        "network_Core_0",
        "network_Core_0_Host_IO_Port_p100",
        "network_Core_0_Host_IO_Port_p101",
        "network_Core_0_HVX",
        "network_Core_0_HMX",
        "network_Core_0_DMAIssue",
        "network_Core_0_DMAIssue_DMA DDR read",
        "network_Core_0_DMAIssue_DMA DDR read 2",
        "network_Core_0_DMAIssue_DMA DDR write",
        "network_Core_1",
        "network_Core_1_HVX",
    ]


def test_an_op_says_everything_that_is_known_of_it() -> None:
    profile = small()
    op = next(e for e in events_of(profile) if e.get("name") == "elementadd" and e["args"].get("oc") == "1")  # type: ignore[attr-defined]
    args = op["args"]
    assert isinstance(args, dict)
    assert all(isinstance(value, str) for value in args.values())
    row = next(r for r in profile.program.commands if r["group"] == HMX and r["ordinal"] == 1)
    detail = profile.program.details[row["detail"]]
    assert args["opKind"] == "elementadd"
    assert args["opName"] in {detail.name, profile.program.details[2].name, profile.program.details[1].name}
    assert args["opMemory"] == "VTCM"
    frequency = float(args["opPCycle"]) / float(args["opUCycle"]) * 19.2
    assert float(args["effectiveFreq"]) == pytest.approx(frequency, abs=0.005)
    per_kb = float(args["opPCycle"]) / (float(args["opOutputSize"]) / 1024)
    assert float(args["PCyclesPerKB"]) == pytest.approx(per_kb, abs=0.005)


@pytest.mark.parametrize(
    ("target", "category", "memory"),
    [("aic100-std", "aic", "TCM"), ("torq-sl2610", "op", "VTCM"), ("a-chip-of-mine", "op", "VTCM")],
)
def test_category_and_memories_are_in_the_words_of_the_target(target: str, category: str, memory: str) -> None:
    profile = small()
    profile = replace(profile, program=replace(profile.program, words=words_of(None, target)))
    spans = [event for event in events_of(profile) if event["ph"] == "X"]
    assert {event["cat"] for event in spans} == {category}
    told = {event["args"]["opMemory"] for event in spans if "opMemory" in event["args"]}  # type: ignore[index, operator]
    assert told == {"DDR", memory}


def test_operands_attributes_and_shapes_are_spelled_as_viewers_of_this_format_expect() -> None:
    found = [e["args"] for e in events_of(small()) if "opOperand0" in e.get("args", {})]  # type: ignore[operator]
    assert {"out VTCM Dest y f16 <2> 1KB", "in DDR Src w f16 <2 x 2>"} == {a["opOperand0"] for a in found}  # type: ignore[index]
    product = next(a for a in found if a["opOperand0"].startswith("out"))  # type: ignore[index]
    assert product["opAttributes"] == "{kernel: 1}"  # type: ignore[index]
    assert product["opShape"] == "Dest [2]"  # type: ignore[index]


def test_a_wait_has_its_length_and_says_whom_it_waits_for() -> None:
    wait = next(e for e in events_of(small()) if e.get("name") == "sync HMX")
    args = wait["args"]
    assert float(args["opSyncDurUs"]) == wait["dur"]  # type: ignore[index]
    assert args["waitsOn"] == "aiccopytovtcm"  # type: ignore[index]
    assert (args["waitsOnEngine"], args["waitsOnCore"], args["waitsOnOc"]) == ("DMAIssue", "0", "0")  # type: ignore[index]


def test_a_doorbell_is_an_instant_on_the_row_of_its_port() -> None:
    events = events_of(small())
    (bell,) = [e for e in events if e["ph"] == "i"]
    assert (bell["name"], rows_of(events)[bell["tid"]], bell["s"]) == (
        "Host_IO_Port doorbell",
        "network_Core_0_Host_IO_Port_p100",
        "t",
    )
    wait = next(e for e in events if e.get("name") == "Host_IO_Port input wait")
    assert bell["ts"] == pytest.approx(wait["ts"] + wait["dur"], abs=0.001)  # type: ignore[operator]


def test_transfers_in_flight_at_once_lie_on_rows_of_their_own() -> None:
    events = events_of(small())
    names = rows_of(events)
    flights = [names[e["tid"]] for e in events if e["ph"] == "X" and "DMA DDR read" in str(names.get(e["tid"]))]
    assert flights == ["network_Core_0_DMAIssue_DMA DDR read", "network_Core_0_DMAIssue_DMA DDR read 2"]


def test_arrows_leave_the_flight_of_a_copy_and_enter_the_op_that_needs_it() -> None:
    events = events_of(small(), flows=True)
    names = rows_of(events)
    spans = [e for e in events if e["ph"] == "X"]

    def inside(end: Event) -> list[str]:
        return [
            f"{names[s['tid']]}/{s['name']}"
            for s in spans
            if s["tid"] == end["tid"] and s["ts"] <= end["ts"] < s["ts"] + s["dur"]  # type: ignore[operator]
        ]

    arrows = {}
    for event in events:
        if event["ph"] in ("s", "f"):
            arrows.setdefault(event["id"], {})[event["ph"]] = event
    pairs = {(*inside(a["s"]), *inside(a["f"]), a["s"]["cat"]) for a in arrows.values()}
    assert ("network_Core_0_DMAIssue_DMA DDR read/aiccopytovtcm", "network_Core_0_HMX/elementadd", "true") in pairs
    assert ("network_Core_0_HMX/elementadd", "network_Core_0_HVX/elementadd", "true") in pairs
    assert all(a["s"]["cat"] == a["f"]["cat"] and a["f"]["bp"] == "e" for a in arrows.values())


def test_an_arrow_that_orders_only_has_another_category() -> None:
    profile = small()
    kinds = profile.program.dependency_kinds.copy()
    kinds[:] = 0
    ordered = replace(profile, program=replace(profile.program, dependency_kinds=kinds))
    trace = replace(profile.trace(), edges=_orderings(profile))
    assert {e["cat"] for e in events_of(ordered, trace, flows=True) if e["ph"] == "s"} == {"ordering"}


def _orderings(profile: Profiled) -> object:
    edges = profile.trace().edges.copy()
    edges["data"] = False
    return edges


def test_arrows_of_spans_shorter_than_a_tick_stand_behind_their_span() -> None:
    steps = (Step(HMX, 9000), Step(HVX, 1, needs=(0,)), Step(HVX, 1), Step(HMX, 1, needs=(2,)), Step(HVX, 9000))
    events = events_of(small(steps=steps), flows=True)
    ends = [number for number, e in enumerate(events) if e["ph"] in ("s", "f")]
    assert len(ends) == 4
    for number in ends:
        span = next(e for e in reversed(events[:number]) if e["ph"] == "X")
        empty = [e for e in events if e["ph"] == "X" and (e["tid"], e["ts"]) == (events[number]["tid"], span["ts"])]
        if span["dur"] == 0 and span in empty:
            assert span["args"]["oc"] == events[number]["args"]["oc"]  # type: ignore[index]
    bound = [e for e in events if e["ph"] in ("s", "f")]
    assert [e["ph"] for e in bound if e["id"] == 2] == ["s", "f"]  # it has left before it arrives
    assert {e["args"]["oc"] for e in bound if e["ph"] == "f"} == {"0", "1"}  # type: ignore[index]


def test_a_span_that_begins_with_an_empty_one_is_drawn_a_nanosecond_later() -> None:
    steps = (Step(HMX, 9000), Step(HVX, 1, needs=(0,)), Step(HVX, 9000, needs=(0,)))
    plain, drawn = (events_of(small(steps=steps), flows=flows) for flows in (False, True))
    starts = [
        {e["args"].get("oc"): e["ts"] for e in found if e.get("name") == "elementadd"} for found in (plain, drawn)
    ]
    assert starts[0]["1"] != starts[1]["1"] == pytest.approx(starts[0]["1"] + 0.001)


def test_selected_cores_and_devices_are_the_only_ones_shown() -> None:
    events = events_of(small(), cores=[1])
    assert {e["pid"] for e in events if e["ph"] == "X"} == {1000, 2001}
    two = small(steps=(Step(HVX, 500), Step(HVX, 700, device=1)))
    merged = merge_traces([two.trace(0), two.trace(1)])
    shown = events_of(two, merged, devices=[1])
    assert {str(name).split("_Core")[0].split(" ")[0] for name in rows_of(shown).values()} == {"network_slice01"}


def test_threads_apart_and_barriers_have_rows_of_their_own() -> None:
    profile = small()
    events = events_of(profile, profile.trace(threads=Threads.APART, barriers=Barriers.ALL))
    names = set(rows_of(events).values())
    assert {f"network_Core_0_HVX_t{i}" for i in range(4)} <= names
    assert {f"network_Core_0_HVX_t{i}_Barrier" for i in range(4)} & names
    barriers = [e["name"] for e in events if str(e.get("name")).startswith("barrier")]
    counts = {name: barriers.count(name) for name in barriers}
    assert counts == {
        f"barrier {g.name}": g.threads * _commands(profile, n) for n, g in enumerate(profile.program.groups)
    }


def _commands(profile: Profiled, group: int) -> int:
    return int((profile.program.commands["group"] == group).sum())


def test_counters_show_clock_bandwidth_and_local_memory() -> None:
    profile = small()
    counters = [
        e for e in events_of(profile, timeline(InferenceWork.of(profile.trace(), profile.index))) if e["ph"] == "C"
    ]
    assert {e["name"] for e in counters} >= {"Freq", "DDR read bandwidth", "VTCM in use"}
    clocks = [value for e in counters if e["name"] == "Freq" for value in e["args"].values()]  # type: ignore[attr-defined]
    assert clocks == [pytest.approx(1200, rel=0.01)] * len(clocks)


def test_the_bandwidth_counter_adds_up_to_the_bytes_that_were_moved() -> None:
    profile = small()
    trace = timeline(InferenceWork.of(profile.trace(), profile.index))
    number = next(i for i, c in enumerate(trace.counters) if c.name == "DDR read bandwidth")
    own = trace.samples[trace.samples["counter"] == number]
    moved = sum(float(v) * (b - a) for v, a, b in zip(own["value"], own["time_ns"], own["time_ns"][1:], strict=False))
    assert moved == pytest.approx(80_000, rel=1e-6)


def test_names_from_a_file_are_escaped_and_never_break_the_json() -> None:
    profile = small()
    operand = Operand(Direction.IN, "Src", 'x" y', 0, "f16", ())
    details = tuple(Detail('a"\\\x00\u2028\n', 'V"', "t", "s\t", (operand,), "}") for _ in profile.program.details)
    hostile = replace(profile, program=replace(profile.program, details=details, kinds=('k"\n',) * 4, name="n\x1b"))
    assert any(e.get("name") == 'k"\n' for e in events_of(hostile, hostile_trace(hostile)))


def hostile_trace(profile: Profiled) -> Trace:
    return replace(small().trace(), names=(*profile.program.kinds, *small().trace().names[4:]))


def test_a_trace_without_operators_is_still_one() -> None:
    from opscope.program.program import StatsOptions

    events = events_of(small(StatsOptions(level=40)))
    assert {e["name"] for e in events if e["ph"] == "X"} == {
        "Core-0-Execution",
        "Core-1-Execution",
        "Device-0-Execution",
    }


def test_spans_that_count_no_cycles_have_no_rates_of_them() -> None:
    profile = small()
    trace = profile.trace()
    spans = trace.spans.copy()
    spans["pcycles"] = spans["ucycles"] = -1
    shown = events_of(profile, replace(trace, spans=spans))  # of which every one is JSON
    told = [e for e in events_of(profile) if "PCyclesPerKB" in e.get("args", {})]  # type: ignore[operator]
    assert told
    assert not [e for e in shown if {"PCyclesPerKB", "UCyclesPerKB"} & set(e.get("args", {}))]  # type: ignore[call-overload]
