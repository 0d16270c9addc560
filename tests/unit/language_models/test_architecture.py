"""Descriptions of language models: parameters as published, and what a graph has of them."""

from __future__ import annotations

import pytest

from opscope.graph.graph import Graph, Role
from opscope.language_models.built_in import BUILT_IN
from opscope.language_models.config import load
from opscope.language_models.decoder import decode
from opscope.language_models.decoder_graph import decoder_graph


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_model_has_as_many_parameters_as_published(name: str) -> None:
    assert load(name).parameters / 1e9 == pytest.approx(BUILT_IN[name].parameters, rel=0.01)


def constants(graph: Graph) -> int:
    return sum(tensor.elements or 0 for tensor in graph.tensors if tensor.role is Role.CONSTANT)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if load(name).parameters == load(name).parameters])
def test_a_graph_has_every_parameter_once(name: str) -> None:
    model = load(name)
    assert constants(decoder_graph(model, decode(1, 8))) == model.parameters
