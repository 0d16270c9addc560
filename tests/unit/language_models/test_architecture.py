"""Descriptions of language models: parameters as published, and what a graph has of them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from opscope.graph.graph import Graph, Role
from opscope.language_models.built_in import BUILT_IN
from opscope.language_models.config import load
from opscope.language_models.decoder import prefill
from opscope.language_models.decoder_graph import decoder_graph

# One of each family, counted in the networks that transformers 5.23 builds of the same fields.
PUBLISHED = Path(__file__).parents[2] / "published" / "language_model_parameters.csv"
with PUBLISHED.open(encoding="utf-8", newline="") as file:
    COUNTED = {row["model"]: int(row["parameters"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_model_has_as_many_parameters_as_stated(name: str) -> None:
    model = load(name)
    found = model.parameters + (model.head.elements if model.family == "falcon" else 0)  # its files hold the head twice
    stated = 0.01 if name == "deepseek-ocr" else 0.002  # that of the whole, less what its encoders are said to have
    assert found / 1e9 == pytest.approx(BUILT_IN[name].parameters, rel=stated)


@pytest.mark.parametrize("name", COUNTED)
def test_a_built_in_model_has_exactly_the_parameters_of_its_network(name: str) -> None:
    assert load(name).parameters == COUNTED[name]


def constants(graph: Graph) -> int:
    return sum(tensor.elements or 0 for tensor in graph.tensors if tensor.role is Role.CONSTANT)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_graph_has_every_parameter_once(name: str) -> None:
    model = load(name)
    short = replace(model, layers=tuple(model.repeats))
    many = prefill(8, 512)  # tokens enough that every expert is used
    assert constants(decoder_graph(short, many)) == short.parameters


def test_a_token_uses_some_of_the_experts() -> None:
    model = load("mixtral-8x7b")
    assert model.active_parameters == pytest.approx(12.75e9, rel=0.01)  # 12.88 G with the whole table
    dense = load("llama-2-7b")
    assert dense.parameters - dense.active_parameters == 31_999 * 4096  # all rows of the table but one


def test_equal_layers_are_counted_once() -> None:
    model = load("gemma-3-1b")
    assert sorted(model.repeats.values()) == [4, 22]
    assert [layer.mixer.kept_tokens(9000) for layer in model.repeats] == [512, 9000]
