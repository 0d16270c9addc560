"""The one catalogue of everything that a model can be profiled on, and who can tell about it.

An entry is a target file, or something that a backend of a plug-in knows, or both at once: then it has several sources.
`choose` takes the best of them that works here:

    measured on the hardware > a vendor's own model > our model, calibrated > simulated > estimated
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..backends import registry as backends
from ..core.entries import Known, called, known_entries, name_key
from ..core.errors import UsageError, did_you_mean, printable
from ..core.manifest import MODULES, Manifest, Option, Value
from ..core.plugins import load_place, manifests, target_folder
from ..core.provenance import Provenance
from ..machine import catalogue as targets
from ..machine.entry import WHY, CatalogueEntry, Source
from ..machine.target import Target
from .own_backends import ESTIMATE, OWN, SIMULATE, load_target

if TYPE_CHECKING:
    from ..readers.torch import TorchModel


@dataclass(frozen=True, slots=True)
class Choice:
    """Who is to tell, and what to ask."""

    backend: str
    options: Mapping[str, Value]  # those given, of which the backend's option for parts says what the target is
    target: Target | None = None  # for our own backends
    file: str = ""  # that the target came from, where it is not of the catalogue
    note: str = ""  # why this source, where there are several


def listed() -> tuple[CatalogueEntry, ...]:
    """Every entry, by plug-in."""
    files = targets.catalogue()
    found = {name: _of_file(targets.installed(path), _owner(path)) for name, path in files.items()}
    for known in known_entries():
        if known.entry.name not in found and targets.file_of(known.entry.name) is None:
            found[known.entry.name] = _of_entry(known)
    order = {group: rank for rank, group in enumerate(dict.fromkeys(_groups()))}
    return tuple(sorted(found.values(), key=lambda entry: order.get(entry.group, len(order))))


def search(entries: Sequence[CatalogueEntry], text: str) -> tuple[CatalogueEntry, ...]:
    """Those whose name, title, group or aliases have every word in them."""
    words = [name_key(word) for word in text.split()]
    return tuple(
        entry
        for entry in entries
        if all(word in name_key(" ".join((entry.name, entry.title, entry.group, *entry.aliases))) for word in words)
    )


def find(name: str) -> CatalogueEntry:
    """The entry of that name, alias or file."""
    if targets.is_path(name):
        target, file = load_target(name)
        return replace(_of_file(target, None), file=file)
    path = targets.file_of(name)
    if path is not None:
        return _of_file(targets.installed(path), _owner(path))
    found = called(name)
    if not found:
        raise targets.unknown(name)
    return _of_entry(found[0])


def figures_of(entry: CatalogueEntry) -> object | None:
    """What is known of an entry, as an object of figures with their `sources`."""
    if entry.target is not None:
        return entry.target
    for known in called(entry.name):
        if known.backend.figures and known.entry.part:
            look = load_place(known.manifest, known.backend.figures)
            return look(known.entry.part) if callable(look) else None
    return None


def choose(
    target: str | Path | Target | None,
    *,
    backend: str | None = None,
    options: Mapping[str, Value] | None = None,
    model: Path | TorchModel | None = None,
    own_only: bool = False,
) -> Choice:
    """The best source that works here, or the one that is asked for.

    Args:
        target: an entry of the catalogue; None: the backend's own default, or the part that `options` name.
        backend: who is to tell; None: the best that can.
        options: of any backend, by name; what is None or False is not given.
        model: what is to be profiled.
        own_only: only our own backends can be asked.
    """
    options = options or {}
    known = (*OWN, *backends.names())
    if backend is not None and backend not in known:
        hint = did_you_mean(backend, known)
        raise UsageError(f"backend {printable(backend)!r}: not known; {hint}known: {', '.join(known)}")
    if isinstance(target, Target):
        entry = _of_file(target, None)
        source = entry.sources[0] if backend is None else _named_source(entry, backend)
        return _choice(entry, source, options)
    names = {each.part for each in backends.entries() if each.part}
    parts = {name: str(value) for name, value in options.items() if name in names and value}
    if target is None and (not parts or backend is not None):
        if backend is None or backend in OWN:
            load_target(None)  # which says what was expected
        return Choice(str(backend), options)
    entry = find(str(next(iter(parts.values())) if target is None else target))
    for option, value in parts.items():
        _check_same(entry, option, value)
    rest = {name: value for name, value in options.items() if name not in names}
    if backend is not None:
        return _choice(entry, _named_source(entry, backend), rest)
    return _best(entry, rest, model, own_only)


def _best(
    entry: CatalogueEntry, options: Mapping[str, Value], model: Path | TorchModel | None, own_only: bool
) -> Choice:
    """The best source of those that work here, take the model and have the options; and why not a better one."""
    why_not = obstacles(entry, model, options, own_only=own_only)
    form = _form(entry, model)
    able = [source for source in entry.sources if not why_not[source]]
    if not able:
        reasons = "; ".join(f"{source.backend} {why}" for source, why in why_not.items())
        raise UsageError(f"{entry.name}: no source of numbers can be used here: {reasons}; expected one that can")
    given = {name for name, value in options.items() if value}
    able.sort(key=lambda source: (source.rank, bool(source.models) and bool(form) and form not in source.models))
    fitting = [source for source in able if given <= _option_names(source.backend)] or able
    for source in able:
        if source not in fitting:
            strange = ", ".join(f"--{name}" for name in sorted(given - _option_names(source.backend)))
            why_not[source] = f"has no {strange}"
    return replace(_choice(entry, fitting[0], options), note=_note(entry, fitting[0], why_not))


def obstacles(
    entry: CatalogueEntry, model: Path | TorchModel | None, options: Mapping[str, Value], *, own_only: bool = False
) -> dict[Source, str]:
    """Of every source, best first, why it cannot tell about a model here; empty: it can."""
    form, as_it_is = _form(entry, model), MODULES if _is_module(model) else ""
    return {
        source: _obstacle(source, as_it_is if as_it_is in source.models else form, own_only, options)
        for source in entry.sources
    }


def _is_module(model: Path | TorchModel | None) -> bool:
    from ..readers import is_torch_model

    return model is not None and (not isinstance(model, Path) or is_torch_model(model))


def _form(entry: CatalogueEntry, model: Path | TorchModel | None) -> str:
    """The format of the model, where sources differ in what they take."""
    return format_of(model) if len(entry.sources) > 1 and any(source.models for source in entry.sources) else ""


def _note(entry: CatalogueEntry, best: Source, why_not: Mapping[Source, str]) -> str:
    """One line, where somebody else than our own backends could tell as well, or would tell better."""
    could = [source for source in entry.sources if source is not best and not why_not[source]]
    better = [source for source in entry.sources if why_not[source] and source.rank < best.rank]
    if all(source.backend in OWN for source in (best, *could, *better)) or not (could or better):
        return ""
    how = f" ({best.tells[0]}, {WHY[best.tells[0]]})" if best.tells else ""
    parts = [f"{entry.name}: numbers come from {best.backend}{how}"]
    if better:
        parts.append(
            "a better source cannot be used: " + ", ".join(f"{each.backend} {why_not[each]}" for each in better)
        )
    parts += [f"--backend {' or '.join(source.backend for source in could)} has some too"] if could else []
    return "; ".join(parts)


def _choice(entry: CatalogueEntry, source: Source, options: Mapping[str, Value]) -> Choice:
    if source.backend in OWN:
        return Choice(source.backend, options, entry.target, entry.file)
    return Choice(source.backend, {**options, **({source.option: source.part} if source.part else {})})


def _obstacle(source: Source, form: str, own_only: bool, options: Mapping[str, Value]) -> str:
    """Why a source cannot tell about a model; empty: it can."""
    is_told_where = bool(options.get(backends.TOOL.name)) and backends.TOOL.name in _option_names(source.backend)
    if source.missing and not is_told_where:
        return f"is missing ({source.missing}{f': {source.install}' if source.install else ''})"
    if source.backend in OWN:
        return ""
    if own_only:
        return "takes a model file, and options by name"
    if form and source.models and form not in source.models:
        if backends.converts(backends.find(source.backend)):
            from ..conversion.plan import obstacle

            return obstacle(form, source.models)
        return f"takes {' and '.join(source.models)} models, and this one is {form}"
    return ""


def format_of(model: Path | TorchModel | None) -> str:
    """The word for the format of a model file; empty: there is none to look at."""
    from ..readers import given_format

    return "" if model is None else given_format(model).name.lower()


def _option_names(backend: str) -> set[str]:
    known: tuple[Option, ...] = OWN[backend] if backend in OWN else backends.find(backend).options
    return {option.name for option in known}


def _named_source(entry: CatalogueEntry, backend: str) -> Source:
    for source in entry.sources:
        if source.backend == backend:
            return source
    if backend in OWN and entry.target is not None:
        return Source(backend, ())  # it says itself what the target lacks
    able = ", ".join(source.backend for source in entry.sources)
    raise UsageError(f"--backend {backend}: does not know {entry.name}; expected of {able}")


def _check_same(entry: CatalogueEntry, option: str, value: str) -> None:
    """Refuse a part that is another than the target's."""
    own = {name_key(source.part) for source in entry.sources if source.option == option}
    asked = {name_key(known.entry.part) for known in called(value) if known.backend.part == option} or {name_key(value)}
    if own.isdisjoint(asked):
        raise UsageError(
            f"--{option} {printable(value)}: is not the target {entry.name}; expected one of them, or the same part"
        )


def _of_file(target: Target, owner: Manifest | None) -> CatalogueEntry:
    others = called(target.name) if owner is not None else ()
    aliases = tuple(
        dict.fromkeys(name for known in others for name in known.names if name_key(name) != name_key(target.name))
    )
    group = "Your own" if owner is None else owner.title
    sources = _sorted((*_own_sources(target), *map(_source, others)))
    return CatalogueEntry(target.name, target.title, group, sources, aliases, target)


def _of_entry(first: Known) -> CatalogueEntry:
    """An entry that no target file, or more than one, is called like; with those of the same name."""
    same = [known for known in called(first.entry.name) if known.entry.name == first.entry.name]
    entry, group = first.entry, first.entry.group or first.manifest.title
    sources = _sorted([_source(known) for known in same])
    return CatalogueEntry(entry.name, entry.title, group, sources, entry.aliases, is_minor=entry.is_minor)


def _sorted(sources: Sequence[Source]) -> tuple[Source, ...]:
    return tuple(sorted(sources, key=lambda source: (source.rank, bool(source.missing))))


def _own_sources(target: Target) -> tuple[Source, ...]:
    fitted = getattr(target, "calibration", None) is not None
    estimate = Source(ESTIMATE, (Provenance.CALIBRATED if fitted else Provenance.ESTIMATED,))
    return _sorted((Source(SIMULATE, (Provenance.SIMULATED,)), estimate) if target.is_compilable else (estimate,))


def _source(known: Known) -> Source:
    state = backends.state(known.backend.name)
    return Source(
        known.backend.name,
        known.entry.tells,
        known.backend.part,
        known.entry.part,
        known.backend.models,
        "" if state.works else state.detail,
        "" if state.works else state.install,
    )


def _owner(path: Path) -> Manifest | None:
    return next((manifest for manifest in manifests() if target_folder(manifest) == path.parent), None)


def _groups() -> list[str]:
    """Headings, in the order of the plug-ins."""
    headings = [known.entry.group for known in known_entries() if known.entry.group]
    return [*headings, *(manifest.title for manifest in manifests())]
