"""Laws that hold for every run: identities of the latency file, order, counts, and exclusive use of the device."""

from __future__ import annotations

from io import StringIO
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.device.host.pipeline import Guest, Pipeline
from opscope.device.host.sampling import choose_samples
from opscope.options import RunOptions
from opscope.recording.host_times import INFERENCE, HostTimes
from opscope.views.text.latency_csv import LatencyCsv
from support.recording.run_build import HOST_US, STATS_HZ, program_of

TIMES = [name for name in INFERENCE.names or () if name.endswith("_ns")]

runs = st.builds(
    RunOptions,
    num_iter=st.integers(1, 40),
    activations=st.integers(1, 4),
    set_size=st.integers(1, 12),
    threads=st.integers(1, 5),
    num_samples=st.integers(1, 50),
    seed=st.integers(0, 2**64 - 1),
)
host_us = st.dictionaries(st.sampled_from(sorted(HOST_US)), st.floats(0, 5000))
ticks = st.integers(0, 10**6)


def times_of(options: RunOptions, host: dict[str, float], most: int, slots: int) -> HostTimes:
    program = program_of(host=host)

    def exec_ticks(activation: int, inference: int) -> int:
        return (activation * 7919 + inference * 104729 + 1) % (most + 1)

    (times,) = Pipeline([Guest(program, slots, exec_ticks)], options).run()
    return times


@given(runs, host_us, ticks, st.integers(1, 4))
def test_inferences_are_complete_in_order_and_alone_on_their_slot(
    options: RunOptions, host: dict[str, float], most: int, slots: int
) -> None:
    times = times_of(options, host, most, slots)
    rows = times.rows
    assert len(rows) == options.limit * options.activations
    assert all((rows[later] >= rows[earlier]).all() for earlier, later in pairwise(TIMES))
    for slot in range(slots):
        own = np.sort(rows[rows["activation"] % slots == slot], order=["started_ns", "ended_ns"])
        assert (own["started_ns"][1:] >= own["ended_ns"][:-1]).all()
    for activation in range(options.activations):
        own = times.of_activation(activation)
        assert own["inference"].tolist() == list(range(options.limit))
        assert (np.diff(own["enqueued_ns"]) >= 0).all()
        assert own["queue_depth"].max() < options.set_size
    busy = np.abs((rows["ended_ns"] - rows["started_ns"]) - rows["exec_ticks"] * 1e9 / STATS_HZ)
    assert (busy <= 1).all()
    assert times.duration_ns >= busy.max()


@given(runs, host_us, ticks, st.sampled_from([0, 40, 50, 70]))
def test_the_latency_file_keeps_its_identities(
    options: RunOptions, host: dict[str, float], most: int, level: int
) -> None:
    times = times_of(options, host, most, options.activations)
    sampling = choose_samples(times, options)
    for own in sampling.rows:
        out = StringIO()
        LatencyCsv(program_of(level=level), requested=options.num_samples).render(times, own, out)
        *_, counts, header = out.getvalue().splitlines()[:5]
        lines = out.getvalue().splitlines()[5:]
        assert counts == f"NumSamples collected: {len(lines)} Num Requested: {options.num_samples}"
        assert len(lines) == min(options.num_samples, options.limit)
        names = [cell.strip() for cell in header.split(",")]
        for line in lines:
            _check(dict(zip(names, (cell.strip() for cell in line.split(",")), strict=True)), level)


def _check(row: dict[str, str], level: int) -> None:
    ns = {name: round(float(value) * 1000) for name, value in row.items() if value != "N/A"}
    assert ns["hostRoundTripUs"] == ns["exectoVcUs"] + ns["execToCompleteUs"]
    assert ns["execTotalUs"] >= ns["hostRoundTripUs"]
    stages = sum(ns[name] for name in ("enqTimeUs", "preProcTimeUs", "submitTimeUs", "execTotalUs", "postProcUs"))
    assert ns["totalRoundtripTimeUs"] >= stages
    assert ("devExecUs" in ns) == (level >= 40)
    assert ("devInWaitTimeUs" in ns) == (level >= 50)
    if level >= 40:
        assert ns["devExecUs"] <= ns["execToCompleteUs"] + 1
    assert int(row["numInfInQueue"]) == int(row["queueDepth"]) + 1


@given(runs, host_us, ticks)
def test_a_run_is_the_same_for_the_same_seed(options: RunOptions, host: dict[str, float], most: int) -> None:
    first, again = (times_of(options, host, most, 2).rows.tobytes() for _ in range(2))
    assert first == again


@given(runs, ticks, st.integers(1, 4))
def test_more_slots_are_never_slower(options: RunOptions, most: int, slots: int) -> None:
    few, many = (times_of(options, {}, most, n).duration_ns for n in (slots, options.activations * slots))
    assert many <= few + 1e9 / STATS_HZ * options.limit  # every start waits for a tick
