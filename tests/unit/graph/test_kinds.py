"""The vocabulary of kinds: what each does, and what it costs where a target does not name it."""

from __future__ import annotations

import pytest

from opscope.core.meaning import Does
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.graph.graph import DType, Graph
from opscope.graph.kinds import KINDS, Family, what_kind_does
from opscope.machine import catalogue
from opscope.readers.onnx.ops import DEFAULT
from support.build import Sketch


def resized(kind: str, dtype: DType) -> Graph:
    net = Sketch(dtype=dtype)
    return net.graph(net.same("relu", net.op(kind, [net.input(1, 16, 16, 8)], (1, 32, 32, 8))))


def test_every_family_says_what_its_kinds_do() -> None:
    unknown = [family for family in Family if family.does is Does.UNKNOWN]
    assert unknown == [Family.OPAQUE]


def test_a_resize_to_the_nearest_picks_values_and_one_that_interpolates_computes() -> None:
    assert [what_kind_does(kind) for kind in ("resize_nearest", "resize")] == [Does.LAYOUT, Does.COMPUTE]


def test_a_special_case_may_be_named_by_itself_by_what_it_is_a_case_of_and_by_its_family() -> None:
    assert KINDS["resize_nearest"].called == ("resize_nearest", "resize", "pool")
    assert KINDS["resize"].called == ("resize", "pool")


@pytest.mark.parametrize("target", catalogue.catalogue())
@pytest.mark.parametrize("dtype", [DType.F32, DType.I8])
def test_a_resize_costs_the_same_whatever_its_mode(target: str, dtype: DType) -> None:
    machine = use_machine(target)
    costs = [[cost for cost, _ in estimate(resized(kind, dtype), machine).costs] for kind in KINDS if "resize" in kind]
    assert costs[0] == costs[1]


def test_activations_that_are_made_of_others_cost_what_those_do() -> None:
    ops = {name: kind.element_ops or 0 for name, kind in KINDS.items()}
    assert ops["mish"] == ops["softplus"] + ops["tanh"] + ops["mul"]
    assert ops["softsign"] == ops["abs"] + ops["add"] + ops["div"]
    assert KINDS["mish"].called == ("mish", "unary", "elementwise")


@pytest.mark.parametrize(
    ("operator", "kind"),
    [("Mish", "mish"), ("Softsign", "softsign"), ("ScaledTanh", "tanh"), ("ParametricSoftplus", "softplus")],
)
def test_an_activation_of_onnx_is_not_one_operation(operator: str, kind: str) -> None:
    assert DEFAULT[operator].kind == kind
