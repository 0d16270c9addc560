"""A model without weights never sits beside data that would pass for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.zoo import Recipe, make


def test_the_data_of_the_model_replaced_does_not_pass_for_that_of_one_without(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    make(Recipe("kws-cnn", options={"external_above_mb": 0}), path)
    make(Recipe("cifar-resnet", weights=False), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize("earlier", [None, b"", b"another model", "kws-cnn"])
def test_data_that_may_be_another_s_is_kept_and_the_model_refused(earlier: bytes | str | None, tmp_path: Path) -> None:
    path, data = tmp_path / "model.onnx", tmp_path / "model.onnx.data"
    if isinstance(earlier, bytes):
        path.write_bytes(earlier)
    elif earlier is not None:
        make(Recipe(earlier), path)  # one of ours, but its weights are within
    data.write_bytes(b"precious")
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(UsageError, match=r"model\.onnx\.data: was not written by `opscope zoo`, .* than model\.onnx$"):
        make(Recipe("cifar-resnet", weights=False), path)
    assert data.read_bytes() == b"precious"
    assert (path.read_bytes() if path.exists() else None) == before


def test_data_beside_a_model_that_holds_its_weights_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "model.onnx.data"
    data.write_bytes(b"precious")
    make(Recipe("kws-cnn"), tmp_path / "model.onnx")
    assert data.read_bytes() == b"precious"
