"""What a rewrite does to a model, and who does it for each format.

A rewrite is an entry of data (`RewriteEntry`): ours are in `catalogue`, a plug-in's in its manifest. The rule that it
names is a small function for the format's editor, which finds the sites, makes the change and keeps the file whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ..core.errors import ProfilerError
from ..core.manifest import RewriteEntry
from ..options import Shapes

Model = TypeVar("Model")
WHOLE = "model"  # the group of a rewrite that takes the model as a whole


class RewriteError(ProfilerError):
    """A rewrite cannot be made; the words say why."""


@dataclass(frozen=True, slots=True)
class RewriteContext:
    """What a rewrite of a model as a whole is given besides the model."""

    data: Path | None = None  # inputs of the user's, to calibrate with
    folder: Path | None = None  # for what takes long to make; None: nothing is kept


NOTHING_GIVEN = RewriteContext()


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a model where a rewrite applies, or was applied."""

    removed: tuple[str, ...]  # names of the ops that go, the one that the rule was asked about first
    group: str  # sites of one rewrite that look alike have the same: types and shapes of what they touch
    added: tuple[str, ...] = ()  # names of the ops that came


Wanted = Callable[[Site], bool]  # whether a rewrite is to be applied at a site


class Editor(Protocol, Generic[Model]):
    """Opens, changes and writes models of one format."""

    def open_model(self, path: Path, shapes: Shapes | None = None) -> Model:
        """A model to change, with shapes as far as they can be told; the file stays as it is.

        Args:
            shapes: of inputs, by name: set in the model where it leaves them open.
        """

    def save(self, model: Model, path: Path) -> None:
        """Write a model, whole or not at all."""

    def takes_whole(self, entry: RewriteEntry) -> bool:
        """Whether a rewrite takes a model as a whole: to ask where it fits is to make it."""

    def sites(self, model: Model, entry: RewriteEntry, context: RewriteContext = NOTHING_GIVEN) -> tuple[Site, ...]:
        """Where a rewrite applies; the model stays as it is."""

    def apply(
        self, model: Model, entry: RewriteEntry, wanted: Wanted, context: RewriteContext = NOTHING_GIVEN
    ) -> tuple[Model, tuple[Site, ...]]:
        """The model, changed wherever a rewrite fits and is wanted, and where that was; the one given is used up."""

    def copy(self, model: Model) -> Model:
        """The model once more, to be changed on its own; weights are shared."""


def free_name(wanted: str, taken: set[str]) -> str:
    """The name, with a number where another has it; it is taken from then on."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def everywhere(_: Site) -> bool:
    return True


def in_groups(groups: Iterable[str]) -> Wanted:
    """At the sites of these groups."""
    kept = frozenset(groups)
    return lambda site: site.group in kept
