from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import opscope
from opscope import api, cli
from opscope.core.errors import ModelError, TargetError, UsageError
from opscope.quantization import errors, sessions
from opscope.readers import read_model
from opscope.recording.quantized import Difference, Quantized
from opscope.views.json.quantized_json import QuantizedJson
from opscope.views.text.quantized_text import QuantizedText
from support.models.float_models import conv_classifier, saved, two_inputs, weights


def ports(path: Path) -> list[list[tuple[str, object, str]]]:
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return [[(p.name, p.shape, p.type) for p in side] for side in (session.get_inputs(), session.get_outputs())]


def text_of(result: Quantized) -> str:
    out = StringIO()
    QuantizedText().render(result, out)
    return out.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Quantized:
    folder = tmp_path_factory.mktemp("quantised")
    model = conv_classifier(folder / "net.onnx")
    np.savez(folder / "in.npz", x=np.random.default_rng(0).standard_normal((6, 3, 8, 8)).astype(np.float32))
    return opscope.quantize(model, folder / "q.onnx", data=folder / "in.npz")


def test_a_copy_has_the_ports_of_the_model_and_says_what_it_is(made: Quantized) -> None:
    assert ports(Path(made.output)) == ports(Path(made.model))
    told = {entry.key: entry.value for entry in onnx.load(made.output).metadata_props}
    assert told["author"] == "somebody"
    assert told["opscope.precision"] == "w8a8"
    assert told["opscope.calibration"] == "data"
    assert told["opscope.calibration.samples"] == "6"
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in onnx.load(made.output).graph.node}


def test_errors_are_those_of_the_outputs(made: Quantized) -> None:
    sessions = [ort.InferenceSession(str(f), providers=["CPUExecutionProvider"]) for f in (made.model, made.output)]
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    sessions[1] = ort.InferenceSession(made.output, options, providers=["CPUExecutionProvider"])
    data = np.load(Path(made.model).with_name("in.npz"))["x"]
    wanted, found = (np.concatenate([s.run(["scores"], {"x": x[None]})[0] for x in data]) for s in sessions)
    apart = wanted.astype(float) - found
    scores = made.outputs[0]
    assert scores.name == "scores"
    assert scores.difference is not None
    assert scores.difference.max_abs == pytest.approx(np.abs(apart).max(), rel=1e-4)
    assert scores.difference.sqnr_db == pytest.approx(10 * np.log10((wanted**2).sum() / (apart**2).sum()), abs=0.01)
    assert scores.top1 == (wanted.argmax(1) == found.argmax(1)).mean()
    assert scores.rows == 6


def test_layers_add_noise_to_that_of_their_inputs(made: Quantized) -> None:
    layers = {layer.op: layer for layer in made.layers}
    assert "head" in layers
    assert layers["conv" if "conv" in layers else "act"].inputs_db is None  # reads the input alone
    assert layers["head"].inputs_db is not None
    assert [layer.added for layer in made.layers] == sorted((layer.added for layer in made.layers), reverse=True)


def test_the_text_and_the_json_have_the_figures(made: Quantized) -> None:
    text = text_of(made)
    assert "calibrated  6 samples of " in text
    assert "RANDOM" not in text
    assert "scores" in text
    out = StringIO()
    QuantizedJson().render(made, out)
    told = json.loads(out.getvalue())
    assert told["schema"] == "opscope.quantize/1"
    assert told["calibration"]["is_random"] is False
    assert told["outputs"][0]["sqnr_db"] == pytest.approx(made.outputs[0].difference.sqnr_db)  # type: ignore[union-attr]
    assert told["layers"][0]["added_noise"] == made.layers[0].added
    assert told["before"] is None


def test_random_data_are_marked_everywhere(tmp_path: Path) -> None:
    model = conv_classifier(tmp_path / "net.onnx")
    made = api.quantize(model, tmp_path / "q.onnx", random=2, seed=5, target="aic100-std")
    assert made.calibration is not None
    assert made.calibration.is_random
    assert "RANDOM CALIBRATION" in text_of(made)
    told = {entry.key: entry.value for entry in onnx.load(made.output).metadata_props}
    assert (told["opscope.calibration"], told["opscope.calibration.seed"]) == ("random", "5")
    assert (
        "a copy in w8a8 that was calibrated with random data: speed alone"
        in read_model(tmp_path / "q.onnx").assumptions
    )
    assert made.before is not None
    assert made.after is not None
    assert made.after.latency is not None
    assert made.after.latency.provenance == "simulated"
    run = api.profile(tmp_path / "q.onnx", "aic100-std")
    assert any("random data" in note for note in run.findings.notes)


def test_nothing_is_random_unless_asked_for(tmp_path: Path) -> None:
    model = conv_classifier(tmp_path / "net.onnx")
    with pytest.raises(UsageError, match=r"nothing to calibrate with; expected --data .*, or --random N"):
        api.quantize(model, tmp_path / "q.onnx")
    with pytest.raises(UsageError, match="--random: --data is given too"):
        api.quantize(model, tmp_path / "q.onnx", random=1, data=tmp_path)
    with pytest.raises(TargetError, match="no-such-chip"):
        api.quantize(model, tmp_path / "q.onnx", random=1, target="no-such-chip")
    assert not (tmp_path / "q.onnx").exists()


def test_several_inputs_integers_and_ops_that_stay_float(tmp_path: Path) -> None:
    model = two_inputs(tmp_path / "net.onnx")
    made = api.quantize(model, tmp_path / "q.onnx", random=2)
    assert ports(Path(made.output)) == ports(model)
    assert made.float_ops == {"Sin": ("wave",)}
    assert "left float: 1 ops" in text_of(made)
    assert "  Sin ×1: wave" in text_of(made)


@pytest.mark.parametrize("opset", [11, 12, 21])
def test_models_of_any_opset_with_an_open_batch(tmp_path: Path, opset: int) -> None:
    model = conv_classifier(tmp_path / "net.onnx", batch="N", opset=opset)
    made = api.quantize(model, tmp_path / "q.onnx", random=1)
    assert ports(Path(made.output))[0] == ports(model)[0]
    assert any("batch is open" in note for note in made.notes)
    fixed = api.quantize(model, tmp_path / "fixed.onnx", random=1, shapes={"x": (2, 3, 8, 8)})
    assert ports(Path(fixed.output))[0][0][1] == [2, 3, 8, 8]
    assert fixed.outputs[0].rows == 2


def test_weights_in_a_file_beside_the_model(tmp_path: Path) -> None:
    model = conv_classifier(tmp_path / "net.onnx")
    plain = api.quantize(model, tmp_path / "plain.onnx", random=1)
    proto = onnx.load(str(model))
    onnx.save(proto, str(model), save_as_external_data=True, location="net.data", size_threshold=0)
    made = api.quantize(model, tmp_path / "q.onnx", random=1)
    assert made.outputs == plain.outputs
    (tmp_path / "net.data").unlink()
    with pytest.raises(ModelError, match="external data cannot be read"):
        api.quantize(model, tmp_path / "again.onnx", random=1)


def test_a_model_that_is_quantised_is_named_so(made: Quantized, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"quantised already \(DequantizeLinear, QuantizeLinear\); expected a float"):
        api.quantize(made.output, tmp_path / "again.onnx", random=1)


def test_a_model_of_which_nothing_can_be_quantised_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Sin", ["x"], ["y"], name="wave")
    model = saved(tmp_path / "net.onnx", [node], {"x": [1, 4]}, {"y": [1, 4]}, [])
    with pytest.raises(ModelError, match=r"quantise none of its ops \(Sin\)"):
        api.quantize(model, tmp_path / "q.onnx", random=1)


def test_ops_with_endless_values_stay_float(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Where", ["mask", "a", "low"], ["b"], name="masked"),
        helper.make_node("Softmax", ["b"], ["y"], name="soft"),
    ]
    low = onnx.numpy_helper.from_array(np.array(-np.inf, np.float32), "low")
    mask = onnx.numpy_helper.from_array(np.array([[True, True, False, True]]), "mask")
    constants = [weights("w", 4, 4), low, mask]
    model = saved(tmp_path / "net.onnx", nodes, {"x": [1, 4]}, {"y": [1, 4]}, constants)
    made = api.quantize(model, tmp_path / "q.onnx", random=3)
    assert made.outputs[0].difference is not None
    assert (made.outputs[0].difference.sqnr_db or 0) > 20
    assert "Softmax" in made.float_ops
    assert "ops that read or make values that are not finite stay float: 2" in made.notes


def test_f16_needs_no_data(tmp_path: Path) -> None:
    model = conv_classifier(tmp_path / "net.onnx")
    made = api.quantize(model, tmp_path / "q.onnx", precision="f16")
    assert made.calibration is None
    assert made.outputs == ()
    assert ports(Path(made.output)) == ports(model)
    assert "outputs were not compared; --data or --random N does" in text_of(made)
    compared = api.quantize(model, tmp_path / "q.onnx", precision="f16", random=1)
    assert compared.outputs[0].difference is not None


def test_inputs_that_the_model_does_not_take_are_refused_in_one_line(tmp_path: Path) -> None:
    model = two_inputs(tmp_path / "net.onnx")
    np.savez(tmp_path / "in.npz", ids=np.full((1, 3), 99), bias=np.zeros((1, 3, 4), np.float32))
    with pytest.raises(ModelError, match=r"cannot run it on these inputs .* expected --data with inputs that it takes"):
        api.quantize(model, tmp_path / "q.onnx", data=tmp_path / "in.npz")


def test_a_sample_without_a_range_is_named_also_behind_the_first(tmp_path: Path) -> None:
    model = conv_classifier(tmp_path / "net.onnx")
    values = np.zeros((3, 3, 8, 8), np.float32)
    values[2, 0, 0, 0] = np.nan
    np.savez(tmp_path / "in.npz", x=values)
    with pytest.raises(ModelError, match=r"in\.npz: 'x' has values that are not finite; expected numbers$"):
        api.quantize(model, tmp_path / "q.onnx", data=tmp_path / "in.npz")


def test_layers_are_those_of_the_samples_that_are_furthest_off(made: Quantized) -> None:
    """Ranges came from values of about 1, so that small ones drown in the steps."""
    x = np.random.default_rng(0).standard_normal((5, 3, 8, 8)).astype(np.float32)
    x[[1, 3]] *= 1e-3

    class Given:
        count = 5

        def feeds(self, most: int | None = None) -> Iterator[dict[str, np.ndarray]]:
            return islice(({"x": each[None]} for each in x), most)

    model = Path(made.model).read_bytes()
    _, worst = errors.output_differences(model, Path(made.output), Given(), step=lambda _: None)  # type: ignore[arg-type]
    assert sorted(worst) == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--random", "1", "--precision", "w8a9"], "--precision w8a9: not known; did you mean w8a8?"),
        (["--data", "none.npz"], "none.npz: no such file or folder"),
        (["--random", "1", "-o", "net.onnx"], "net.onnx: is the model itself"),
        (["--random", "1", "--runs", "r"], "--runs: nothing is profiled"),
        (["--random", "0"], "'0' is not a whole number of at least 1"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    conv_classifier(tmp_path / "net.onnx")
    try:
        code = cli.main(["quantize", "net.onnx", *arguments])
    except SystemExit as stopped:
        code = stopped.code  # type: ignore[assignment]
    assert code == 2
    found = capsys.readouterr().err
    assert words in found
    assert found.count("\n") == 1


def test_the_command_writes_the_copy_and_prints_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    conv_classifier(tmp_path / "net.onnx")
    assert cli.main(["quantize", "net.onnx", "--random", "2", "--precision", "w8a16", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["output"] == "net.w8a16.onnx"
    assert "wrote net.w8a16.onnx" in printed.err
    assert (tmp_path / "net.w8a16.onnx").is_file()


def test_tensors_are_fetched_in_groups_that_fit(made: Quantized, monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.shape_inference.infer_shapes(onnx.load(made.model))
    names = [name for node in model.graph.node for name in node.output]
    assert list(sessions.groups_of(model, names)) == [names]
    monkeypatch.setattr(sessions, "_GROUP_BYTES", 4 * 8 * 8 * 8)
    groups = list(sessions.groups_of(model, names))
    assert len(groups) > 2
    assert [name for group in groups for name in group] == names


def test_a_difference_without_noise_is_exact() -> None:
    sums = errors._Sums()
    sums.add(np.array([3.0, 4.0]), np.array([3.0, 4.0]))
    assert sums.difference() == Difference(25.0, 0.0, 1.0, 0.0, 4.0)
    found = sums.difference()
    assert found is not None
    assert found.is_exact
    assert found.sqnr_db is None
    sums.add(np.array([np.inf]), np.array([1.0]))
    assert sums.difference() is None
