"""Joining and dividing batch tiles on the lanes: the ops `join` and `divide` of an unrolled plan.

Both only rename bytes where they can. A join of tiles that all lie in local memory keeps them at their addresses, so
the whole has several; everything else goes through outer memory, from where a tile is read when its turn comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .tensors import ROWS, LocalCopy, OuterCopy, Piece, Tensors


def join_batch_tiles(tensors: Tensors, parts: Sequence[int], whole: int, *, outside: bool = False) -> None:
    """Make one tensor of its tiles: in local memory on lanes that hold all of them there, else in outer memory."""
    roots = [tensors.root(t) for t in parts]
    for lane in range(tensors.context.lane_count):
        for tiled in (True, False):
            found = [tensors.get(t, lane, tiled=tiled) for t in roots]
            copies = [tile for tile in found if tile is not None and tile.part is None]
            if len(copies) == len(roots) and not outside:
                for t in roots:
                    tensors.remove(t, lane, tiled=tiled)
                tensors.store(whole, lane, _concatenate(copies), tiled=tiled)
                break
        else:
            _join_in_outer_memory(tensors, roots, whole, lane)


def _concatenate(parts: Sequence[LocalCopy]) -> LocalCopy:
    """One copy at the addresses of its tiles; a piece from 0 to 1 of tile 2 of 4 is one from 0.25 to 0.5 of it."""
    pieces: list[Piece] = []
    last_use: dict[int, int] = {}
    size, before = sum(part.size for part in parts), 0.0
    for part in parts:
        begin, share = before / size if size else 0.0, part.size / size if size else 1.0
        before += part.size
        for piece in part.pieces:
            low, high = (piece.low, piece.high) if part.along == ROWS else (0.0, 1.0)
            pieces.append(Piece(begin + low * share, begin + high * share, piece.command))
        for stream, command in part.last_use.items():
            last_use[stream] = max(command, last_use.get(stream, command))
    places = [address for part in parts for address in part.addresses]
    return LocalCopy(
        pieces, size, address=next(iter(places), None), more_addresses=tuple(places[1:]), last_use=last_use
    )


def _join_in_outer_memory(tensors: Tensors, roots: Sequence[int], whole: int, lane: int) -> None:
    states = [state for t in roots if (state := _spill_to_outer(tensors, t, lane)) is not None]
    if states:
        writes = [command for state in states for command in state.writes]
        size = sum(state.size for state in states)
        for t in roots:
            tensors.outer_use.drop(t, lane)
        tensors.set_outer_copy(whole, lane, OuterCopy(all(state.tiled for state in states), size, writes))


def divide_into_batch_tiles(tensors: Tensors, whole: int, parts: Sequence[int]) -> None:
    """Make tiles of a tensor, in outer memory; they may share rows."""
    size = tensors.context.tensor_bytes(whole)
    for lane in range(tensors.context.lane_count):
        state = _spill_to_outer(tensors, tensors.root(whole), lane)
        if state is not None:
            tensors.outer_use.drop(tensors.root(whole), lane)
            for t in parts:
                tensors.set_outer_copy(
                    t, lane, replace(state, size=state.size * tensors.context.tensor_bytes(t) / size)
                )


def _spill_to_outer(tensors: Tensors, tensor: int, lane: int) -> OuterCopy | None:
    """Spill what a lane holds of a tensor, and return its copy in outer memory.

    Where another lane has written it, the copy is complete only after this lane's own producers, too.
    """
    made = tensors.producers(tensor, lane)
    tensors.spill(tensor, lane)
    state = tensors.outer_copy(tensor, lane)
    return None if state is None else replace(state, writes=list(dict.fromkeys((*made, *state.writes))))
