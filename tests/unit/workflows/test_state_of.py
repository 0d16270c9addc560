"""Which inputs and outputs of a graph are a state that comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.graph.graph import DType, Graph
from opscope.workflows.retained_state import SUFFIX, state_of
from support.build import Sketch


def attention(given_out: str) -> Graph:
    """A query reads 64 old keys and a new one, which is an input, too."""
    draw = Sketch(dtype=DType.F16)
    past, new = draw.input(1, 4, 64, 32, name="past"), draw.input(1, 4, 1, 32, name="new")
    present = draw.op("concat", (past, new), (1, 4, 65, 32), axis=2)
    draw.tensors[present] = replace(draw.tensors[present], name=given_out)
    turned = draw.op("transpose", (present,), (1, 4, 32, 65), permutation=(0, 1, 3, 2))
    scores = draw.op("matmul", (draw.input(1, 4, 1, 32, name="query"), turned), (1, 4, 1, 65), k=32, n=65)
    return draw.graph(scores, present)


@pytest.mark.parametrize(
    ("given_out", "stay"),
    [(f"past{SUFFIX}", ["past"]), ("present", ["past", "new"])],  # without a name, either may have been given out
)
def test_keys_that_are_new_in_every_inference_are_no_state(given_out: str, stay: list[str]) -> None:
    inputs, outputs = state_of(attention(given_out))
    assert ([tensor.name for tensor in inputs], [tensor.name for tensor in outputs]) == (stay, [given_out])
