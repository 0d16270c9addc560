"""What an open dimension of an input counts: pixels, samples, tokens, the batch. Suggested sizes rest on this.

The first ops that read the input tell (`first_readers`). Where they do not, the name of the dimension does, then the
name and the rank of the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from ..usual_sizes import Purpose
from .model import Element, Value

# A network may ask for fewer or more of these than others do.
SCALED = frozenset(Purpose) - {Purpose.BATCH, Purpose.PAST, Purpose.CHANNELS, Purpose.UNKNOWN}


class Weight(IntEnum):
    """How much a piece of evidence counts."""

    RANK = 0
    INPUT_NAME = 1
    OP_BATCH = 2  # networks fold other axes into the first one, so that a name that says otherwise is believed
    NAME = 3
    OP = 4
    SURE_NAME = 5  # nobody calls another dimension "batch" or "past"


class Evidence(NamedTuple):
    """What one look at a dimension says. The size is the purpose's own, unless weights demand another."""

    weight: Weight
    purpose: Purpose
    size: int


_Words = tuple[tuple[Purpose, frozenset[str]], ...]


def _rows(**words: str) -> _Words:
    return tuple((Purpose[name], frozenset(row.split())) for name, row in words.items())


# The first row with one of a name's words says what it counts.
_DIMENSION_WORDS = _rows(
    PAST="past cache cached",
    BATCH="batch batchsize bs n b",
    HEIGHT="height h",
    WIDTH="width w",
    CHANNELS="channel channels c",
    SAMPLES="sample samples audio wav waveform signal",
    STEPS="time times timesteps frame frames step steps t mel",
    TOKENS="seq sequence len length token tokens text prompt",
)
_INPUT_WORDS = _rows(
    PAST="past",
    TOKENS="ids id mask token tokens position positions text",
    SAMPLES="audio wav waveform pcm signal",
    STEPS="mel fbank features frames spectrogram",
)
_STATE_WORDS = frozenset({"state", "states", "hidden", "cell"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def symbol_evidence(symbol: str) -> Iterator[Evidence]:
    """Yield what the name of a dimension says."""
    purpose = _named(symbol, _DIMENSION_WORDS)
    if purpose is not None:
        is_sure = not _words(symbol).isdisjoint({"batch", "past"})
        yield Evidence(Weight.SURE_NAME if is_sure else Weight.NAME, purpose, purpose.size)


def input_evidence(value: Value, axis: int, rank: int) -> Iterator[Evidence]:
    """Yield what the input's name, type and rank say about one of its axes."""
    purpose = _named(value.name, _INPUT_WORDS)
    if purpose is not None and (axis or rank == 1):
        yield Evidence(Weight.INPUT_NAME, purpose, purpose.size)
    purpose = _by_rank(value, axis, rank)
    yield Evidence(Weight.RANK, purpose, purpose.size)


def is_state(name: str) -> bool:
    """Whether an input's name says that it is what an earlier call left."""
    return not _words(name).isdisjoint(_STATE_WORDS)


def _by_rank(value: Value, axis: int, rank: int) -> Purpose:
    if axis == 0:
        return Purpose.BATCH if rank > 1 else Purpose.UNKNOWN
    if value.element in (Element.INT32, Element.INT64):
        return Purpose.TOKENS
    if rank == 3:
        middle = Purpose.BATCH if is_state(value.name) else Purpose.STEPS  # states are [layers, batch, size]
        return middle if axis == 1 else Purpose.UNKNOWN
    if rank == 4:
        channels_last = value.dims is not None and value.dims[3] in (1, 3, 4)
        spatial = (1, 2) if channels_last else (2, 3)
        return (Purpose.HEIGHT, Purpose.WIDTH)[axis - spatial[0]] if axis in spatial else Purpose.CHANNELS
    return Purpose.UNKNOWN


def _named(name: str, rows: _Words) -> Purpose | None:
    words = _words(name)
    return next((purpose for purpose, known in rows if not words.isdisjoint(known)), None)


def _words(name: str) -> set[str]:
    """Split `past_seqLen.0` into past, seq and len."""
    return {word.lower() for word in _WORD.findall(name)}
