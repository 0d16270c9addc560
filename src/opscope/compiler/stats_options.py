"""Stats options: what a user asks the device to record, checked against the target."""

from __future__ import annotations

from ..core.errors import UsageError, printable
from ..machine.surroundings import Pmu
from ..machine.target import Target
from ..options import CompileOptions
from ..program.program import NOT_SIMULATED, OP_LEVEL, OP_PMU_LEVEL, PORT_LEVEL, THREAD_LEVEL, StatsOptions

MOST_EVENT = 0xFFFF

LEVELS = {
    0: "nothing",
    THREAD_LEVEL: "time of every thread, set-up time, PMU counters and traffic of outer memory where asked for",
    PORT_LEVEL: "waits on input and output ports, doorbell times",
    OP_LEVEL: "cycles of every operator",
    OP_PMU_LEVEL: "PMU counters of every operator",
}


def stats_options(target: Target, options: CompileOptions, *, batch: int) -> StatsOptions:
    """The options as a program stores them. Levels are additive; PMU events are numbers (hexadecimal) or a recipe."""
    level, ddr, recipe, events = _level(options), options.ddr_stats, options.pmu_recipe, options.pmu_events
    if ddr and level < THREAD_LEVEL:
        raise UsageError(f"ddr stats need a stats level of at least {THREAD_LEVEL}; found {options.stats_level}")
    if level < THREAD_LEVEL and (recipe is not None or events is not None):
        raise UsageError(f"PMU counters need a stats level of at least {THREAD_LEVEL}; found {options.stats_level}")
    if recipe is not None and events is not None:
        raise UsageError("a PMU recipe and PMU events exclude each other; expected one of them")
    named, numbers = _event_numbers(target, recipe, events)
    known = {} if target.pmu is None else {int(key, 16): event for key, event in target.pmu.events.items()}
    return StatsOptions(
        level=level,
        ddr=ddr,
        recipe=named,
        events=numbers,
        event_names=tuple(known[number].name if number in known else NOT_SIMULATED for number in numbers),
        event_counts=tuple(known[number].counts if number in known else "" for number in numbers),
        event_blocks=tuple(known[number].block if number in known else "" for number in numbers),
        batch_size=options.stats_batchsize or batch,
        request_bytes=0
        if target.pmu is None or target.pmu.request_bytes is None
        else round(target.pmu.request_bytes.value),
    )


def stats_notes(options: CompileOptions, stats: StatsOptions) -> tuple[str, ...]:
    """What the device records other than the number of the level lets expect."""
    asked, level = options.stats_level, stats.level
    notes = []
    if level >= OP_PMU_LEVEL and not stats.events:
        notes.append(
            f"stats level {asked} without a PMU recipe or PMU events has nothing more to record than level {OP_LEVEL}"
        )
    elif asked != level:
        notes.append(f"stats level {asked} records what level {level} does: {LEVELS[level]}")
    unknown = [f"{n:X}" for n, counts in zip(stats.events, stats.event_counts, strict=True) if not counts]
    if unknown:
        notes.append(f"PMU events {', '.join(unknown)} are not simulated: they are N/A in summaries")
    return tuple(notes)


def _level(options: CompileOptions) -> int:
    """The level that is recorded: the highest of ours that the number asked for reaches."""
    if options.stats_level < 0:
        raise UsageError(f"stats level {options.stats_level}: negative; expected 0 or more, such as 40, 50, 70 or 100")
    return max(level for level in LEVELS if level <= options.stats_level)


def _event_numbers(target: Target, recipe: str | None, events: str | None) -> tuple[str, tuple[int, ...]]:
    """The recipe as the target spells it, empty where there is none, and the events to count."""
    if recipe is None and events is None:
        return "", ()
    if target.pmu is None:
        raise UsageError(f"{target.name} has no PMU in its target file; expected no recipe and no events")
    if recipe is None:
        return "", _parse_events(target.pmu, (events or "").split(","))
    spelled = {name.lower(): name for name in target.pmu.recipes}
    if recipe.lower() not in spelled:
        known = ", ".join(target.pmu.recipes)
        raise UsageError(f"PMU recipe {printable(recipe)!r}: not known; expected one of {known}")
    named = spelled[recipe.lower()]
    return named, tuple(int(number, 16) for number in target.pmu.recipes[named])


def _parse_events(pmu: Pmu, words: list[str]) -> tuple[int, ...]:
    """The numbers of PMU events written in hexadecimal, few enough to be counted at once.

    A number that the target does not know may be an event of the hardware: it is kept, and counts nothing.
    """
    numbers = []
    for word in words:
        try:
            number = int(word.strip(), 16)
        except ValueError:
            text = printable(word)
            raise UsageError(f"PMU event {text!r}: not a hexadecimal number; expected such as 3F,70,200") from None
        if not 0 <= number <= MOST_EVENT:
            raise UsageError(f"PMU event {printable(word.strip())}: expected 0 to {MOST_EVENT:X}, 16 bits")
        numbers.append(number)
    limit = round(pmu.counters.value)
    if len(numbers) > limit:
        raise UsageError(f"{len(numbers)} PMU events: a core counts {limit} at once; expected {limit} or fewer")
    twice = next((number for number in numbers if numbers.count(number) > 1), None)
    if twice is not None:
        raise UsageError(f"PMU event {twice:X}: given {numbers.count(twice)} times; expected it once")
    return tuple(numbers)
