"""An entry of the catalogue: something that a model can be profiled on, and who can tell about it."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.provenance import Provenance
from .target import Target

WHY = {  # best first
    Provenance.MEASURED: "on the hardware",
    Provenance.VENDOR_MODEL: "by the vendor's own model",
    Provenance.CALIBRATED: "fitted to measurements",
    Provenance.SIMULATED: "command by command",
    Provenance.COMPILER_FACT: "by the vendor's own compiler",
    Provenance.ESTIMATED: "by formulas",
    Provenance.EMULATED: "functional only",
}
_RANK = {provenance: rank for rank, provenance in enumerate(WHY)}


@dataclass(frozen=True, slots=True)
class Source:
    """Who can tell about an entry."""

    backend: str
    tells: tuple[Provenance, ...]  # how its numbers are obtained, that of times first; empty: it does not say
    option: str = ""  # of the backend, that says which part is meant
    part: str = ""  # its value
    models: tuple[str, ...] = ()  # formats of models that it takes; empty: any
    missing: str = ""  # why it does not work here; empty: it does
    install: str = ""  # the command that brings it

    @property
    def rank(self) -> tuple[int, int]:
        """Of two with times of one kind, the one that tells more is better."""
        return (_RANK.get(self.tells[0], len(_RANK)) if self.tells else len(_RANK), -len(self.tells))


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """Something that a model can be profiled on."""

    name: str
    title: str
    group: str
    sources: tuple[Source, ...]  # best first
    aliases: tuple[str, ...] = ()
    target: Target | None = None  # what its file describes, where it has one
    file: str = ""  # of a target that is not of the catalogue
    is_minor: bool = False  # left out of the short list

    @property
    def working(self) -> tuple[Source, ...]:
        return tuple(source for source in self.sources if not source.missing)

    @property
    def validation(self) -> object | None:
        """How far its target was off, where that was tried."""
        return getattr(self.target, "validation", None)
