"""Several programs at once on one card: each has cores of its own, and all share the memory, the link and the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..core.errors import printable
from ..core.files import make_folder
from ..device.host.card import Card
from ..device.host.pipeline import Progress
from ..options import RunOptions
from ..program.bounds import check_capacity, together
from .execution import Execution, RunOutcome, check_profiles, finish, load_fitting


def run_programs(
    places: Sequence[Path], options: RunOptions, *, progress: Progress | None = None
) -> tuple[RunOutcome, ...]:
    """Run programs beside each other, every one with as many activations; files carry the number of their program."""
    chosen = [load_fitting(place, None) for place in places]
    loaded = [each for each, _ in chosen]
    for each in loaded:
        check_profiles(each.program, options.profile)
    card = Card([each.program for each in loaded], options)
    check_memory(card)
    make_folder(options.out_dir)
    outcomes = []
    for number, (each, which) in enumerate(chosen):
        execution = Execution(each, options, card=card, number=number)
        outcome = finish(execution, progress=progress)
        slots = execution.slots
        where = f"device {slots[0].device}, core {slots[0].core}" if slots[0].device else f"core {slots[0].core}"
        note = (
            f"program {number} of {len(loaded)}: {len(slots)} activations at once on {each.program.cores} cores "
            f"each, from {where} on"
        )
        outcomes.append(replace(outcome, notes=(note, *which, *outcome.notes)))
        if outcome.interrupted:
            break
    return tuple(outcomes)


def check_memory(card: Card) -> None:
    """Refuse programs that are larger together than a memory of the devices that they share."""
    for device in sorted({slot.device for slots in card.slots for slot in slots}):
        here = [
            program
            for program, slots in zip(card.programs, card.slots, strict=True)
            if any(slot.device == device for slot in slots)
        ]
        held = together([program.bounds for program in here])
        check_capacity(held, target=printable(here[0].target), programs=len(here))
