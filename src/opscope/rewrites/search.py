"""The search: which rewrites, at which places, make a model faster; each one judged, proven, and combined greedily.

A round tries every rewrite on the model as it stands, wherever it fits, those first that touch the critical path; one
that makes it slower as a whole is tried at the costliest groups of its places alone. What helps is then made, the best
first, each judged again on top of those before it and held against the model. What takes more than half of the time
away is made at once: what others gain beside it means little. Rounds go on until one finds nothing.

Some rewrites gain nothing alone: where a round finds nothing, those that cost nothing either are tried all together,
and those whose change gives another rewrite a place that it did not have are tried with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from ..conversion.check import Outputs
from ..core.errors import ProfilerError, in_words, printable
from ..core.manifest import RewriteEntry
from .judge import Judged, change_ns, helps, is_slower
from .outcome import TrialResult, Tried
from .proof import Prover
from .rewrite import NOTHING_GIVEN, Editor, RewriteContext, Site, Wanted, everywhere, in_groups
from .trials import Trials

MOST_ROUNDS = 8
MOST_GROUPS = 2  # of places that look alike, tried alone
MOST_OPENERS, MOST_OPENED = 6, 8  # rewrites that gain nothing alone, and chains of them with another, in a round
LONGEST_CHAIN = 3  # rewrites that are needed together
LEAP = 0.5  # of the time that is left: a change that comes to less is made before others are tried
Model = TypeVar("Model")
Places = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PlacedRewrite:
    """A rewrite at some of its places."""

    entry: RewriteEntry
    sites: tuple[Site, ...]  # where it fits
    groups: tuple[str, ...] | None = None  # None: at all of them

    @property
    def wanted(self) -> Wanted:
        return everywhere if self.groups is None else in_groups(self.groups)

    @property
    def touched(self) -> tuple[str, ...]:
        return tuple(name for site in self.sites for name in site.removed)

    @property
    def places(self) -> tuple[str, Places]:
        return self.entry.name, places_of(self.sites)

    def of_group(self, group: str) -> PlacedRewrite:
        return PlacedRewrite(self.entry, tuple(site for site in self.sites if site.group == group), (group,))


def places_of(sites: Iterable[Site]) -> Places:
    return frozenset(site.removed for site in sites)


@dataclass(frozen=True, slots=True)
class State(Generic[Model]):
    """The model as far as it is rewritten."""

    model: Model
    file: Path
    judged: Judged
    steps: tuple[Tried, ...] = ()
    outputs: Outputs | None = None  # None: the model's own
    is_exact: bool = True


@dataclass(slots=True)
class _Ended:
    """A change that was judged."""

    changes: tuple[PlacedRewrite, ...]
    judged: Judged


@dataclass(slots=True)
class Search(Generic[Model]):
    """Finds what helps.

    Args:
        step: is told what is being tried.
    """

    editor: Editor[Model]
    entries: Sequence[RewriteEntry]
    trials: Trials
    prover: Prover
    step: Callable[[str], None] = lambda _: None
    context: RewriteContext = NOTHING_GIVEN
    tried: list[Tried] = field(default_factory=list)
    _gains: dict[tuple[str, Places], int] = field(default_factory=dict)  # what a change came to where it fitted
    _wrong: set[tuple[tuple[str, Places], ...]] = field(default_factory=set)  # changes whose outputs are others

    def run(self, state: State[Model]) -> State[Model]:
        """The best that was found."""
        for number in range(1, MOST_ROUNDS + 1):
            self.step(f"round {number}: looking for places")
            better = self._round(state, number)
            if better is None or self.trials.stopped:
                return better or state
            state = better
        return state

    def _round(self, state: State[Model], number: int) -> State[Model] | None:
        """What one look at everything makes of a state; None: nothing helps."""
        fitting = self._changes(state)
        ended: list[_Ended] = []
        changes = [(change,) for change in fitting if self._is_open(change, state)]
        for each in self._judged(state, changes, f"round {number}"):
            ended.append(each)
            leap = self._taken(state, each.changes) if _is_leap(state.judged, each.judged) else None
            if leap is not None:
                return leap
        slower = [each.changes[0] for each in ended if is_slower(state.judged, each.judged)]
        groups = [(change,) for whole in slower for change in _groups(whole, state.judged)]
        ended += self._judged(state, groups, f"round {number}, places alone")
        found = state
        for each in _best_first(ended, state.judged):
            found = self._taken(found, each.changes) or found
        if found is state and not self.trials.stopped:
            whole = [each for each in ended if each.changes[0].groups is None and not each.judged.problem]
            known = {change.entry.name: change.sites for change in fitting}
            found = self._together(state, whole) or self._opened(state, whole, known, f"round {number}, opened")
        return None if found is state else found

    def _changes(self, state: State[Model]) -> list[PlacedRewrite]:
        """Every rewrite that fits somewhere, what it touches of the critical path deciding which comes first."""
        found = []
        for entry in self.entries:
            sites = self._sites(state.model, entry)
            if sites:
                found.append(PlacedRewrite(entry, sites))
        return sorted(found, key=lambda change: _cost(change, state.judged), reverse=True)

    def _sites(self, model: Model, entry: RewriteEntry) -> tuple[Site, ...]:
        try:
            return self.editor.sites(model, entry, self.context)
        except Exception as error:  # of a rule, whatever it is: others go on
            self._tell(Tried(entry.name, None, (), TrialResult.FAILED, reason=words_of(error)))
            return ()

    def _is_open(self, change: PlacedRewrite, state: State[Model]) -> bool:
        """Whether it may help: what it came to at the very same places, on an earlier state, was not too little."""
        earlier = self._gains.get(change.places)
        if earlier is None or (change.places,) in self._wrong:
            return earlier is None
        now = replace_time(state.judged, state.judged.time_ns + earlier)
        return helps(state.judged, now)

    def _judged(self, state: State[Model], chains: Sequence[tuple[PlacedRewrite, ...]], where: str) -> Iterator[_Ended]:
        """Judge candidates side by side, in their order; what became of each is remembered."""
        sites: dict[int, tuple[Site, ...]] = {}

        def writer(number: int, chain: tuple[PlacedRewrite, ...]) -> Callable[[Path], bool]:
            def write(file: Path) -> bool:
                self.step(f"{where}: {number + 1} of {len(chains)}, {_named(chain)}")
                made = self._made(state, chain)
                if made is None:
                    return False
                model, found = made
                sites[number] = found[-1]
                self.editor.save(model, file)
                return True

            return write

        writers = [writer(number, chain) for number, chain in enumerate(chains)]
        for number, judged in enumerate(self.trials.side_by_side(writers)):
            chain = chains[number]
            if judged is None:
                if number in sites or self.trials.stopped:
                    self._tell(_row(chain, sites.get(number, ()), TrialResult.NO_TIME, state.judged, None))
                continue
            if len(chain) == 1 and not judged.problem and judged.is_repeatable:
                self._gains[chain[0].places] = change_ns(state.judged, judged)
            if not helps(state.judged, judged):
                verdict = TrialResult.SLOWER if is_slower(state.judged, judged) else TrialResult.NO_GAIN
                verdict = TrialResult.REFUSED if judged.problem else verdict
                self._tell(_row(chain, sites[number], verdict, state.judged, judged))
            yield _Ended(chain, judged)

    def _made(
        self, state: State[Model], chain: Sequence[PlacedRewrite]
    ) -> tuple[Model, tuple[tuple[Site, ...], ...]] | None:
        """The model with changes made, one after the other; None: one does not fit any more, or fails."""
        model, done = self.editor.copy(state.model), []
        for change in chain:
            try:
                model, sites = self.editor.apply(model, change.entry, change.wanted, self.context)
            except Exception as error:  # of a rule, whatever it is: others go on
                self._tell(replace(_row(chain, (), TrialResult.FAILED, None, None), reason=words_of(error)))
                return None
            if not sites:
                return None
            done.append(sites)
        return model, tuple(done)

    def _taken(self, state: State[Model], chain: tuple[PlacedRewrite, ...]) -> State[Model] | None:
        """The state with a change made, if on top of what it has that helps, and outputs stay what they are."""
        key = tuple(change.places for change in chain)
        made = None if key in self._wrong else self._made(state, chain)
        if made is None:
            return None
        model, sites = made
        file = self.trials.place()
        self.step(f"proving {_named(chain)}")
        self.editor.save(model, file)
        taken = self._held(state, chain, sites, model, file)
        self.trials.discard(file if taken is None else state.file)
        return taken

    def _held(
        self,
        state: State[Model],
        chain: tuple[PlacedRewrite, ...],
        sites: tuple[tuple[Site, ...], ...],
        model: Model,
        file: Path,
    ) -> State[Model] | None:
        """The state that a chain of changes comes to, if it is faster, stays so beside the state, and is proven.

        The last change of a chain is a step with the times before and after; those before it opened its place, and are
        steps that gain nothing. Of 10 ms, `split` alone 10 ms, then `fuse` where it split 8 ms:

            split    10 ms → 10 ms    gains only with fuse
            fuse     10 ms →  8 ms
        """
        both = self._faster(state, chain, sites[-1], file)
        if both is None:
            return None
        before, judged = both
        exact = all(not change.entry.needs for change in chain)
        proof = self.prover.prove(file, exact=exact, since=None if state.is_exact else state.outputs)
        row = _row(chain, sites[-1], TrialResult.TAKEN, before, judged)
        row = replace(row, is_exact=exact, error=proof.error, rounding=proof.used)
        if proof.problem:
            self._wrong.add(tuple(change.places for change in chain))
            self._tell(replace(row, verdict=TrialResult.WRONG, reason=printable(proof.problem, 500)))
            return None
        opened = (
            replace(
                _row((change,), done, TrialResult.TAKEN, before, before),
                error=None,
                reason=f"gains only with {row.rewrite}",
            )
            for change, done in zip(chain[:-1], sites[:-1], strict=True)
        )
        steps = (*state.steps, *opened, row)
        return State(model, file, judged, steps, proof.outputs, state.is_exact and exact)

    def _faster(
        self, state: State[Model], chain: tuple[PlacedRewrite, ...], sites: tuple[Site, ...], file: Path
    ) -> tuple[Judged, Judged] | None:
        """What the judge says of the state and of the file, taken together; None, and told: it is not faster."""
        judged = self.trials.judged(file)
        if judged is None:
            self._tell(_row(chain, sites, TrialResult.NO_TIME, state.judged, None))
            return None
        both = self.trials.confirmed((state.file, state.judged), file, judged) if helps(state.judged, judged) else None
        if both is None:
            verdict = TrialResult.REFUSED if judged.problem else TrialResult.NO_GAIN
            self._tell(_row(chain, sites, verdict, state.judged, judged))
        return both

    def _together(self, state: State[Model], ended: Sequence[_Ended]) -> State[Model] | None:
        """All exact changes at once that gain nothing alone and cost nothing; None: that does not help either."""
        neutral = [each.changes[0] for each in ended if not is_slower(state.judged, each.judged)]
        chain: tuple[PlacedRewrite, ...] = ()
        model = self.editor.copy(state.model)
        for change in neutral:
            if not change.entry.needs:
                try:
                    model, sites = self.editor.apply(model, change.entry, change.wanted, self.context)
                except Exception as error:  # of a rule, whatever it is: told, and the others are not joined
                    self._tell(replace(_row((change,), (), TrialResult.FAILED, None, None), reason=words_of(error)))
                    return None
                chain = (*chain, change) if sites else chain
        if len(chain) < 2:
            return None
        judged = list(self._judged(state, [chain], "together"))
        return self._taken(state, chain) if judged and helps(state.judged, judged[0].judged) else None

    def _opened(
        self, state: State[Model], ended: Sequence[_Ended], known: Mapping[str, tuple[Site, ...]], where: str
    ) -> State[Model]:
        """Changes that gain nothing alone, with those that they open; state itself: none helps."""
        frontier = sorted(ended, key=lambda each: (each.judged.unknown_ops, each.judged.time_ns))[:MOST_OPENERS]
        for _ in range(LONGEST_CHAIN - 1):
            chains = [chain for each in frontier for chain in self._chains(state, each.changes, known)][:MOST_OPENED]
            judged = list(self._judged(state, chains, where))
            for each in _best_first(judged, state.judged):
                found = self._taken(state, each.changes)
                if found is not None:
                    return found
            frontier = [each for each in judged if not is_slower(state.judged, each.judged)]
            if not frontier or self.trials.stopped:
                break
        return state

    def _chains(
        self, state: State[Model], chain: tuple[PlacedRewrite, ...], known: Mapping[str, tuple[Site, ...]]
    ) -> Iterator[tuple[PlacedRewrite, ...]]:
        """A change, and another that fits in more places for it, or in places of another kind."""
        made = self._made(state, chain)
        if made is None:
            return
        taken = {change.entry.name for change in chain}
        for entry in self.entries:
            before = known.get(entry.name, ())
            # What takes the model as a whole takes long to ask, and is asked in the next round.
            if entry.name not in taken and not self.editor.takes_whole(entry):
                sites = self._sites(made[0], entry)
                new = Counter(site.group for site in sites) - Counter(site.group for site in before)
                if new and len(sites) > len(before):
                    yield (*chain, PlacedRewrite(entry, tuple(site for site in sites if site.group in new), tuple(new)))

    def _tell(self, row: Tried) -> None:
        """Keep what became of a change; the same once."""
        if not any(_alike(row, other) for other in self.tried):
            self.tried.append(row)


def _alike(one: Tried, other: Tried) -> bool:
    return (one.rewrite, one.groups, one.with_, one.verdict, one.sites) == (
        other.rewrite,
        other.groups,
        other.with_,
        other.verdict,
        other.sites,
    )


def _is_leap(before: Judged, after: Judged) -> bool:
    """Whether a change alone takes so much time away that the others should be tried on top of it."""
    if not helps(before, after) or before.latency_ns is None or after.latency_ns is None:
        return False
    return after.latency_ns < LEAP * before.latency_ns


def _best_first(ended: Iterable[_Ended], base: Judged) -> list[_Ended]:
    helping = [each for each in ended if helps(base, each.judged)]
    return sorted(helping, key=lambda each: (each.judged.unknown_ops, each.judged.time_ns))


def _groups(change: PlacedRewrite, judged: Judged) -> list[PlacedRewrite]:
    """The costliest groups of its places, each alone; none where there is one group."""
    groups = [change.of_group(group) for group in dict.fromkeys(site.group for site in change.sites)]
    if len(groups) < 2:
        return []
    return sorted(groups, key=lambda each: _cost(each, judged), reverse=True)[:MOST_GROUPS]


def _cost(change: PlacedRewrite, judged: Judged) -> tuple[int, int]:
    return judged.cost(change.touched)


def _row(
    chain: Sequence[PlacedRewrite],
    sites: tuple[Site, ...],
    verdict: TrialResult,
    before: Judged | None,
    after: Judged | None,
) -> Tried:
    last = chain[-1]
    return Tried(
        last.entry.name,
        last.groups,
        sites or last.sites,
        verdict,
        before,
        after,
        is_exact=not last.entry.needs,
        reason="" if after is None else after.problem,
        with_=tuple(change.entry.name for change in chain[:-1]),
    )


def replace_time(judged: Judged, time_ns: int) -> Judged:
    """The same, had it taken another time."""
    known = max(time_ns, 0)
    return msgspec.structs.replace(judged, latency_ns=None if judged.latency_ns is None else known, known_ns=known)


def _named(chain: Sequence[PlacedRewrite]) -> str:
    return " with ".join(change.entry.name for change in reversed(chain))


def words_of(error: Exception) -> str:
    return printable(str(error), 300) if isinstance(error, ProfilerError) else in_words(error, 300)
