"""Which subgraphs a control-flow operator runs, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ...core.errors import ModelError
from .flatbuffer import UINT32
from .model import StoredModel, StoredOperator

MAX_DEPTH = 32  # nested subgraph calls


class Runs(Enum):
    """How often the subgraphs of an operator run each time it does; the value is the note for the user, if any."""

    ONCE = ""
    ONE_OF = "only one branch runs; all are counted, so totals are an upper bound"
    REPEATEDLY = "how often the loop runs is not in the file; condition and body are counted once"
    AT_START = "runs once when the model is loaded, not in each inference; its body is not counted"
    IF_NOT_REPLACED = "counted by its decomposition; a runtime may have a faster kernel of this name"


@dataclass(frozen=True, slots=True)
class Bodies:
    """The subgraphs an operator runs."""

    subgraphs: tuple[int, ...]
    runs: Runs


# Fields of the options that hold a subgraph's number.
_BODIES: Mapping[str, tuple[tuple[int, ...], Runs]] = {
    "CALL": ((0,), Runs.ONCE),
    "CALL_ONCE": ((0,), Runs.AT_START),
    "IF": ((0, 1), Runs.ONE_OF),
    "WHILE": ((0, 1), Runs.REPEATEDLY),
    "STABLEHLO_WHILE": ((0, 1), Runs.REPEATEDLY),
    "STABLEHLO_COMPOSITE": ((1,), Runs.IF_NOT_REPLACED),
}

# Bodies that are one scalar function, such as the sum in a reduction: the operator's kind already stands for them.
_SCALAR_BODIES: Mapping[str, int] = {
    "STABLEHLO_REDUCE": 1,
    "STABLEHLO_REDUCE_WINDOW": 5,
    "STABLEHLO_SORT": 2,
    "STABLEHLO_SCATTER": 6,
}


def bodies(operator: StoredOperator) -> Bodies | None:
    """Return the subgraphs to count with the operator; None if it is not control flow."""
    kind = operator.code.type
    if kind == "STABLEHLO_CASE":
        branches = () if operator.options is None else operator.options.int32s(0)
        return Bodies(tuple(dict.fromkeys(branches)), Runs.ONE_OF)
    if kind not in _BODIES:
        return None
    fields, runs = _BODIES[kind]
    if operator.options is None:
        return Bodies((), runs)
    layout_is_unsigned = kind == "CALL"
    numbers = [
        operator.options.number(field, UINT32) if layout_is_unsigned else operator.options.int32(field)
        for field in fields
    ]
    return Bodies(tuple(numbers), runs)


def scalar_body(operator: StoredOperator) -> int | None:
    """Return the subgraph of a scalar function, such as the sum inside a reduction; None if there is none."""
    field = _SCALAR_BODIES.get(operator.code.type)
    return None if field is None or operator.options is None else operator.options.int32(field)


def check_body(model: StoredModel, index: int, kind: str, location: str, path: tuple[int, ...]) -> None:
    """Refuse a call of a missing subgraph, recursion, and calls that are nested too deep.

    `path` holds the subgraphs being called, outermost first.
    """
    count = len(model.subgraph_tables)
    problem = ""
    if not 0 <= index < count:
        problem = f"runs subgraph {index}; the file has {count}"
    elif index in path:
        problem = f"runs subgraph {index} from within subgraph {index}; recursion has no end"
    elif len(path) >= MAX_DEPTH:
        problem = f"runs a body within {MAX_DEPTH} others; deeper nesting is not followed"
    if problem:
        raise ModelError(model.file.source, location, f"{kind} {problem}")
