from __future__ import annotations

from pathlib import Path

import pytest

from opscope.importers.mlir_location import plain_location, positions, short
from opscope.plugins.torq.annotate.model_source import operators_of

A, B = ("a.mlir", 1, 2), ("b.mlir", 3, 4)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("unknown", ()),
        ('"a.mlir":1:2', (A,)),
        ('callsite("a.mlir":1:2 at "b.mlir":3:4)', (A,)),
        ('fused["a.mlir":1:2, "b.mlir":3:4, "a.mlir":1:2]', (A, B)),
        ('fused<"x > y, [">["a.mlir":1:2]', (A,)),
        ('"conv1"("a.mlir":1:2)', (A,)),
        ('"conv1"', ()),
        ('callsite(fused["a.mlir":1:2, callsite("b.mlir":3:4 at unknown)] at "c.mlir":5:6)', (A, B)),
        ('fused[loc("a.mlir":1:2)]', (A,)),
        ('"a\\"b.mlir":1:2', (('a\\"b.mlir', 1, 2),)),
        ('"a.mlir":1:2 and more', ()),
        ("fused[", ()),
        ("fused[" * 500, ()),
        ("", ()),
    ],
)
def test_positions_of_every_kind_of_location(text: str, found: tuple[object, ...]) -> None:
    assert positions(text) == found


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('loc("a":1:2)', '"a":1:2'),
        ('"loc(""a"":1:2)"', '"a":1:2'),
        ('"loc("a":1:2)"', '"a":1:2'),
        (' "a":1:2 ', '"a":1:2'),
        ('"conv"("a":1:2)', '"conv"("a":1:2)'),
        ("", ""),
    ],
)
def test_a_location_is_freed_of_its_wrapping(text: str, plain: str) -> None:
    assert plain_location(text) == plain


def test_the_short_form_joins_with_plus() -> None:
    assert short('fused["a.mlir":7:10, "a.mlir":9:10]') == "@L7C10+@L9C10"


def test_ops_of_the_source_are_named_with_their_lines(tmp_path: Path) -> None:
    lines = [
        "func.func @main(%arg0: tensor<1xi8>) {",
        "  %0 = tosa.conv2d %arg0",
        '  %1 = torch.operator "onnx.Relu"(%0)',
    ]
    (tmp_path / "m.mlir").write_text("\n".join(lines))
    place = 'fused["m.mlir":3:1, "m.mlir":2:1, "m.mlir":1:1, "m.mlir":99:1]'
    found, notes = operators_of([place], source=None, folders=[tmp_path])
    assert found == {place: ("tosa.conv2d@L2", "onnx.Relu@L3")}
    assert notes == ()


def test_a_source_that_is_not_there_is_a_note_and_no_error(tmp_path: Path) -> None:
    found, notes = operators_of(['"nowhere.mlir":3:1'], source=None, folders=[tmp_path])
    assert found == {}
    assert notes == ("nowhere.mlir: not found, so that ops of the model have no names; give it with --source",)
