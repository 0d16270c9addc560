"""Options of a run, which inferences are profiled, how activations share a device, and names of files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opscope.core.errors import ProgramError, UsageError
from opscope.device.host.sampling import choose_samples
from opscope.device.host.sharing import Slot, share_card
from opscope.options import RunOptions
from opscope.program.file_names import latency_name, output_names, raw_name, stats_name, trace_name
from opscope.recording.host_times import HostTimes
from support.recording.run_build import STATS_HZ, program_of, rows_of, run_of


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_iter": 0}, "num-iter 0: out of range; expected 1 to 10000000"),
        ({"activations": 0}, "activations 0: out of range; expected 1 to 4096"),
        ({"set_size": 0}, "set-size 0: out of range"),
        ({"num_samples": 0}, "num-samples 0: out of range"),
        ({"start_iter": -1}, "start-iter -1: out of range"),
        ({"seed": -1}, "seed -1: out of range"),
        ({"time": 0.0}, "time 0.0: expected a positive number of seconds"),
        ({"time": float("inf")}, "time inf: expected a positive number"),
        ({"start_delay": -1.0}, "start-delay -1.0: expected 0 or more milliseconds"),
        ({"num_iter": 10**7, "activations": 2}, "num-iter 10000000 × activations 2: expected at most"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_with_its_range(options: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as error:
        RunOptions(**options)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


def test_samples_start_at_the_iteration_and_the_time_that_were_asked_for() -> None:
    times = HostTimes(rows_of(0, 10_000_000, 20_000_000, 30_000_000), STATS_HZ, 1)

    def chosen(**options: float) -> list[int]:
        return choose_samples(times, RunOptions(num_iter=4, **options)).rows[0]["inference"].tolist()  # type: ignore[arg-type]

    assert chosen() == [0]
    assert chosen(num_samples=2, start_iter=1) == [1, 2]
    assert chosen(num_samples=2, start_delay=15.0) == [2, 3]
    assert chosen(num_samples=9) == [0, 1, 2, 3]
    assert choose_samples(times, RunOptions(num_iter=4, num_samples=9)).requested == 9


def test_a_run_that_ends_before_profiling_begins_gives_its_last_inferences_and_says_so() -> None:
    times = HostTimes(rows_of(0, 10_000_000), STATS_HZ, 1)
    sampling = choose_samples(times, RunOptions(num_iter=2, num_samples=1, start_delay=1000))
    assert sampling.rows[0]["inference"].tolist() == [1]
    assert "(number 1) 10.000 ms after its start, before profiling was to begin (iteration 0, 1000 ms)" in sampling.note


def test_an_iteration_that_is_never_reached_gives_the_last_ones_too() -> None:
    times = HostTimes(rows_of(0, 10_000_000), STATS_HZ, 1)
    sampling = choose_samples(times, RunOptions(num_iter=2, num_samples=1, start_iter=500))
    assert sampling.rows[0]["inference"].tolist() == [1]
    assert "(iteration 500, 0 ms); its last inferences are profiled instead" in sampling.note


def test_every_activation_is_sampled() -> None:
    options = RunOptions(num_iter=6, activations=3, num_samples=2, start_iter=3)
    sampling = choose_samples(run_of(options, slots=3), options)
    assert [rows["inference"].tolist() for rows in sampling.rows] == [[3, 4]] * 3
    assert [set(rows["activation"].tolist()) for rows in sampling.rows] == [{0}, {1}, {2}]
    assert sampling.count == 6


@pytest.mark.parametrize(("cores", "have", "slots"), [(2, 14, 7), (4, 14, 3), (14, 14, 1), (8, 14, 1)])
def test_as_many_activations_run_at_once_as_have_cores_to_themselves(cores: int, have: int, slots: int) -> None:
    (found,) = share_card([replace(program_of(cores=cores), device_cores=have)], 1)
    assert found == tuple(Slot(0, number * cores) for number in range(slots))


def test_activations_run_on_all_devices_of_a_card_on_the_emptiest_first() -> None:
    program = replace(program_of(cores=8), device_cores=16, card_devices=4)
    assert share_card([program], 1) == [tuple(Slot(d, c) for c in (0, 8) for d in range(4))]
    pairs = replace(program_of(cores=16, devices=2), device_cores=16, card_devices=4)
    assert share_card([pairs], 1) == [(Slot(0, 0), Slot(2, 0))]


def test_several_programs_have_a_slot_each_and_more_of_them_in_turn() -> None:
    two, four = (replace(program_of(cores=cores), device_cores=14) for cores in (2, 4))
    assert share_card([two, four], 2) == [(Slot(0, 0), Slot(0, 2)), (Slot(0, 4), Slot(0, 8))]
    assert share_card([four, four], 9) == [(Slot(0, 0), Slot(0, 4)), (Slot(0, 8),)]


def test_programs_that_need_more_cores_than_there_are_together_are_refused() -> None:
    programs = [replace(program_of(cores=cores), device_cores=14) for cores in (8, 8)]
    with pytest.raises(UsageError, match=r"^programs of 8 and 8 cores: the device has 14; expected no more together"):
        share_card(programs, 1)


def test_a_program_for_more_cores_than_there_are_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"^net: compiled for 16 cores a device; hand-made has 14"):
        share_card([replace(program_of(cores=16), device_cores=14)], 1)


def test_activations_take_turns_where_the_program_does_not_say_what_its_device_has() -> None:
    assert share_card([program_of(cores=2)], 3) == [(Slot(0, 0),)]


def test_file_names_tell_program_activation_inference_and_device() -> None:
    stem = "aic-profiling-program-0-activation-2"
    assert raw_name(program_of(), 2, 213, 0) == f"{stem}-inf-213-net-aiccyclecounts.bin"
    assert raw_name(program_of(devices=4), 2, 213, 3) == f"{stem}-inf-213-net_slice03-aiccyclecounts.bin"
    assert stats_name(2, 7) == f"{stem}-inf-7.txt"
    assert trace_name() == "aic-profiling-program-0-trace.json"
    assert trace_name(number=3) == "aic-profiling-program-3-trace.json"
    assert raw_name(program_of(), 2, 213, 0, number=3).startswith("aic-profiling-program-3-activation-2-inf-213-")
    assert latency_name(2) == f"{stem}-latency.txt"


def test_names_from_a_file_cannot_leave_the_folder() -> None:
    assert raw_name(program_of(name="../../etc/x\n"), 0, 0, 0).endswith("-inf-0-_.._etc_x_-aiccyclecounts.bin")
    assert raw_name(program_of(name=""), 0, 0, 0).endswith("-inf-0-network-aiccyclecounts.bin")
    assert output_names(["/a/b", "_a_b", "c"]) == ["output-_a_b.npy", "output-_a_b-1.npy", "output-c.npy"]
    assert len(raw_name(program_of(name="n" * 1000), 0, 0, 0)) < 200
    assert np.unique(output_names(["x"] * 5)).size == 5
