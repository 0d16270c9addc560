"""A target file that says only what differs from another: `extends = "base"`, and the whole that the two make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeGuard

from ..core.errors import TargetError, did_you_mean, printable

Document = dict[str, object]

KEY = "extends"
MOST_BASES = 8  # of one file, one on the other


def base_of(document: Mapping[str, object], source: str, known: Mapping[str, Path]) -> Path | None:
    """The file that a document extends: a name of the catalogue, or a path from where the document lies."""
    if KEY not in document:
        return None
    name = document[KEY]
    if not isinstance(name, str):
        found = printable(repr(name))
        raise TargetError(source, f"key {KEY}", f"found {found}; expected the name of a target, or a path to one")
    if name.endswith(".toml") or "/" in name or "\\" in name:
        path = Path(source).parent / name
        if not path.is_file():
            raise TargetError(
                source, f"key {KEY}", f"{printable(repr(name))}: no such file; expected a target TOML file"
            )
        return path
    if name not in known:
        hint = did_you_mean(name, known)
        problem = f"{printable(repr(name))}: no such target; {hint}known: {', '.join(known)}; or a path to a .toml"
        raise TargetError(source, f"key {KEY}", problem)
    return known[name]


def with_bases(
    document: Document, source: str, known: Mapping[str, Path], read: Callable[[Path], Document]
) -> list[Document]:
    """A document and those it rests on, itself first; a circle is an error."""
    chain, sources, at = [document], [source], source
    while (path := base_of(chain[-1], at, known)) is not None:
        at = str(path)
        if any(_same(at, other) for other in sources) or len(chain) > MOST_BASES:
            way = " → ".join(printable(Path(place).name) for place in (*sources, at))
            raise TargetError(source, f"key {KEY}", f"{way}; expected at most {MOST_BASES} bases and no circle")
        sources.append(at)
        chain.append(read(path))
    return chain


def merged(chain: list[Document]) -> Document:
    """The whole that a document makes with its bases, without sources that no figure of it names any more."""
    document, *bases = chain
    whole = document
    for base in bases:
        whole = _over(base, whole)
    whole = {key: value for key, value in whole.items() if key != KEY}
    sources, own = whole.get("sources"), document.get("sources")
    if bases and isinstance(sources, dict):
        used = set(_named_sources(whole)) | (set(own) if isinstance(own, dict) else set())
        whole["sources"] = {key: text for key, text in sources.items() if key in used}
    return whole


def _same(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _over(base: Document, own: Document) -> Document:
    """A table over another: tables merge by key, lists of tables by `name`, everything else is replaced.

    A figure is replaced whole: a new value does not keep the range of the old one.
    """
    whole = dict(base)
    for key, value in own.items():
        before = base.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and "value" not in value:
            whole[key] = _over(before, value)
        elif _has_names(value) and _has_names(before):
            whole[key] = _over_by_name(before, value)
        else:
            whole[key] = value
    return whole


def _has_names(value: object) -> TypeGuard[list[Document]]:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) and "name" in row for row in value)


def _over_by_name(base: list[Document], own: list[Document]) -> list[Document]:
    """Rows of the base in their order, each under the row of its name; then the rows that are new.

    A name that is there twice stays there twice, so that it is refused as in any file.
    """
    rows, taken = list(base), set[int]()
    for row in own:
        place = next((i for i, before in enumerate(base) if before["name"] == row["name"]), None)
        if place is None or place in taken:
            rows.append(row)
        else:
            rows[place] = _over(base[place], row)
            taken.add(place)
    return rows


def _named_sources(value: object) -> list[str]:
    """Every source that a figure, or the runtime, of a document names."""
    if isinstance(value, dict):
        named = value.get("source")
        return [*([named] if isinstance(named, str) else []), *(n for v in value.values() for n in _named_sources(v))]
    return [name for part in value for name in _named_sources(part)] if isinstance(value, list) else []
