"""Entries of the catalogue as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import TextIO

from ...machine.catalogue import figures
from ...machine.entry import CatalogueEntry, Source
from ...machine.target import Holds, Target


class TargetsJson:
    """A list of entries, each with all that is known of it but its figures."""

    def render(self, entries: Sequence[CatalogueEntry], out: TextIO) -> None:
        json.dump([entry_json(entry) for entry in entries], out, indent=1)
        out.write("\n")


class TargetJson:
    """One entry with its figures: of a target, its file as it was read."""

    def render(self, entry: CatalogueEntry, known: object | None, out: TextIO) -> None:
        document: dict[str, object] = {"name": entry.name, "title": entry.title}
        if isinstance(known, Target):
            document = asdict(known)
        elif known is not None:
            document["figures"] = {place: asdict(figure) for place, figure in figures(known)}
            document["sources"] = dict(getattr(known, "sources", {}))
        document["entry"] = entry_json(entry)
        json.dump(document, out, indent=1, default=lambda value: value.value if isinstance(value, Enum) else str(value))
        out.write("\n")


def entry_json(entry: CatalogueEntry) -> dict[str, object]:
    """Everything of an entry but its figures; what only a target file has is null without one."""
    target = entry.target
    return {
        "name": entry.name,
        "title": entry.title,
        "group": entry.group,
        "aliases": list(entry.aliases),
        "works": bool(entry.working),
        "backend": entry.working[0].backend if entry.working else None,
        "sources": [_source_json(source) for source in entry.sources],
        "clock_hz": None if target is None else target.clocks.core_hz.value,
        "devices": None if target is None else round(target.topology.devices.value),
        "cores": None if target is None else round(target.topology.cores.value),
        "ram_bytes": None if target is None else round(target.home(Holds.ACTIVATIONS).bytes.value),
        "validation": validation(entry),
    }


def validation(entry: CatalogueEntry) -> Mapping[str, object] | None:
    """How far its numbers were off where that was tried; None: it was not."""
    found = entry.validation
    return asdict(found) if is_dataclass(found) and not isinstance(found, type) else None


def _source_json(source: Source) -> dict[str, object]:
    return {
        "backend": source.backend,
        "tells": [str(provenance) for provenance in source.tells],
        "option": source.option or None,
        "part": source.part or None,
        "models": list(source.models),
        "works": not source.missing,
        "missing": source.missing or None,
        "install": source.install or None,
    }
