from __future__ import annotations

from opscope.plugins.torq.annotate.annotated import Job, Phase, Step, Task
from opscope.plugins.torq.annotate.expected_shares import expected_shares
from opscope.plugins.torq.annotate.unit_usage import expected_work, usage_of, work_name


def step(
    unit: str, phase: Phase, number: int | None = None, *, cycles: int | None = None, invocation: str | None = None
) -> Step:
    return Step(f"hw.{unit}_{phase.value}", unit, phase, number, invocation, cycles)


def job(*steps: Step, **times: int) -> Job:
    return Job("job", (Task(steps, **times),))


def test_a_unit_is_used_from_its_start_to_the_job_that_waits_for_it() -> None:
    jobs = [job(step("dma_in", Phase.START)), job(), job(step("dma_in", Phase.WAIT)), job()]
    assert [usage.uses("dma_in") for usage in usage_of(jobs)] == [True, True, True, False]


def test_a_configuration_uses_nothing() -> None:
    assert not usage_of([job(step("dma_in", Phase.CONFIGURE))])[0].units


def test_slices_are_told_apart_by_number() -> None:
    jobs = [job(step("slice", Phase.START, 0), step("slice", Phase.START, 3)), job(step("slice", Phase.WAIT, 0)), job()]
    assert [usage.slices for usage in usage_of(jobs)] == [{0, 3}, {0, 3}, {3}]


def test_expected_work_starts_at_the_clock_and_waits_move_it() -> None:
    task = Task((step("dma_in", Phase.START, cycles=100), step("slice", Phase.START, 0, cycles=30, invocation="add")))
    wait = Task((step("dma_in", Phase.WAIT), step("css", Phase.START, cycles=8000)))
    found = [(work.unit, work.name, work.start, work.end) for work in expected_work(Job("job", (task, wait)))]
    assert found == [
        ("dma_in", "DMA In", 0, 100),
        ("slice", "add", 0, 30),
        ("task", "task", 0, 1),
        ("css", "CSS", 100, 8100),
        ("task", "task", 1, 101),
    ]


def test_a_task_that_says_when_it_begins_is_believed() -> None:
    first = Task((step("dma_in", Phase.START, cycles=10),), start_cycles=500)
    second = Task((step("dma_out", Phase.START, cycles=10),), number=7, start_cycles=640)
    found = [(work.name, work.start, work.end) for work in expected_work(Job("job", (first, second)))]
    assert found == [("DMA In", 0, 10), ("task", 0, 0), ("DMA Out", 140, 150), ("task 7", 140, 140)]


def test_a_copy_is_named_by_its_memories() -> None:
    assert (
        work_name(Step("hw.cdma_start", "cdma", Phase.START, source="LRAM", destination="DTCM")) == "CDMA LRAM to DTCM"
    )


def test_a_unit_that_is_done_before_its_wait_waits() -> None:
    """CSS for 100 cycles, a slice for 30 that is waited for behind it: done at 31, waited for at 100."""
    starts = Task((step("css", Phase.START, cycles=100), step("slice", Phase.START, 0, cycles=30, invocation="add")))
    waits = Task((step("css", Phase.WAIT), step("slice", Phase.WAIT, 0)))
    found = [(work.name, work.start, work.end) for work in expected_work(Job("job", (starts, waits)))]
    assert found == [("CSS", 0, 100), ("add", 1, 31), ("task", 0, 2), ("WAITING", 31, 100), ("task", 2, 100)]


def test_the_compilers_own_shares_are_of_its_units_alone() -> None:
    """At 1 GHz: DMA 0 to 100, slice 1 from 100 to 140; in a second job DMA 200 to 250 while the slice works to 260."""
    first = Job(
        "a",
        (
            Task((step("dma_in", Phase.START, cycles=100), step("dma_in", Phase.WAIT)), start_cycles=0),
            Task((step("slice", Phase.START, 1, cycles=40), step("slice", Phase.WAIT, 1)), start_cycles=100),
        ),
    )
    second = Job(
        "b",
        (Task((step("dma_in", Phase.START, cycles=50), step("slice", Phase.START, 1, cycles=60)), start_cycles=200),),
    )
    found = {share.name: share.time_ns for share in expected_shares([first, second], clock_hz=10**9, slices=2)}
    assert found["OVERALL"] == 260
    assert (found["DMA"], found["SLICE_0"], found["SLICE_1"], found["CSS"]) == (150, 0, 100, 0)
    assert (found["DMA_ONLY"], found["COMPUTE_ONLY"], found["DMA_COMPUTE_OVERLAP"]) == (100, 50, 50)
    assert found["IDLE"] == 60


def test_cycles_that_start_again_are_of_another_dispatch() -> None:
    jobs = [job(step("css", Phase.START, cycles=10), start_cycles=start) for start in (0, 50, 0, 50)]
    found = {share.name: share.time_ns for share in expected_shares(jobs, clock_hz=10**9, slices=2)}
    assert (found["OVERALL"], found["CSS"]) == (120, 40)


def test_a_dump_without_cycles_has_no_shares() -> None:
    assert expected_shares([job(step("css", Phase.START))], clock_hz=10**9, slices=2) == ()
