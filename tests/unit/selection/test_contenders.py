"""Which chips a bakeoff asks about, and who tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.selection.bakeoff import word_for
from opscope.selection.contenders import field_of
from support.models import small_models


@pytest.fixture
def model(tmp_path: Path) -> Path:
    small_models.convnet(tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def told(model: Path, *on: str, only: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    return [(each.entry.name, each.backend) for each in field_of(model, on, only).contenders]


def test_names_patterns_and_backends_stand_for_chips(model: Path) -> None:
    assert told(model, "max32690-cm4", "max32690-cm4") == [("max32690-cm4", "estimate")]
    assert {name for name, _ in told(model, "aic100-*")} == {"aic100-std", "aic100-pro", "aic100-ultra"}
    assert told(model, "aic100-std") == [("aic100-std", "sim")]
    assert told(model, "aic100-std", only=("estimate", "sim")) == [("aic100-std", "sim"), ("aic100-std", "estimate")]
    assert {backend for _, backend in told(model, "sim")} == {"sim"}
    assert ("max32690-cm4", "estimate") in told(model, "CodeFusion Studio")
    assert len(told(model, "all")) > len(told(model)) > 10


def test_of_each_group_those_are_asked_of_which_the_best_is_known(model: Path) -> None:
    field = field_of(model)
    assert "left out, as better is known of like chips" in field.notes[0]
    assert len({each.entry.group for each in field.contenders}) > 3


@pytest.mark.parametrize(
    ("on", "words"),
    [
        ("max3269-cm4", "--on max3269-cm4: not known; did you mean max32690-cm4"),
        ("nothing-*", r"--on nothing-\*: no chip is called so"),
    ],
)
def test_a_word_that_means_nothing_is_refused(model: Path, on: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        field_of(model, [on])
    with pytest.raises(UsageError, match="--backend nobody: not known; expected of sim, estimate"):
        field_of(model, (), ["nobody"])


def test_a_precision_is_spelt_as_its_backend_has_it() -> None:
    assert word_for("estimate", "i8") == "w8a8"
    assert word_for("estimate", "as-is") == ""
    assert word_for("ort", "mxfp6") == ""
