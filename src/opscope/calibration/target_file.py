"""Fitted figures → a target file that extends the one they were fitted from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from ..machine.calibration import Calibration, Validation
from ..machine.catalogue import SCHEMA
from ..machine.target import Figure, Target

_PLACE = re.compile(r"(\w+)\[(\d+)\]\.(.*)")


def target_text(
    target: Target, *, name: str, title: str, extends: str, figures: Mapping[str, Figure], sources: Mapping[str, str]
) -> str:
    """The text of a target file.

    Args:
        target: what it extends.
        figures: by key, as `machine.catalogue.figures` writes keys.
        sources: texts of the sources that the figures name.
    """
    top = [f"schema = {_quoted(SCHEMA)}", f"name = {_quoted(name)}", f"title = {_quoted(title)}"]
    top.append(f"extends = {_quoted(extends)}")
    tables: dict[str, list[str]] = {"[sources]": [f"{key} = {_quoted(text)}" for key, text in sources.items()]}
    for key, figure in figures.items():
        match = _PLACE.fullmatch(key)
        if match is None:
            table, _, leaf = key.rpartition(".")
            lines = tables.setdefault(f"[{table}]", []) if table else top
        else:
            part, number, inside = match[1], int(match[2]), match[3]
            table, _, leaf = inside.rpartition(".")
            head = f"[[{part}]] # {number}"
            tables.setdefault(head, [f"name = {_quoted(getattr(target, part)[number].name)}"])
            header = f"[{part}.{table}] # {number}" if table else head
            lines = tables.setdefault(header, [])
        lines.append(f"{_bare(leaf)} = {inline(figure)}")
    parts = ["\n".join(top)]
    parts += ["\n".join([header.partition(" #")[0], *lines]) for header, lines in _in_order(tables)]
    return "\n\n".join(parts) + "\n"


def language_models_text(figures: Mapping[str, Figure], calibration: Calibration, validation: Validation | None) -> str:
    """The tables that say what a target reaches with language models."""
    lines = ["[language_models.figures]", *(f"{_quoted(key)} = {inline(figure)}" for key, figure in figures.items())]
    parts = ["\n".join(lines) + "\n", table_text("language_models.calibration", calibration)]
    return "\n".join([*parts, *([] if validation is None else [table_text("language_models.validation", validation)])])


def table_text(name: str, value: Calibration | Validation) -> str:
    """One of the tables that say how a target was fitted or judged; what is unknown is left out."""
    lines, after = [f"[{name}]"], []
    for field in fields(value):
        found = getattr(value, field.name)
        if isinstance(found, Mapping):
            after += [
                "",
                f"[{name}.{field.name}]",
                *(f"{_quoted(key)} = {_number(part)}" for key, part in found.items()),
            ]
        elif isinstance(found, tuple):
            lines.append(f"{field.name} = {json.dumps(found)}")
        elif found is not None:
            lines.append(f"{field.name} = {_quoted(found) if isinstance(found, str) else _number(found)}")
    return "\n".join([*lines, *after]) + "\n"


def extends_of(target: str, folder: Path) -> str:
    """How a file in a folder names the target that it extends: a name as it is, a path from there."""
    path = Path(target)
    if not path.suffix and "/" not in target:
        return target
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def _in_order(tables: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    """Tables of a row of a list stand behind the row, whenever their figures came."""

    def place(header: str) -> tuple[bool, str, int, bool]:
        word = re.split(r"[.\]]", header.strip("["))[0]
        number = int(header.rpartition("# ")[2]) if "#" in header else -1
        return "#" in header, word, number, not header.startswith("[[")

    return sorted(tables.items(), key=lambda item: place(item[0]))


def inline(figure: Figure) -> str:
    limits = "".join(
        f", {end} = {_number(getattr(figure, end))}" for end in ("low", "high") if getattr(figure, end) is not None
    )
    return f"{{ value = {_number(figure.value)}{limits}, source = {_quoted(figure.source)} }}"


def _number(value: float) -> str:
    return repr(value) if isinstance(value, int) else f"{value:.6g}"


def _bare(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
