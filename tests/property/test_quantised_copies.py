"""Whatever the weights: more bits are no worse, and a copy is the model with the same ports."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime as ort
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from opscope.core.precisions import precision_of
from opscope.quantization.copies import load_fixed, make_copy
from opscope.quantization.errors import output_differences
from opscope.quantization.samples import RandomSamples
from support.models.float_models import saved, weights


@settings(max_examples=12, deadline=None)
@given(
    channels=st.integers(1, 6),
    size=st.integers(3, 9),
    seed=st.integers(0, 1000),
    scale=st.sampled_from([0.01, 1.0, 50.0]),
    activation=st.sampled_from(["Relu", "Sigmoid", "Tanh", "Neg"]),
)
def test_more_bits_are_no_worse_and_ports_are_kept(
    channels: int, size: int, seed: int, scale: float, activation: str
) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node(activation, ["a"], ["y"], name="act"),
    ]
    kernel = weights("w", channels, 2, 3, 3, seed=seed)
    kernel.raw_data = (np.frombuffer(kernel.raw_data, np.float32) * scale).astype(np.float32).tobytes()
    port = ("x", "f32", (1, 2, size, size))
    samples = RandomSamples([port], 3, seed=seed)
    found = {}
    with TemporaryDirectory() as name:
        model = saved(Path(name) / "net.onnx", nodes, {"x": list(port[2])}, {"a": None, "y": None}, [kernel])
        for word in ("w8a8", "w8a16", "w16a16"):
            proto = load_fixed(model, {})
            original = proto.SerializeToString()
            copy = make_copy(proto, Path(name), precision_of(word), samples)
            session = ort.InferenceSession(str(copy.file), providers=["CPUExecutionProvider"])
            assert [p.name for p in session.get_inputs()] == ["x"]
            assert [p.name for p in session.get_outputs()] == ["a", "y"]
            onnx.checker.check_model(str(copy.file))
            outputs, _ = output_differences(original, copy.file, samples, step=lambda _: None)
            found[word] = max(each.difference.share for each in outputs if each.difference)
    slack = 1.1  # of rounding, where the weights' noise is all there is
    assert found["w8a16"] <= slack * found["w8a8"]
    assert found["w16a16"] <= slack * found["w8a16"]
