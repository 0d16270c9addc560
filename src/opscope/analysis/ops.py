"""Which ops of the graph, which layers and which blocks does the time belong to?"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..program import NO_OP, Program
from ..summary import OpTotal
from .intervals import union_ns
from .placement import outer_operand
from .work import Numbers, Work, total

_NUMBERED = re.compile(r"^(.*?)(\d+)(.*)$")
OTHER = "(no op)"


def op_totals(work: Work) -> tuple[OpTotal, ...]:
    """Per graph op, costliest first; commands that belong to none come under one name."""
    program = work.index.program
    labels = [*(op.name for op in program.ops), OTHER]
    types = [*(op.type for op in program.ops), ""]
    return _rollup(work, np.arange(len(labels)), labels, types)


def op_type_totals(work: Work) -> tuple[OpTotal, ...]:
    """Per type of op."""
    program = work.index.program
    types = [*(op.type for op in program.ops), OTHER]
    names = list(dict.fromkeys(types))
    return _rollup(work, np.array([names.index(t) for t in types]), names, names)


def layer_totals(work: Work) -> tuple[OpTotal, ...]:
    """Per numbered part of the network: /model/layers.3/…"""
    return _by_label(work, [layer_of(op.name) for op in work.index.program.ops])


def block_totals(work: Work) -> tuple[OpTotal, ...]:
    """The same place in every layer taken together: /model/layers.*/mlp/down_proj/MatMul."""
    return _by_label(work, [block_of(op.name) for op in work.index.program.ops])


def layer_of(name: str) -> str:
    """The path up to its first part with a number; without one, its first part."""
    parts = [part for part in name.split("/") if part]
    for position, part in enumerate(parts):
        if re.search(r"(?:^|[._])\d+$", part):
            return "/" + "/".join(parts[: position + 1])
    return "/" + parts[0] if parts else name


def block_of(name: str) -> str:
    """The name with the numbers of layers left open."""
    parts = name.split("/")
    return "/".join(re.sub(r"(^|[._])\d+$", r"\1*", part) for part in parts)


def _by_label(work: Work, labels: list[str]) -> tuple[OpTotal, ...]:
    names = list(dict.fromkeys([*labels, OTHER]))
    place = {name: number for number, name in enumerate(names)}
    return _rollup(work, np.array([place[label] for label in [*labels, OTHER]]), names, [""] * len(names))


def _rollup(work: Work, label_of_op: Numbers, labels: Sequence[str], types: Sequence[str]) -> tuple[OpTotal, ...]:
    program, count = work.index.program, len(labels)
    spans = work.commands[~work.index.is_flush[work.commands["command"]]]
    key = label_of_op[np.where(spans["op"] == NO_OP, len(program.ops), spans["op"])]
    duration = spans["end_ns"] - spans["start_ns"]
    busy = total(key, duration, count)
    wall = union_ns(key, spans["start_ns"], spans["end_ns"], count)
    waited = label_of_op[np.where(work.waits["op"] == NO_OP, len(program.ops), work.waits["op"])]
    wait = total(waited, work.waits["end_ns"] - work.waits["start_ns"], count)
    commands = program.commands[spans["command"]]
    amounts = [total(key, commands[name], count) for name in ("out_bytes", "moved_bytes", "macs")]
    engines = _engines(program, key, commands["group"], duration, count)
    placed = _placed(program, key, commands["detail"], count)
    counts = np.bincount(key, minlength=count)
    whole = max(int(busy.sum()), 1)
    rows = [
        OpTotal(labels[i], types[i], int(wall[i]), int(busy[i]), int(wait[i]), int(busy[i]) / whole, int(counts[i]),
                int(amounts[0][i]), int(amounts[1][i]), int(amounts[2][i]), engines[i], placed[i])
        for i in np.flatnonzero(counts).tolist()
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda row: (-row.busy_ns, row.name)))


def _engines(program: Program, key: Numbers, group: Numbers, duration: Numbers, count: int) -> list[str]:
    groups = len(program.groups)
    table = np.bincount(key * groups + group, duration, minlength=count * groups).reshape(count, groups)
    return [program.groups[best].name for best in table.argmax(axis=1).tolist()]


def _placed(program: Program, key: Numbers, detail: Numbers, count: int) -> list[str]:
    outer, names = outer_operand(program)
    most = np.zeros(count, np.int64)
    np.maximum.at(most, key, outer[detail])
    return [names[place] for place in most.tolist()]
