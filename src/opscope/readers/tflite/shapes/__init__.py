"""Shapes of a model's tensors: those of the inputs as asked for, the others as the runtime would have them.

`inputs` decides the inputs, `infer` goes through the operators with the rules of `rules`; `evaluate` finds the values
that a rule asks for. A file that leaves nothing open and keeps its inputs needs none of this: its shapes are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ....graph.graph import Note
from ..bodies import Runs, bodies
from ..model import StoredModel, Subgraph
from ..observe import Seen
from .inputs import OPEN, InputShapes, input_shapes

if TYPE_CHECKING:
    from .frame import Frame

__all__ = ["InputShapes", "infer_shapes", "input_shapes"]

_DECIDED_BY_VALUES = (Runs.ONE_OF, Runs.REPEATEDLY)


def infer_shapes(
    model: StoredModel, given: InputShapes, observed: Mapping[int, Seen]
) -> tuple[Frame | None, tuple[Note, ...]]:
    """Return the call of subgraph 0 with all shapes, None if those in the file are right; and notes.

    `observed` are its tensors in a run of the model, which count more than what is inferred.
    """
    if not given.is_resized and not observed and not _is_open(model):
        return None, ()
    from .infer import Inference

    inference = Inference(model, is_resized=given.is_resized, observed=observed)
    frame = inference.run(given.shapes)
    if not inference.fixed_batches:
        return frame, ()
    first, count = inference.fixed_batches[0], len(inference.fixed_batches)
    more = f" and {count - 1} more" if count > 1 else ""
    text = f"{first}{more}: a constant fixes the stored batch, and a runtime refuses another until it is exported anew"
    return frame, (Note("fixed-batch", text),)


def _is_open(model: StoredModel) -> bool:
    """Whether a subgraph that runs leaves a shape, a branch or a number of trips open."""
    waiting, seen = [0], {0}
    while waiting:
        subgraph = model.subgraph(waiting.pop())
        if _leaves_shapes_open(subgraph):
            return True
        for operator in subgraph.operators if len(model.subgraph_tables) > 1 else ():
            if (found := bodies(operator)) is None:
                continue
            if found.runs in _DECIDED_BY_VALUES:
                return True
            new = [i for i in found.subgraphs if i not in seen and 0 <= i < len(model.subgraph_tables)]
            seen.update(new)
            waiting += new
    return False


def _leaves_shapes_open(subgraph: Subgraph) -> bool:
    for tensor in subgraph.tensors:
        if OPEN in tensor.signature:
            return True
        # An empty shape may be a scalar's, and is what older converters store for a shape that they do not know.
        if not tensor.data.size and (not tensor.shape or 0 in tensor.shape):
            return True
    return False
