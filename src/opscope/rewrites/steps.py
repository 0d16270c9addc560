"""The steps that were taken, as a file: they can be taken again on a model that was exported anew."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from ..core.errors import UsageError
from ..core.files import read_whole
from ..core.json_files import PRODUCER, decode_json, json_bytes
from .outcome import Optimized, Tried
from .rewrite import Site, Wanted, everywhere, in_groups

SCHEMA = "opscope.rewrites/1"
MOST_BYTES = 1 << 28
_SHAPES = re.compile(r"\([^()]*\)")  # in a group, behind the types of ops


class RewriteStep(msgspec.Struct, frozen=True):
    """A rewrite, and where it was applied."""

    rewrite: str
    groups: tuple[str, ...] | None  # null: wherever it fits
    sites: tuple[Site, ...] = ()  # where it was taken


class _File(msgspec.Struct, frozen=True):
    schema: str
    steps: tuple[RewriteStep, ...]


_DECODER = msgspec.json.Decoder(_File)


def steps_bytes(found: Optimized) -> bytes:
    """The file of a search; same model and same judge, same bytes."""
    told: dict[str, object] = {"schema": SCHEMA, "producer": PRODUCER}
    told["model"] = {"name": Path(found.model).name, "sha256": found.sha256}
    told |= {"judge": found.judge or None, "steps": [_step(step) for step in found.steps]}
    return json_bytes(told)


def _step(step: Tried) -> dict[str, object]:
    sites = [asdict(site) for site in step.sites]
    return {"rewrite": step.rewrite, "groups": step.groups, "is_exact": step.is_exact, "sites": sites}


def read_steps(path: Path) -> tuple[RewriteStep, ...]:
    """The steps of a file."""
    raw = read_whole(path, "the steps of `opscope optimize`", most_bytes=MOST_BYTES)
    found = decode_json(raw, _DECODER, source=str(path))
    if found.schema != SCHEMA:
        raise UsageError(f"{path}: is of schema {found.schema[:80]!r}; expected {SCHEMA}")
    return found.steps


def fitting(step: RewriteStep, sites: Sequence[Site]) -> tuple[Wanted, str]:
    """Where a step is to be taken again, and what of it does not fit any more; empty: all does.

    Names and shapes of another export may differ. Groups decide, which are types and shapes; where none of them is
    there any more, the types alone.
    """
    wanted: Wanted = everywhere
    how = ""
    if step.groups is not None and any(site.group in step.groups for site in sites):
        wanted = in_groups(step.groups)
    elif step.groups is not None:
        types = {types_of(group) for group in step.groups}
        wanted, how = (lambda site: types_of(site.group) in types), "shapes are others, matched by types of ops alone"
    count, before = sum(map(wanted, sites)), len(step.sites)
    if not count:
        return wanted, "fits nowhere any more"
    fewer = f"fits in {count} places instead of {before}" if count != before else ""
    return wanted, "; ".join(filter(None, (how, fewer)))


def types_of(group: str) -> str:
    """The types of ops that a group is of."""
    return _SHAPES.sub("", group)
