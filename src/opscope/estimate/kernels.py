"""Kernels: which published cost applies to an op, how tiles and waves pad it, and what changing layouts costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod

from ..graph.graph import ABSENT, Graph, Op, Role
from ..graph.kinds import Family
from ..graph.work_families import WorkFamily
from ..machine.target import ArrayShape, Engine, Layout
from .work import channels_per_group, number, numbers

_PRODUCTS = (Family.CONTRACTION, Family.RECURRENT)
_BASE = {"sub": "add", "div": "mul"}  # kinds that cost what another does


def form_of(op: Op, graph: Graph) -> str:
    """The kernel that costs apply to: adding or multiplying a scalar or a broadcast tensor has one of its own."""
    if op.kind == "transpose" and number(op, "innermost", 2) % 2:  # bytes do not move in pairs
        return "odd_transpose"
    if op.kind not in ("add", "mul", "sub", "div") or len(op.inputs) != 2 or ABSENT in op.inputs:
        return op.kind
    base = _BASE.get(op.kind, op.kind)
    sizes = [graph.tensors[t].elements or 0 for t in op.inputs]
    if min(sizes) == 1 and any(graph.tensors[t].role is Role.CONSTANT for t in op.inputs):
        return f"scalar_{base}"
    if min(sizes) < max(sizes):
        return f"broadcast_{base}"
    return op.kind


def constant_form(op: Op) -> str:
    """The kernel with a constant operand, which comes from another memory than the other operand."""
    return f"constant_{_BASE.get(op.kind, op.kind)}"


@dataclass(frozen=True, slots=True)
class Extents:
    """Of a product: what a matrix engine tiles."""

    rows: int  # of one product: of a batch of products, each has its own
    reduced: int  # for each tap
    produced: int
    taps: int = 1  # of a kernel
    apart: int = 1  # channels that are convolved each on their own, side by side


def product_extents(op: Op, graph: Graph) -> Extents | None:
    """Extents of a product; None where an op is none, or its shapes do not tell."""
    out = graph.tensors[op.outputs[0]].shape or ()
    if op.kind == "matmul":
        produced = number(op, "n")
        columns = prod(out) // max(1, produced)
        shared = has_weights(op, graph)  # weights that a whole batch shares meet the rows of all of it
        return Extents(columns if shared else out[-2] if len(out) > 1 else 1, number(op, "k"), produced)
    if op.kind == "conv":
        groups, axis = max(1, number(op, "groups", 1)), number(op, "channel_axis")
        rows = prod(extent for place, extent in enumerate(out) if place != axis)
        channels = channels_per_group(op, graph.tensors[op.inputs[0]])
        produced, apart = out[axis] // groups, groups if channels == 1 else 1
        return Extents(rows, channels, produced, prod(numbers(op, "kernel")), apart)
    if op.family is Family.POOL:
        return Extents(prod(out[1:3] if op.attributes.get("channel_axis") == len(out) - 1 else out[2:]), 0, 0)
    if op.kind == "attention":
        return Extents(number(op, "query_length"), number(op, "head_size"), number(op, "key_length"))
    return None


def padding(extents: Extents | None, engine: Engine, family: WorkFamily | None = None) -> float:
    """Padded work over real work: 100 channels on 32-wide tiles are computed as 128, a factor of 1.28.

    Taps of a convolution are one long reduced extent, or are padded each on their own (`taps_apart`): 48 channels of
    3 x 3 taps are 432 padded to 448, or nine times 64. An engine with a `tap_extent` takes a tile of channels of so
    many taps in a step, or so many tiles of channels of one tap, whichever is padded less (`taps_whole`: the former).
    """
    if extents is None:
        return 1.0
    usable = [shape for shape in engine.array_shapes if not shape.work or (family and family.value in shape.work)]
    if usable and extents.rows and extents.produced:
        return min(_padded_to(extents, shape, engine) for shape in usable)
    growth = 1.0
    if engine.tile_extent is not None:
        tile = round(engine.tile_extent.value)
        whole = extents.reduced * extents.taps
        growth *= _padded_reduction(extents, engine, tile) / whole if whole else 1.0
        produced = extents.produced * (extents.apart if engine.tap_extent is not None else 1)
        step = tile if engine.produced_extent is None else round(engine.produced_extent.value)
        growth *= _padded(produced, step) / produced if produced else 1.0
    if engine.row_extent is not None and extents.rows:
        growth *= _padded(extents.rows, round(engine.row_extent.value)) / extents.rows
    return growth


def _padded_to(extents: Extents, shape: ArrayShape, engine: Engine) -> float:
    """Padded work over real work with an array of one shape; an array that is used in part takes longer by as much.

    An array of 64 rows of 4 channels takes a step for 49 rows of 3; one of 1 row of 64 channels is a quarter of it.
    """
    rows, channels = round(shape.rows.value), round(shape.channels.value)
    largest = max(each.rows.value * each.channels.value for each in engine.array_shapes)
    produced = extents.produced * extents.apart
    padded = _padded(extents.rows, rows) / extents.rows * (_padded(produced, channels) / produced)
    return padded * largest / (rows * channels)


def _padded_reduction(extents: Extents, engine: Engine, tile: int) -> int:
    if engine.tap_extent is not None:
        taps = round(engine.tap_extent.value)
        by_taps = _padded(extents.reduced, tile) * _padded(extents.taps, taps)
        fixed = engine.taps_whole or extents.apart > 1
        return by_taps if fixed else min(by_taps, _padded(extents.reduced, tile * taps) * extents.taps)
    if engine.taps_apart and extents.reduced >= tile:
        return _padded(extents.reduced, tile) * extents.taps
    return _padded(extents.reduced * extents.taps, tile)


def _padded(extent: int, tile: int) -> int:
    return -(-extent // tile) * tile


# ---- waves ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waves:
    """What a unit of an engine does for a product that is cut into blocks of its result."""

    macs: int  # of whole blocks, wave after wave
    operands: int  # elements that enter it for them
    parts: int  # of the reduction; more than one are added up by a command of their own


def waves(extents: Extents, macs: int, shapes: Sequence[ArrayShape], engine: Engine, units: int) -> Iterator[Waves]:
    """Every way to cut a product.

    A unit makes one block at a time, so blocks go in waves, and the last wave leaves units idle; blocks at the edges
    are computed whole. For each step of the reduction a row and a column of the block enter the unit: small blocks
    keep more units busy, large ones need fewer operands. Where blocks are few, a long reduction may be cut into parts
    (`reduction_parts`), which a command of its own adds up.

        1576 × 2304 in blocks of 256 × 128   7 × 18 = 126 blocks, one wave of 132: 95 % of the units work
        49 × 512    in blocks of 64 × 64     8 blocks: 6 % of them, or 97 % with the reduction in 16 parts
    """
    reduced = extents.reduced * extents.taps
    whole = extents.rows * extents.produced * reduced
    products = max(1, round(macs / whole))  # of a batch, or of groups
    for shape in shapes:
        rows, channels = round(shape.rows.value), round(shape.channels.value)
        blocks = products * ceil(extents.rows / rows) * ceil(extents.produced / channels)
        for parts in _parts(reduced, engine):
            steps = ceil(blocks * parts / units) * ceil(reduced / parts)
            yield Waves(steps * rows * channels, steps * (rows + channels), parts)


def _parts(reduced: int, engine: Engine) -> Iterator[int]:
    """Ways to cut a reduction: into 1, 2, 4, … parts, none shorter than a tile of it."""
    most = 1 if engine.reduction_parts is None else round(engine.reduction_parts.value)
    step = 1 if engine.tile_extent is None else round(engine.tile_extent.value)
    parts = 1
    while parts == 1 or (parts <= most and reduced >= parts * step):
        yield parts
        parts *= 2


def blocks_for(extents: Extents | None, engine: Engine, family: WorkFamily | None) -> tuple[ArrayShape, ...]:
    """Blocks that a product of a family may be cut into; none where an engine has no units to spread them over."""
    if extents is None or not extents.rows * extents.produced * extents.reduced:
        return ()
    return tuple(shape for shape in engine.output_blocks if not shape.work or (family and family.value in shape.work))


def has_weights(op: Op, graph: Graph) -> bool:
    """Whether the second operand of a product is a constant, streamed tile by tile."""
    return (
        op.family in _PRODUCTS
        and len(op.inputs) > 1
        and op.inputs[1] != ABSENT
        and graph.tensors[op.inputs[1]].role is Role.CONSTANT
    )


# ---- layouts ----------------------------------------------------------------------------------------------------


def keeps_layout(op: Op, layout: Layout) -> bool:
    """Whether an op works in either order of elements."""
    return any(word in layout.keeps for word in op.called)


def tiled_tensors(ops: Sequence[tuple[Op, str]], layout: Layout | None) -> frozenset[int]:
    """Tensors that are made in the tiled layout: by its engines, or by ops that keep the layout of an operand.

    Args:
        ops: every op with the name of its engine.
        layout: of the target; None: there is one order of elements only.
    """
    found: set[int] = set()
    if layout is None:
        return frozenset()
    for op, engine in ops:
        carried = op.family is Family.VIEW or keeps_layout(op, layout)
        if engine in layout.engines or (carried and any(t in found for t in op.inputs)):
            found.update(op.outputs)
    return frozenset(found)


def converted_inputs(op: Op, engine: str, graph: Graph, *, tiled: frozenset[int], layout: Layout) -> dict[int, float]:
    """Positions of the inputs whose layout has to be changed, with cycles per KB."""
    wants = engine in layout.engines
    if keeps_layout(op, layout) and not wants:
        return {}
    weights = 1 if has_weights(op, graph) else ABSENT
    found = {}
    for position, t in enumerate(op.inputs):
        if t == ABSENT or position == weights or graph.tensors[t].role is Role.CONSTANT or wants == (t in tiled):
            continue
        second = wants and position == 1
        rate = layout.weights_to_tiled if second else layout.to_tiled if wants else layout.from_tiled
        found[position] = rate.value
    return found
