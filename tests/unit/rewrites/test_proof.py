"""What rounding allows, and what tells a candidate from the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from opscope.core.errors import ModelError
from opscope.readers import read_model
from opscope.rewrites.proof import Drawn, Prover
from opscope.rewrites.rounding import DEVIATIONS, Limits, longest_walk
from support.rewrites.searching import write_model

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
SUMS = f"""{HEAD}
g (float[4,300] x) => (float[4,2] y, int64[4,1] top, float[4,2] bad)
<float[300,2] w, float zero = {{0.0}}> {{
    y = MatMul (x, w)
    top = ArgMax <axis = 1> (y)
    bad = Div (y, zero)
}}"""


def written(path: Path, text: str, **weights: np.ndarray) -> Path:
    model = onnx.parser.parse_model(text)
    kept = [each for each in model.graph.initializer if each.name not in weights]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((300, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def prover(tmp_path_factory: pytest.TempPathFactory, weights: np.ndarray) -> Prover:
    folder = tmp_path_factory.mktemp("proof")
    model = written(folder / "model.onnx", SUMS, w=weights)
    return Prover(model, "onnx", read_model(model), folder / "runs")


def test_sums_in_another_order_are_the_same(prover: Prover, tmp_path: Path, weights: np.ndarray) -> None:
    halves = SUMS.replace(
        "y = MatMul (x, w)",
        """lo = Constant <value_ints = [0]> ()
        mid = Constant <value_ints = [150]> ()
        hi = Constant <value_ints = [300]> ()
        axis = Constant <value_ints = [1]> ()
        rows = Constant <value_ints = [0]> ()
        left = Slice (x, lo, mid, axis)
        right = Slice (x, mid, hi, axis)
        above = Slice (w, lo, mid, rows)
        below = Slice (w, mid, hi, rows)
        one = MatMul (left, above)
        two = MatMul (right, below)
        y = Add (two, one)""",
    )
    proof = prover.prove(written(tmp_path / "halves.onnx", halves, w=weights), exact=True)
    assert proof.problem == ""
    assert proof.used is not None
    assert 0 < proof.used < 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SUMS.replace("MatMul (x, w)", "MatMul (x, w2)"), "where rounding moves it by at most"),
        (SUMS.replace("ArgMax", "ArgMin"), "output top, sample 0: whole numbers differ"),
        (SUMS.replace("{0.0}", "{0.1}"), "not finite in other places"),
        (SUMS.replace("y", "why"), "its outputs are others: ['why'"),
        (SUMS.replace(", float[4,2] bad", ""), "it has 2 outputs instead of 3"),
        (SUMS.replace("float[4,300] x", "float[N,300] x"), "its inputs are others"),
        (SUMS.replace("ArgMax", "NoSuchOp"), "ONNX Runtime cannot run it"),
    ],
)
def test_what_differs_is_named(text: str, problem: str, prover: Prover, tmp_path: Path, weights: np.ndarray) -> None:
    text = text.replace("<float[300,2] w,", "<float[300,2] w, float[300,2] w2,")
    candidate = written(tmp_path / "candidate.onnx", text, w=weights, w2=weights * np.float32(1 + 1e-4))
    assert problem in prover.prove(candidate, exact=True).problem


def test_an_error_is_measured_and_held_to_its_limit(prover: Prover, tmp_path: Path, weights: np.ndarray) -> None:
    off = weights * np.float32(1.002)
    candidate = written(tmp_path / "off.onnx", SUMS, w=off)
    proof = prover.prove(candidate, exact=False)
    assert proof.problem == ""
    assert proof.error == pytest.approx(0.002, rel=0.01)
    prover.max_error = 0.001
    try:
        assert "off by 0.20%" in prover.prove(candidate, exact=False).problem
    finally:
        prover.max_error = 0.01


def test_roundings_add_up_along_the_graph(tmp_path: Path, weights: np.ndarray) -> None:
    one = longest_walk(read_model(written(tmp_path / "one.onnx", SUMS, w=weights)))
    unit = 2.0**-24
    assert one.ops == 2
    assert unit * 300**0.5 < one.deviation < unit * 310**0.5  # 300 terms are added, each sum rounded
    assert DEVIATIONS * one.deviation < 1e-5


def test_scores_beside_coordinates_are_held_to_the_size_of_scores() -> None:
    random = np.random.default_rng(0)
    output = np.concatenate([640 * random.random((1, 100, 4)), 1e-5 * random.random((1, 100, 2))], axis=2)
    limits = Limits(share=1e-6)
    limits.see(output, [output * (1 + 1e-7)], [1.0])
    allowed = limits.allowed(output.shape)
    assert allowed[0, 0, 0] == pytest.approx(640e-6, rel=0.5)
    assert allowed[0, 0, 5] == pytest.approx(1e-11, rel=0.5)


def test_few_neighbours_do_not_tell_how_large_an_element_may_be() -> None:
    limits = Limits(share=1e-6)
    output = np.array([[1e-9, 1.0, 2.0]])
    limits.see(output, [output], [1.0])
    assert limits.allowed(output.shape).tolist() == [[2e-6] * 3]


def test_drawn_inputs_come_with_the_users_own(tmp_path: Path) -> None:
    from opscope.quantization.samples import FileSamples

    np.savez(tmp_path / "in.npz", x=np.full((2, 3), 7, np.float32))
    ports = [("x", "f32", (2, 3))]
    drawn = Drawn(ports, FileSamples(tmp_path / "in.npz", ports))
    arrays = [feed["x"] for feed in drawn.feeds()]
    assert drawn.count == len(arrays) == 4
    assert np.abs(arrays[2]).max() > 1  # of a wider spread
    assert (arrays[3] == 7).all()
    nudged = [feed["x"] for feed in Drawn(ports, nudged=True).feeds()]
    assert 0 < np.abs(nudged[0] / arrays[0] - 1).max() < 3e-7


def test_a_model_that_the_runtime_cannot_run_cannot_be_proven(tmp_path: Path) -> None:
    from opscope.core.errors import ModelError

    model = write_model(tmp_path / "model.onnx", f"{HEAD}\ng (float[2] x) => (float[2] y) {{ y = NoSuchOp (x) }}")
    with pytest.raises(ModelError, match="ONNX Runtime cannot run it"):
        Prover(model, "onnx", read_model(model), tmp_path / "runs")


def test_a_model_that_takes_no_random_inputs_is_compared_on_the_data(tmp_path: Path) -> None:
    text = f"{HEAD}\ng (float[60] x, int64[2] wanted) => (float[M,N] y) {{ y = Reshape (x, wanted) }}"
    model = write_model(tmp_path / "m.onnx", text)
    with pytest.raises(ModelError, match="or --data with inputs that it takes"):
        Prover(model, "onnx", read_model(model), tmp_path / "runs")
    np.savez(tmp_path / "d.npz", x=np.arange(60, dtype=np.float32)[None], wanted=np.array([[6, 10]]))
    prover = Prover(model, "onnx", read_model(model), tmp_path / "again", tmp_path / "d.npz")
    assert prover.samples.calibration.told.startswith("1 samples of")
    assert "random inputs fail" in prover.notes[0]
    assert not prover.prove(model, exact=True).problem


def test_an_open_batch_is_compared_at_several(tmp_path: Path) -> None:
    text = '<ir_version: 9, opset_import: ["" : 17]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu (x) }'
    model, wrong = tmp_path / "model.onnx", tmp_path / "wrong.onnx"
    onnx.save(onnx.parser.parse_model(text), model)
    prover = Prover(model, "onnx", read_model(model), tmp_path / "proof")
    assert [feed["x"].shape for feed in prover.samples.feeds()] == [(1, 3), (2, 3), (3, 3)]
    assert prover.samples.calibration.told == "3 drawn inputs, of batches 1, 2, 3"
    assert not prover.prove(model, exact=True).problem
    fixed = text.replace("y = Relu (x)", "s = Constant <value_ints = [1, 3]> () r = Reshape (x, s) y = Relu (r)")
    onnx.save(onnx.parser.parse_model(fixed), wrong)
    assert "Reshape" in prover.prove(wrong, exact=True).problem
