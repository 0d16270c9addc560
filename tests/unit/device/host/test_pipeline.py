"""The path of many inferences through host and device."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from opscope.core.errors import ProgramError, UsageError
from opscope.core.meaning import Does
from opscope.device.host.pipeline import Guest, Pipeline
from opscope.device.host.stage_times import HOST_SPREAD, StageSource
from opscope.machine import catalogue as targets
from opscope.options import RunOptions
from opscope.recording.host_times import INFERENCE, STAGES, between
from support.recording.run_build import HOST_RATES, HOST_US, STATS_HZ, program_of, run_of

INPUTS, OUTPUTS = 4 * 3 * 8 + 4 * 4 * 4, 4 * 10 * 2  # bytes of the program by hand
TIMES = [name for name in INFERENCE.names or () if name.endswith("_ns")]
EXACT = {"host_spread": 0.0}


def bytes_ns(size: int) -> float:
    """Over the link, and through the host's memory."""
    return size / 16 + size / 5


def test_every_point_in_time_follows_the_one_before_it() -> None:
    rows = run_of(RunOptions(num_iter=50, activations=2), slots=2).rows
    for earlier, later in pairwise(TIMES):
        assert (rows[later] >= rows[earlier]).all(), later


def test_an_inference_with_everything_to_itself_takes_the_sum_of_its_stages() -> None:
    program = program_of(simulation=EXACT)
    times = run_of(RunOptions(num_iter=5, set_size=1), program=program)
    device_ns = 1_000_000
    stages_us = sum(HOST_US.values()) + HOST_US["link_latency"] - HOST_US["application"]  # the link is passed twice
    expected = device_ns + 1000 * stages_us + bytes_ns(INPUTS + OUTPUTS)
    assert np.abs(times.latencies_ns() - expected).max() <= 1e9 / STATS_HZ + 4  # the device starts at a tick
    stages = sum(between(times.rows, *ends) for ends in STAGES.values())
    assert (stages == times.latencies_ns()).all()


def test_transfers_and_processing_take_their_bytes_beside_their_fixed_parts() -> None:
    large = replace(program_of(simulation=EXACT), inputs=(("image", "u8", (75_264_000,)),))
    row = run_of(RunOptions(num_iter=1), program=large).rows
    assert between(row, "channel_ns", "arrived_ns")[0] == 130_000 + 75_264_000 / 16
    assert between(row, "taken_ns", "prepared_ns")[0] == 8_000 + 75_264_000 / 5
    assert between(row, "ended_ns", "completed_ns")[0] == 130_000 + OUTPUTS / 16
    assert between(row, "returned_ns", "processed_ns")[0] == 180_000 + OUTPUTS / 5


def test_no_draw_is_faster_than_the_link() -> None:
    large = replace(program_of(), inputs=(("image", "u8", (16_000_000,)),))
    rows = run_of(RunOptions(num_iter=200, set_size=1), program=large).rows
    took = between(rows, "channel_ns", "arrived_ns")
    assert took.min() > 1_000_000
    assert len(set(took.tolist())) > 100


def test_the_stats_buffer_comes_back_with_the_outputs() -> None:
    program = program_of(simulation=EXACT, moved_bytes=160_000)
    program.commands["does"] = Does.STATS
    row = run_of(RunOptions(num_iter=1), program=program).rows
    assert between(row, "ended_ns", "completed_ns")[0] == 130_000 + (160_000 + OUTPUTS) / 16


def test_activations_share_the_link() -> None:
    large = replace(program_of(simulation=EXACT), inputs=(("image", "u8", (16_000_000,)),))
    rows = run_of(RunOptions(num_iter=3, activations=4, set_size=1), program=large, slots=4, ticks=10).rows
    arrived = np.sort(rows["arrived_ns"])
    assert (np.diff(arrived) >= 1_000_000).all()  # 16 MB at 16 GB/s, one after the other


def test_the_published_run_comes_out_of_its_bytes() -> None:
    """Means of the latency file of the vendor's tutorial, whose ports and stats buffer have these bytes."""
    target = targets.load("aic100-std").host
    assert target is not None
    us = {name: getattr(target, name).value for name in HOST_US}
    loaded = ("link_latency", "completion", "dequeue", "application")  # seven activations kept the host busy
    us |= {name: getattr(target, name).largest for name in loaded}
    rates = {name: getattr(target, f"{name}_bytes_per_second").smallest for name in HOST_RATES}
    program = replace(
        program_of(simulation=EXACT, moved_bytes=885_381, host=us),
        host_bytes_per_second=rates,
        inputs=(("ids", "i32", (3, 8, 128)),),
        outputs=(("logits", "f16", (2, 8, 128)),),
    )
    program.commands["does"] = Does.STATS
    row = run_of(RunOptions(num_iter=2, set_size=1), program=program, ticks=round(23_051.37 * 19.2)).rows[1:]
    for start, end, expected in (
        ("enqueued_ns", "taken_ns", 6.761),
        ("taken_ns", "prepared_ns", 7.632),
        ("prepared_ns", "submitted_ns", 1.556),
        ("submitted_ns", "channel_ns", 4.872),
        ("channel_ns", "completed_ns", 23_367.929),
        ("submitted_ns", "returned_ns", 23_442.736),
        ("returned_ns", "processed_ns", 182.493),
        ("enqueued_ns", "dequeued_ns", 23_693.604),
    ):
        assert between(row, start, end)[0] / 1000 == pytest.approx(expected, rel=0.005, abs=0.1), end


def test_what_is_submitted_first_runs_first_and_the_queue_in_front_of_it_is_what_it_waits_for() -> None:
    rows = run_of(RunOptions(num_iter=60, set_size=6)).rows
    by_submit = rows[np.argsort(rows["submitted_ns"], kind="stable")]
    for name in ("channel_ns", "arrived_ns", "started_ns", "completed_ns"):
        assert (np.diff(by_submit[name]) > 0).all(), name
    first = by_submit[:6]
    assert first["queue_depth"].tolist() == [0, 1, 2, 3, 4, 5]


def test_no_more_inferences_are_on_their_way_than_the_set_size_allows() -> None:
    rows = run_of(RunOptions(num_iter=40, set_size=3)).rows
    for row in rows:
        on_their_way = (rows["enqueued_ns"] <= row["enqueued_ns"]) & (rows["dequeued_ns"] > row["enqueued_ns"])
        assert on_their_way.sum() <= 3


def test_a_busy_device_is_fed_without_gaps_and_never_runs_two_at_once() -> None:
    rows = np.sort(run_of(RunOptions(num_iter=30, set_size=4)).rows, order="started_ns")
    gaps = rows["started_ns"][1:] - rows["ended_ns"][:-1]
    assert (gaps >= 0).all()
    assert (gaps[4:] == 0).all()
    assert (rows["input_wait_ticks"][5:] == 0).all()


def test_a_device_that_is_starved_counts_how_long_it_waited() -> None:
    rows = run_of(RunOptions(num_iter=10, set_size=1)).rows
    gaps = rows["started_ns"][1:] - rows["ended_ns"][:-1]
    assert np.abs(rows["input_wait_ticks"][1:] - gaps * STATS_HZ / 1e9).max() <= 1


def test_activations_with_slots_of_their_own_run_at_once_and_more_of_them_queue() -> None:
    alone = run_of(RunOptions(num_iter=30), slots=1).duration_ns
    side_by_side = run_of(RunOptions(num_iter=30, activations=3), slots=3).duration_ns
    in_turn = run_of(RunOptions(num_iter=30, activations=3), slots=1)
    assert side_by_side < 1.1 * alone
    assert in_turn.duration_ns > 2.7 * alone
    order = np.sort(in_turn.rows, order="started_ns")
    assert (order["started_ns"][1:] >= order["ended_ns"][:-1]).all()


def test_a_slot_of_stages_begins_the_next_inference_before_the_first_has_ended() -> None:
    guest = Guest(program_of(simulation=EXACT), 1, lambda a, i: 19_200, holds=0.6)
    (times,) = Pipeline([guest], RunOptions(num_iter=30)).run()
    rows = times.rows
    apart = np.diff(np.sort(rows["started_ns"]))[5:]
    assert apart == pytest.approx(600_000, abs=60)
    assert (rows["ended_ns"] - rows["started_ns"]) == pytest.approx(1_000_000, abs=1)


def test_several_programs_share_the_link_and_not_their_slots() -> None:
    large = replace(program_of(simulation=EXACT), inputs=(("image", "u8", (16_000_000,)),))
    guests = [Guest(large, 1, lambda a, i: 10) for _ in range(3)]
    several = Pipeline(guests, RunOptions(num_iter=3, set_size=1)).run()
    assert [times.rows["activation"].tolist() for times in several] == [[0, 0, 0]] * 3
    arrived = np.sort(np.concatenate([times.rows["arrived_ns"] for times in several]))
    assert (np.diff(arrived) >= 1_000_000).all()  # 16 MB at 16 GB/s, one after the other


def test_every_device_of_a_card_has_a_link_of_its_own() -> None:
    large = replace(program_of(simulation=EXACT), inputs=(("image", "u8", (160_000_000,)),))
    options = RunOptions(num_iter=3, activations=2, set_size=1)
    one, two = (Pipeline([Guest(large, 2, lambda a, i: 10, links)], options).run()[0] for links in ((0, 0), (0, 1)))
    assert np.diff(np.sort(one.rows["arrived_ns"])).min() >= 10_000_000  # 160 MB at 16 GB/s, one after the other
    assert np.diff(np.sort(two.rows["arrived_ns"])).min() == 0


def test_an_activation_keeps_the_order_of_its_channel() -> None:
    rows = run_of(RunOptions(num_iter=60, set_size=20)).rows
    by_channel = rows[np.argsort(rows["channel_ns"], kind="stable")]
    assert (np.diff(by_channel["started_ns"]) > 0).all()


def test_one_thread_of_the_host_can_hold_a_fast_device_back() -> None:
    slow, fast = (run_of(RunOptions(num_iter=100, threads=threads), ticks=192) for threads in (1, 4))
    assert slow.duration_ns > 2 * fast.duration_ns
    assert between(slow.rows, "completed_ns", "returned_ns").mean() > 100_000  # it waits for the thread


def test_time_ends_the_run_when_iterations_do_not() -> None:
    rows = run_of(RunOptions(time=0.02)).rows
    assert rows["enqueued_ns"].max() < 20_000_000 <= rows["dequeued_ns"].max()
    both = run_of(RunOptions(time=0.02, num_iter=3)).rows
    assert len(both) == 3


def test_the_same_seed_gives_the_same_times_and_another_seed_others() -> None:
    first, again, other = (run_of(RunOptions(num_iter=20, seed=seed)).rows.tobytes() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_what_an_inference_draws_depends_on_its_number_alone() -> None:
    program = program_of()
    forward = StageSource(program, seed=3, activation=0)
    drawn = [forward.of(number) for number in range(3000)]
    assert StageSource(program, seed=3, activation=0).of(2500) == drawn[2500]
    assert StageSource(program, seed=3, activation=1).of(2500) != drawn[2500]


def test_draws_have_the_mean_of_the_target_and_the_spread_that_is_documented() -> None:
    source = StageSource(program_of(), seed=0, activation=0)
    post = np.array([source.of(number).postprocess for number in range(8192)]) / 1000
    assert post.mean() == pytest.approx(HOST_US["postprocess"], rel=0.01)
    assert np.log(post).std() == pytest.approx(HOST_SPREAD, rel=0.05)


def test_an_inference_that_is_alone_never_waits_for_the_device() -> None:
    rows = run_of(RunOptions(num_iter=5, set_size=1)).rows
    tick_ns = 1e9 / program_of().stats_hz
    assert (rows["started_ns"] - rows["arrived_ns"]).max() <= tick_ns


def test_queue_depth_counts_what_was_submitted_and_has_not_come_back() -> None:
    rows = run_of(RunOptions(num_iter=20, set_size=1)).rows
    assert rows["queue_depth"].tolist() == [0] * 20
    assert rows["in_queue"].tolist() == [1] * 20
    deep = run_of(RunOptions(num_iter=40, set_size=6)).rows
    assert 4 <= deep["queue_depth"][20:30].min() <= deep["queue_depth"].max() <= 5


def test_progress_is_told_of_long_runs() -> None:
    seen: list[tuple[int, int]] = []
    options = RunOptions(num_iter=9000, set_size=4)
    Pipeline(
        [Guest(program_of(), 1, lambda a, i: 1)], options, progress=lambda done, total: seen.append((done, total))
    ).run()
    assert seen == [(4096, 9000), (8192, 9000), (9000, 9000)]


@pytest.mark.parametrize("value", [-1.0, 1e12, float("nan")])
def test_host_times_that_cannot_be_are_refused(value: float) -> None:
    with pytest.raises(ProgramError, match=r"^net: host_microseconds: submit is .*; expected 0 to 1e\+09"):
        run_of(RunOptions(num_iter=1), program=program_of(host={"submit": value}))


def test_a_host_spread_that_cannot_be_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"^net: simulation: host_spread is 3\.0; expected 0 to 1"):
        run_of(RunOptions(num_iter=1), program=program_of(simulation={"host_spread": 3.0}))


def test_more_inferences_than_memory_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.device.host.pipeline.MOST_INFERENCES", 20)
    with pytest.raises(UsageError, match=r"^time 1: more than 20 inferences fit in; expected less time"):
        run_of(RunOptions(time=1))


def test_decoding_holds_an_activation_up_once_and_for_the_bytes_of_every_sample() -> None:
    program = program_of(simulation=EXACT, moved_bytes=5_000_000, host={**HOST_US, "open_decoder": 40_000.0})
    program.commands["does"] = Does.STATS

    def gaps(**options: object) -> list[int]:
        chosen = RunOptions(num_iter=6, set_size=1, num_samples=2, start_iter=1, **options)
        rows = run_of(chosen, program=program).rows
        return (rows["enqueued_ns"][1:] - rows["dequeued_ns"][:-1]).tolist()

    assert gaps() == [20_000] * 5
    assert gaps(profile=("raw_device_stats", "latency")) == [20_000] * 5
    # 40 ms for the one operator, and 1 ms for 5 MB at 5 GB/s, then 1 ms again
    assert gaps(profile=("trace",)) == [20_000, 41_020_000, 1_020_000, 20_000, 20_000]


def test_the_cost_of_decoding_is_the_published_one() -> None:
    host = targets.load("aic100-std").host
    assert host is not None
    assert 4489 * host.open_decoder.value / 1e6 == pytest.approx(3.291, rel=0.001)  # seconds of an activation
    assert pytest.approx(1924.281 / 2312.608, abs=0.005) == 1 - 3.291 / 20.022
