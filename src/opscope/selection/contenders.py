"""Contenders: the chips that a bakeoff asks about, and who tells about each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ..backends import registry as backends
from ..core.entries import name_key
from ..core.errors import TargetError, UsageError, did_you_mean, printable
from ..core.provenance import Provenance
from ..machine.entry import CatalogueEntry, Source
from ..workflows import catalogue
from ..workflows.own_backends import OWN

ALL = "all"


@dataclass(frozen=True, slots=True)
class Contender:
    """A chip, and one who tells about it."""

    entry: CatalogueEntry
    source: Source

    @property
    def backend(self) -> str:
        return self.source.backend

    @property
    def measures(self) -> bool:
        """Whether it takes the time of something that runs: then nothing else may run beside it."""
        return self.source.tells[:1] == (Provenance.MEASURED,)

    @property
    def target(self) -> str:
        """As `--target` takes it."""
        return self.entry.file or self.entry.name


@dataclass(frozen=True, slots=True)
class Field:
    """All contenders, and what was left out."""

    contenders: tuple[Contender, ...]
    notes: tuple[str, ...] = ()


def field_of(model: Path, on: Sequence[str] = (), only: Sequence[str] = ()) -> Field:
    """The chips that `on` names, each with who tells about it best.

    Args:
        model: who takes it decides who can tell.
        on: names, patterns, groups or backends; `all`; none: of each group, the chips of which the best is known.
        only: backends that may tell; none: any.
    """
    for name in only:
        _check_backend(name)
    entries = catalogue.listed()
    notes: list[str] = []
    wanted = dict(_named(entries, on)) if on else dict(_best_known(entries, notes))
    contenders: list[Contender] = []
    why: dict[str, list[str]] = {}  # reason → chips
    for entry, by in wanted.values():
        allowed = tuple(by) or tuple(only)
        found, problem = _sources(entry, model, allowed)
        contenders += (Contender(entry, source) for source in found)
        if problem:
            why.setdefault(problem, []).append(entry.name)
    if not contenders:
        reasons = "; ".join(f"{_some(chips)}: {reason}" for reason, chips in why.items())
        raise UsageError(f"bakeoff: nobody can tell about {model} here: {reasons}; expected a chip of another kind")
    notes += (f"{_some(chips)}: {reason}" for reason, chips in why.items())
    return Field(tuple(contenders), tuple(notes))


Wanted = tuple[str, tuple[CatalogueEntry, Sequence[str]]]  # name of an entry, the entry, and who is to tell; any


def _best_known(entries: Sequence[CatalogueEntry], notes: list[str]) -> Iterator[Wanted]:
    """Of every group the chips about which the best kind of source tells: others would say less of a like chip."""
    groups: dict[str, list[CatalogueEntry]] = {}
    for entry in entries:
        if entry.working:
            groups.setdefault(entry.group, []).append(entry)
    left: list[str] = []
    for group, found in groups.items():
        best = min(_kind(entry) for entry in found)
        kept = [entry for entry in found if _kind(entry) == best and not entry.is_minor]
        left += [f"{len(found) - len(kept)} of {group}"] if len(kept) < len(found) else []
        yield from ((entry.name, (entry, ())) for entry in kept)
    if left:
        notes.append(f"left out, as better is known of like chips: {', '.join(left)} (--on all, or by name)")


def _kind(entry: CatalogueEntry) -> int:
    """Rank of the kind of number that the best source of an entry here has for times."""
    return entry.working[0].rank[0]


def _named(entries: Sequence[CatalogueEntry], on: Sequence[str]) -> Iterator[Wanted]:
    """What each word stands for, in order; an entry that two words mean is there once."""
    for word in on:
        if word == ALL:
            yield from ((entry.name, (entry, ())) for entry in entries if not entry.is_minor)
        elif word in (*OWN, *backends.names()):
            known = [entry for entry in entries if any(source.backend == word for source in entry.sources)]
            yield from ((f"{entry.name}\n{word}", (entry, (word,))) for entry in known if not entry.is_minor)
        elif "*" in word:
            found = [entry for entry in entries if any(fnmatchcase(name, word.lower()) for name in _names(entry))]
            if not found:
                raise UsageError(f"--on {printable(word)}: no chip is called so; see `opscope targets --all`")
            yield from ((entry.name, (entry, ())) for entry in found)
        else:
            yield from ((entry.name, (entry, ())) for entry in _group_or_entry(entries, word))


def _names(entry: CatalogueEntry) -> list[str]:
    return [name.lower() for name in (entry.name, *entry.aliases)]


def _group_or_entry(entries: Sequence[CatalogueEntry], word: str) -> Sequence[CatalogueEntry]:
    group = [entry for entry in entries if name_key(entry.group) == name_key(word) and not entry.is_minor]
    if group:
        return group
    try:
        return [catalogue.find(word)]
    except TargetError as error:
        known = (*OWN, *backends.names(), *(entry.name for entry in entries))
        expected = "a chip (`opscope targets`), a pattern, a group, a backend or all"
        if word.endswith(".toml"):
            raise
        hint = did_you_mean(word, known)
        raise UsageError(f"--on {printable(word)}: not known; {hint}expected {expected}") from error


def _sources(entry: CatalogueEntry, model: Path, allowed: Sequence[str]) -> tuple[list[Source], str]:
    """Where numbers come from: the best source that works, and all of the same kind; and why not a better one.

    With `allowed`, each of these that knows the chip.
    """
    why_not: Mapping[Source, str] = catalogue.obstacles(entry, model, {})
    if allowed:
        why_not = {source: why for source, why in why_not.items() if source.backend in allowed}
        if not why_not:
            return (
                [],
                f"{' and '.join(allowed)} cannot be asked about it, {', '.join(s.backend for s in entry.sources)} can",
            )
    able = [source for source in why_not if not why_not[source]]
    if not able:
        return [], "; ".join(f"{source.backend} {why}" for source, why in why_not.items())
    kind = able[0].rank[0]
    better = [source for source in why_not if why_not[source] and source.rank < able[0].rank]
    problem = "; ".join(f"{source.backend} {why_not[source]}" for source in better)
    if problem:
        problem = f"numbers come from {able[0].backend}: {problem}"
    if allowed:
        return able, problem
    return [able[0], *(each for each in able[1:] if each.rank[0] == kind and each.backend not in OWN)], problem


def _check_backend(name: str) -> None:
    known = (*OWN, *backends.names())
    if name not in known:
        hint = did_you_mean(name, known)
        raise UsageError(f"--backend {printable(name)}: not known; {hint}expected of {', '.join(known)}")


def _some(chips: Sequence[str]) -> str:
    """`a, b, c and 7 more`"""
    shown = ", ".join(chips[:3])
    return f"{shown} and {len(chips) - 3} more" if len(chips) > 3 else shown
