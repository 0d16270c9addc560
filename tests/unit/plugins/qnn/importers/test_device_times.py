"""A run on a device, taken apart."""

from __future__ import annotations

import pytest

from opscope.plugins.qnn.importers.device_times import (
    ACCELERATOR,
    FAR_END,
    NETRUN,
    POWER_UP,
    RPC,
    VTCM,
    WORKING,
    causes_of,
    parts_of,
    shared_times,
)
from opscope.plugins.qnn.importers.events import EXECUTE_TIME

# Public figures of devices, in us: a graph that was called once, cold; one that was warmed up.
COLD = {EXECUTE_TIME: 3001, RPC: 2886, FAR_END: 2381, ACCELERATOR: 1734, WORKING: 77, VTCM: 804, POWER_UP: 29218}
WARM = {RPC: 4837, ACCELERATOR: 1816, WORKING: 1783, VTCM: 199, POWER_UP: 36}


def shown(events: dict[str, float]) -> dict[str, float]:
    return {stage.name: stage.ns / 1e3 for stage in parts_of(events).stages}


def test_every_event_adds_what_the_one_inside_of_it_lacks() -> None:
    events = {NETRUN: 100, EXECUTE_TIME: 98, RPC: 90, FAR_END: 70, ACCELERATOR: 60, WORKING: 50}
    assert shown(events) == {"runtime": 10, "RPC": 20, "dispatch": 10, "resource wait": 10, "device": 50}


def test_acquisitions_are_taken_out_of_what_is_not_work_from_the_inside() -> None:
    assert shown(WARM) == {"RPC": 2819, "memory wait": 199, "power-up": 36, "device": 1783}
    assert shown({EXECUTE_TIME: 490, RPC: 410, ACCELERATOR: 245, VTCM: 11, POWER_UP: 57}) == {
        "runtime": 80,
        "RPC": 97,
        "memory wait": 11,
        "power-up": 57,
        "device": 245,
    }


def test_one_that_is_longer_than_the_call_is_in_no_part_and_said() -> None:
    parts = parts_of(COLD)
    assert {stage.name: stage.ns / 1e3 for stage in parts.stages} == {
        "runtime": 115,
        "RPC": 505,
        "dispatch": 647,
        "memory wait": 804,
        "resource wait": 853,
        "device": 77,
    }
    assert parts.whole_ns == 3_001_000
    assert parts.notes == (
        "Time for HVX + HMX power on and acquire, 29.2 ms, is longer than all of the call that is not work, 2 ms: "
        "it lies outside of the call, and is in no part of it",
    )


def test_an_event_that_is_longer_than_the_one_around_it_is_left_out_and_said() -> None:
    parts = parts_of({EXECUTE_TIME: 100, RPC: 120, ACCELERATOR: 60})
    assert [(stage.name, stage.ns) for stage in parts.stages] == [("runtime", 40_000), ("device", 60_000)]
    assert parts.notes == (
        "RPC (execute) time is longer than QNN (execute) time, which holds it: it is left out of the parts",
    )


@pytest.mark.parametrize("events", [{}, {EXECUTE_TIME: 5}, {EXECUTE_TIME: 5, RPC: 4}, {ACCELERATOR: 3}, {RPC: None}])
def test_where_parts_are_not_told_there_are_none(events: dict[str, float]) -> None:
    assert parts_of(events).stages == ()


def test_parts_that_take_long_are_findings_with_what_to_do() -> None:
    found = {cause.id: cause for cause in causes_of(parts_of(COLD), calls=2)}
    assert set(found) == {"host-stages", "memory-wait", "resource-wait"}
    assert found["memory-wait"].title == "waiting for VTCM takes 26.8% of the 3 ms that the run takes"
    assert found["memory-wait"].detail.endswith("2 calls, one per graph")
    assert all(cause.action for cause in found.values())
    assert list(causes_of(parts_of({ACCELERATOR: 96, RPC: 100}), calls=1)) == []


def test_times_of_nodes_add_up_to_the_work_without_its_waits() -> None:
    assert list(shared_times([1, None, 3], {ACCELERATOR: 9.0, WORKING: 8.0})) == [2000, None, 6000]
    assert list(shared_times([1, 3], {})) == [None, None]
    assert list(shared_times([0, 0], {ACCELERATOR: 9.0})) == [None, None]
