"""Parts of a batch on the lanes: tensors that were made part by part become one, and one becomes parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .tensors import ROWS, Held, Outside, Piece, Tensors


def join(tensors: Tensors, parts: Sequence[int], whole: int) -> None:
    """Parts become one tensor where they lie: in local memory if a lane has all of them there, else in outer memory."""
    roots = [tensors.root(t) for t in parts]
    for lane in range(tensors.bench.lane_count):
        for tiled in (True, False):
            found = [tensors.get(t, lane, tiled=tiled) for t in roots]
            held = [part for part in found if part is not None]
            if len(held) == len(roots):
                for t in roots:
                    tensors.withdraw(t, lane, tiled=tiled)
                tensors.store(whole, lane, _together(held), tiled=tiled)
                break
        else:
            _join_outside(tensors, roots, whole, lane)


def _together(parts: Sequence[Held]) -> Held:
    """One tensor in the places of its parts."""
    pieces: list[Piece] = []
    touched: dict[int, int] = {}
    for number, part in enumerate(parts):
        for piece in part.pieces:
            low, high = (piece.low, piece.high) if part.along == ROWS else (0.0, 1.0)
            pieces.append(Piece((number + low) / len(parts), (number + high) / len(parts), piece.command))
        for stream, command in part.touched.items():
            touched[stream] = max(command, touched.get(stream, command))
    places = [address for part in parts for address in part.places]
    size = sum(part.size for part in parts)
    return Held(pieces, size, address=next(iter(places), None), further=tuple(places[1:]), touched=touched)


def _join_outside(tensors: Tensors, roots: Sequence[int], whole: int, lane: int) -> None:
    states = [state for t in roots if (state := _moved_out(tensors, t, lane)) is not None]
    if states:
        writes = [command for state in states for command in state.writes]
        size = sum(state.size for state in states)
        tensors.put_outside(whole, lane, Outside(all(state.tiled for state in states), size, writes))


def divide(tensors: Tensors, whole: int, parts: Sequence[int]) -> None:
    """A tensor becomes parts in outer memory, from where each is read when its turn comes."""
    for lane in range(tensors.bench.lane_count):
        state = _moved_out(tensors, tensors.root(whole), lane)
        if state is not None:
            for t in parts:
                tensors.put_outside(t, lane, replace(state, size=state.size / len(parts)))


def _moved_out(tensors: Tensors, tensor: int, lane: int) -> Outside | None:
    """How a lane's part lies in outer memory, now; where another lane has written it, the own one is done as well."""
    made = tensors.made_by(tensor, lane)
    tensors.move_out(tensor, lane)
    state = tensors.outside(tensor, lane)
    return None if state is None else replace(state, writes=list(dict.fromkeys((*made, *state.writes))))
