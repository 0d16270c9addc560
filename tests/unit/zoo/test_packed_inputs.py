"""BERT with several texts in an input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from opscope.zoo import Recipe, make

SMALL = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "vocabulary": 50, "inputs": "packed"}


def test_texts_of_one_input_do_not_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "packed.onnx"
    make(Recipe("bert-base", sequence=12, options=SMALL), path)
    session = onnxruntime.InferenceSession(path)
    text_of_token = np.array([[1] * 5 + [2] * 7])

    def hidden(words: list[int]) -> np.ndarray:
        inputs = {"input_ids": np.array([words]), "attention_mask": text_of_token}
        found: np.ndarray = session.run(None, inputs | {"token_type_ids": np.zeros((1, 12), np.int64)})[0]
        return found[0]

    before, after = hidden(list(range(12))), hidden([*range(5), *range(20, 27)])
    np.testing.assert_array_equal(before[:5], after[:5])
    assert np.abs(before[5:] - after[5:]).max() > 0.01
