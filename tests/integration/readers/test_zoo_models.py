"""Every model of the zoo is valid, has the published size, and runs in the runtime of its format."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from math import prod
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tflite
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from opscope.cli import main
from opscope.core.errors import UsageError
from opscope.zoo import Recipe, make

Array = NDArray[np.generic]

# Small enough to run in a moment, large enough to keep every part of the network.
SMALL: dict[str, Recipe] = {
    "resnet50": Recipe("resnet50", options={"size": 64}),
    "mobilenetv2": Recipe("mobilenetv2", options={"size": 64}),
    "bert-base": Recipe(
        "bert-base",
        batch=2,
        sequence=16,
        options={"layers": 2, "hidden": 64, "heads": 4, "intermediate": 128, "vocabulary": 200},
    ),
    "vit-b16": Recipe("vit-b16", batch=2, options={"layers": 2, "hidden": 64, "heads": 4, "size": 64}),
    "vit-split": Recipe(
        "vit-tiny", batch=2, options={"layers": 2, "hidden": 64, "size": 64, "heads": 4, "qkv": "split"}
    ),
    "vit-packed": Recipe(
        "vit-tiny", batch=2, options={"layers": 1, "hidden": 64, "size": 64, "heads": 4, "qkv": "packed"}
    ),
    "llm-decode": Recipe(
        "llm-decoder",
        options={"layers": 2, "hidden": 256, "heads": 8, "intermediate": 512, "vocabulary": 300, "kv_length": 16},
    ),
    "llm-prefill": Recipe(
        "llm-decoder",
        batch=2,
        sequence=12,
        options={"layers": 2, "hidden": 128, "heads": 8, "kv_heads": 2, "intermediate": 256, "step": "prefill"}
        | {"vocabulary": 300},
    ),
    "regnety-400mf": Recipe("regnety-400mf", options={"size": 64}),
    "mobilenetv3-small": Recipe("mobilenetv3-small", options={"size": 64}),
    "densenet121": Recipe("densenet121", options={"size": 64}),
    "yolov3-tiny": Recipe("yolov3-tiny", options={"size": 64, "classes": 3}),
    "retinanet": Recipe("retinanet", batch=2, options={"size": 128, "classes": 3, "top": 5000}),
    "yolov5n": Recipe("yolov5n", options={"size": 96, "classes": 3}),
    "yolox-tiny": Recipe("yolox-tiny", options={"size": 96, "activation": "relu", "focus": "slices"}),
    "kws-cnn": Recipe("kws-cnn"),
    "cifar-resnet": Recipe("cifar-resnet", batch=2),
    "fc": Recipe("fc", batch=2, options={"features": 64, "units": 32}),
    "conv-small": Recipe("conv-small", batch=2),
}
TFLITE = tuple(key for key in SMALL if not key.startswith(("bert", "llm", "retinanet")))
PRECISIONS = ("f32", "f16", "int8")


def small(key: str, precision: str = "f32", form: str = "onnx") -> Recipe:
    recipe = SMALL[key]
    return Recipe(recipe.name, recipe.batch, recipe.sequence, precision, form, options=recipe.options)


def made(recipe: Recipe, folder: Path) -> Path:
    path = folder / f"{recipe.name}-{recipe.precision}.{recipe.format}"
    make(recipe, path)
    return path


def feeds(model: onnx.ModelProto) -> dict[str, Array]:
    """Plausible inputs, the same for every precision of a model."""
    random = np.random.default_rng(7)
    result: dict[str, Array] = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name == "attention_mask":
            result[value.name] = np.ones(shape, dtype)
        elif value.name == "position_ids":
            result[value.name] = np.broadcast_to(np.arange(shape[1]), shape).astype(dtype)
        elif dtype == np.int64:
            result[value.name] = random.integers(0, 2, shape)
        else:
            result[value.name] = random.standard_normal(shape).astype(dtype)
    return result


def run_onnx(path: Path, inputs: dict[str, Array] | None = None) -> list[NDArray[np.float64]]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    model = onnx.load(path)
    kernels = [node.input[1] for node in model.graph.node if node.op_type == "Conv"]
    if len(set(kernels)) == len(kernels):  # the runtime fails where it converts one kernel for several convolutions
        # Without VNNI, 8-bit products saturate in 16 bits on x86 unless this asks for the exact kernels.
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = inputs if inputs is not None else feeds(model)
    return [np.asarray(result, np.float64) for result in session.run(None, given)]


def run_tflite(path: Path) -> NDArray[np.float64]:
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    (into,), (out, *_) = interpreter.get_input_details(), interpreter.get_output_details()
    data = np.random.default_rng(7).standard_normal(into["shape"]).astype(np.float32)
    if into["dtype"] == np.int8:
        scale, zero_point = into["quantization"]
        data = np.clip(np.rint(data / scale) + zero_point, -128, 127).astype(np.int8)
    interpreter.set_tensor(into["index"], data)
    interpreter.invoke()
    result = np.asarray(interpreter.get_tensor(out["index"]), np.float64)
    scale, zero_point = out["quantization"]
    return (result - zero_point) * scale if out["dtype"] == np.int8 else result


def likeness(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def parameters(model: onnx.ModelProto) -> int:
    """Elements of trained tensors: floating point, not a scalar, not an exporter's constant."""
    return sum(
        prod(tensor.dims)
        for tensor in model.graph.initializer
        if tensor.dims and tensor.data_type == onnx.TensorProto.FLOAT and "Constant" not in tensor.name
    )


def macs(model: onnx.ModelProto) -> int:
    """Multiply-accumulates of convolutions and products, with shapes inferred by `onnx` and not read from us."""
    del model.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in inferred.graph.initializer}
    for value in (*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output):
        shapes[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    return sum(_node_macs(node, shapes) for node in inferred.graph.node)


def _node_macs(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> int:
    if node.op_type == "Conv":
        return prod(shapes[node.output[0]]) * prod(shapes[node.input[1]][1:])
    if node.op_type in {"Gemm", "MatMul"}:
        return prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]
    return 0


def unweighted(recipe: Recipe, folder: Path) -> onnx.ModelProto:
    """The model at full size, without the data of its weights."""
    path = folder / "model.onnx"
    make(Recipe(recipe.name, recipe.batch, recipe.sequence, weights=False, options=recipe.options), path)
    return onnx.load(path, load_external_data=False)


class TestOnnx:
    @pytest.mark.parametrize("precision", PRECISIONS)
    @pytest.mark.parametrize("key", SMALL)
    def test_a_model_is_valid_and_its_shapes_are_complete_and_right(
        self, key: str, precision: str, tmp_path: Path
    ) -> None:
        model = onnx.load(made(small(key, precision), tmp_path))
        onnx.checker.check_model(model, full_check=True)
        ours = {value.name: value for value in (*model.graph.value_info, *model.graph.output)}
        assert {name for node in model.graph.node for name in node.output} == set(ours)
        assert len({node.name for node in model.graph.node}) == len(model.graph.node)
        del model.graph.value_info[:]
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        theirs = {value.name: value for value in (*inferred.graph.value_info, *inferred.graph.output)}
        assert theirs == ours

    @pytest.mark.parametrize("key", SMALL)
    def test_the_three_precisions_run_and_give_nearly_the_same_results(self, key: str, tmp_path: Path) -> None:
        runs = {precision: run_onnx(made(small(key, precision), tmp_path)) for precision in PRECISIONS}
        for results in runs.values():
            assert all(np.isfinite(result).all() and result.std() > 0 for result in results)
        assert likeness(runs["f32"][0], runs["f16"][0]) > 0.9999
        assert likeness(runs["f32"][0], runs["int8"][0]) > 0.95

    def test_resnet50_runs_at_full_size(self, tmp_path: Path) -> None:
        (logits,) = run_onnx(made(Recipe("resnet50"), tmp_path))
        assert logits.shape == (1, 1000)
        assert 0.3 < logits.std() < 3.0

    def test_bert_base_runs_at_full_depth_in_f16_and_int8(self, tmp_path: Path) -> None:
        half, rounded = (
            run_onnx(made(Recipe("bert-base", sequence=16, precision=precision), tmp_path))
            for precision in ("f16", "int8")
        )
        assert [result.shape for result in half] == [(1, 16, 768), (1, 768)]
        assert half[0].std() == pytest.approx(1.0, rel=0.1)
        assert likeness(half[0], rounded[0]) > 0.95

    def test_f16_keeps_ids_in_int64_and_everything_else_in_f16(self, tmp_path: Path) -> None:
        model = onnx.load(made(small("llm-decode", "f16"), tmp_path))
        kinds = {value.name: value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)}
        assert kinds["input_ids"] == onnx.TensorProto.INT64
        assert kinds["past_key_values.0.key"] == kinds["logits"] == onnx.TensorProto.FLOAT16
        trained = [tensor for tensor in model.graph.initializer if tensor.name.endswith("weight")]
        assert {tensor.data_type for tensor in trained} == {onnx.TensorProto.FLOAT16}

    def test_node_names_look_like_an_exporters(self, tmp_path: Path) -> None:
        bert = {node.name for node in unweighted(Recipe("bert-base"), tmp_path).graph.node}
        assert {
            "/encoder/layer.0/attention/self/query/MatMul",
            "/encoder/layer.11/output/LayerNorm/LayerNormalization",
        } <= bert
        resnet = {node.name for node in unweighted(Recipe("resnet50"), tmp_path).graph.node}
        assert {"/conv1/Conv", "/relu/Relu", "/layer1/layer1.0/downsample/downsample.0/Conv", "/fc/Gemm"} <= resnet
        mobile = {node.name for node in unweighted(Recipe("mobilenetv2"), tmp_path).graph.node}
        assert {"/features/features.0/features.0.0/Conv", "/features/features.1/conv/conv.0/conv.0.2/Clip"} <= mobile

    def test_masked_tokens_do_not_change_the_others(self, tmp_path: Path) -> None:
        path = made(small("bert-base"), tmp_path)
        inputs = feeds(onnx.load(path))
        inputs["attention_mask"][:, 8:] = 0
        first = run_onnx(path, inputs)[0][:, :8]
        inputs["input_ids"] = inputs["input_ids"].copy()
        inputs["input_ids"][:, 8:] = 5
        assert np.allclose(first, run_onnx(path, inputs)[0][:, :8])

    def test_decoding_after_a_prefill_equals_one_longer_prefill(self, tmp_path: Path) -> None:
        options = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "intermediate": 96, "vocabulary": 50}
        long, short, step = (tmp_path / f"{name}.onnx" for name in ("long", "short", "step"))
        make(Recipe("llm-decoder", sequence=6, options=options | {"step": "prefill"}), long)
        make(Recipe("llm-decoder", sequence=5, options=options | {"step": "prefill"}), short)
        make(Recipe("llm-decoder", options=options | {"kv_length": 5}), step)
        ids = np.array([[3, 1, 4, 1, 5, 9]])
        ones, positions = np.ones((1, 6), np.int64), np.arange(6)[None]
        expected = run_onnx(long, {"input_ids": ids, "attention_mask": ones, "position_ids": positions})[0][:, -1]
        head = {"input_ids": ids[:, :5], "attention_mask": ones[:, :5], "position_ids": positions[:, :5]}
        _, *cache = run_onnx(short, head)
        names = [f"past_key_values.{layer}.{part}" for layer in (0, 1) for part in ("key", "value")]
        last = {"input_ids": ids[:, 5:], "attention_mask": ones, "position_ids": positions[:, 5:]}
        last |= {name: part.astype(np.float32) for name, part in zip(names, cache, strict=True)}
        assert np.allclose(run_onnx(step, last)[0][:, 0], expected, atol=1e-4)


class TestQuantisedOnnx:
    @pytest.fixture
    def model(self, tmp_path: Path) -> onnx.ModelProto:
        return onnx.load(made(small("cifar-resnet", "int8"), tmp_path))

    def test_convolutions_read_integers_with_a_scale_per_channel_and_int32_biases(self, model: onnx.ModelProto) -> None:
        constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        writers = {node.output[0]: node for node in model.graph.node}
        convolutions = [node for node in model.graph.node if node.op_type == "Conv"]
        assert len(convolutions) == 9
        for node in convolutions:
            data, kernel, bias = (writers[name] for name in node.input)
            assert {data.op_type, kernel.op_type, bias.op_type} == {"DequantizeLinear"}
            weights, scales = constants[kernel.input[0]], constants[kernel.input[1]]
            assert (weights.dtype, scales.shape) == (np.int8, (weights.shape[0],))
            assert len(set(scales.tolist())) > 1
            assert constants[bias.input[0]].dtype == np.int32
            assert np.allclose(constants[bias.input[1]], constants[data.input[1]] * scales)

    def test_no_pair_stands_between_a_convolution_and_its_activation(self, model: onnx.ModelProto) -> None:
        writers = {node.output[0]: node.op_type for node in model.graph.node}
        sources = {writers[node.input[0]] for node in model.graph.node if node.op_type == "Relu"}
        assert sources == {"Conv", "Add"}

    def test_inputs_and_outputs_stay_floating_point(self, model: onnx.ModelProto) -> None:
        ends = (*model.graph.input, *model.graph.output)
        assert {value.type.tensor_type.elem_type for value in ends} == {onnx.TensorProto.FLOAT}


class TestPublishedFigures:
    """Batch normalisation is folded: its two trained numbers per channel become one bias."""

    def test_resnet50(self, tmp_path: Path) -> None:
        model = unweighted(Recipe("resnet50"), tmp_path)
        with_batch_norm, channels = 25_557_032, 26_560
        assert parameters(model) == with_batch_norm - 2 * channels + channels == 25_530_472
        assert macs(model) == 4_089_184_256

    def test_mobilenetv2(self, tmp_path: Path) -> None:
        model = unweighted(Recipe("mobilenetv2"), tmp_path)
        with_batch_norm, channels = 3_504_872, 17_056
        assert parameters(model) == with_batch_norm - 2 * channels + channels == 3_487_816
        assert macs(model) == 300_774_272

    @pytest.mark.parametrize(("vocabulary", "published"), [(28_996, 108_310_272), (30_522, 109_482_240)])
    def test_bert_base(self, vocabulary: int, published: int, tmp_path: Path) -> None:
        sequence, hidden = 384, 768
        recipe = Recipe("bert-base", sequence=sequence, options={"vocabulary": vocabulary})
        model = unweighted(recipe, tmp_path)
        assert parameters(model) == published
        projections = sequence * (4 * hidden * hidden + 2 * hidden * 4 * hidden)
        products = 2 * sequence * sequence * hidden
        assert macs(model) == 12 * (projections + products) + hidden * hidden

    def test_vit_b16(self, tmp_path: Path) -> None:
        model = unweighted(Recipe("vit-b16"), tmp_path)
        assert parameters(model) == 86_567_656
        tokens, hidden = (224 // 16) ** 2 + 1, 768
        layer = tokens * (4 * hidden * hidden + 2 * hidden * 4 * hidden) + 2 * tokens * tokens * hidden
        assert macs(model) == (tokens - 1) * 3 * 16 * 16 * hidden + 12 * layer + hidden * 1000

    def test_llama_2_7b(self, tmp_path: Path) -> None:
        model = unweighted(Recipe("llm-decoder"), tmp_path)
        assert parameters(model) == 6_738_415_616
        hidden, kv_length = 4096, 1024
        layer = 4 * hidden * hidden + 3 * hidden * 11008 + 2 * (kv_length + 1) * hidden
        rotary = hidden // 32 // 2
        assert macs(model) == 32 * layer + hidden * 32000 + rotary

    def test_ds_cnn(self, tmp_path: Path) -> None:
        model = unweighted(Recipe("kws-cnn"), tmp_path)
        cells = 25 * 5
        block_macs = cells * 64 * 3 * 3 + cells * 64 * 64
        assert macs(model) == cells * 64 * 10 * 4 + 4 * block_macs + 64 * 12 == 2_656_768
        block = 64 * 3 * 3 + 64 + 64 * 64 + 64
        assert parameters(model) == 64 * 10 * 4 + 64 + 4 * block + 64 * 12 + 12

    def test_resnet8(self, tmp_path: Path) -> None:
        model = unweighted(Recipe("cifar-resnet"), tmp_path)
        published, normalised_channels = 78_666, 3 * 16 + 2 * 32 + 2 * 64
        assert parameters(model) == published - 4 * normalised_channels == 77_706  # its convolutions keep biases
        stacks = 2 * 32**2 * 9 * 16 * 16
        stacks += 16**2 * (9 * 16 * 32 + 9 * 32 * 32 + 16 * 32) + 8**2 * (9 * 32 * 64 + 9 * 64 * 64 + 32 * 64)
        assert macs(model) == 32**2 * 9 * 3 * 16 + stacks + 64 * 10


class TestFiles:
    @pytest.mark.parametrize(("key", "form"), [*((key, "onnx") for key in SMALL), *((key, "tflite") for key in TFLITE)])
    def test_the_same_recipe_gives_the_same_bytes(self, key: str, form: str, tmp_path: Path) -> None:
        digests = set()
        for folder in (tmp_path / "a", tmp_path / "b"):
            folder.mkdir()
            digests.add(sha256(made(small(key, "int8", form), folder).read_bytes()).hexdigest())
        assert len(digests) == 1

    def test_weights_beside_the_model_are_the_weights_within(self, tmp_path: Path) -> None:
        inside, outside = tmp_path / "inside.onnx", tmp_path / "outside.onnx"
        make(Recipe("kws-cnn"), inside)
        make(Recipe("kws-cnn", options={"external_above_mb": 0}), outside)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["inside.onnx", "outside.onnx", "outside.onnx.data"]
        stored = [
            {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
            for path in (inside, outside)
        ]
        assert stored[0].keys() == stored[1].keys()
        assert all(np.array_equal(stored[0][name], stored[1][name]) for name in stored[0])
        assert np.array_equal(run_onnx(inside)[0], run_onnx(outside)[0])
        onnx.checker.check_model(str(outside), full_check=True)

    def test_without_weights_the_model_says_where_they_would_be(self, tmp_path: Path) -> None:
        path = tmp_path / "model.onnx"
        make(Recipe("llm-decoder", precision="f16", weights=False), path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]
        assert path.stat().st_size < 2_000_000
        end = 0
        for tensor, place in declared(onnx.load(path, load_external_data=False)):
            assert place["location"] == "model.onnx.data"
            assert end <= int(place["offset"]) < end + 4096
            assert int(place["offset"]) % 4096 == 0
            assert (
                int(place["length"])
                == prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
            )
            end = int(place["offset"]) + int(place["length"])
        assert end > 13_000_000_000

    def test_memory_stays_small_while_large_weights_are_written(self, tmp_path: Path) -> None:
        recipe = Recipe("bert-base", options={"layers": 1, "vocabulary": 60_000})  # 217 MB
        make(small("kws-cnn"), tmp_path / "warm.onnx")  # imports
        tracemalloc.start()
        make(recipe, tmp_path / "model.onnx")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (tmp_path / "model.onnx").stat().st_size > 200_000_000
        assert peak < 64 * 1024 * 1024

    def test_progress_counts_up_to_the_bytes_of_the_weights(self, tmp_path: Path) -> None:
        seen: list[tuple[int, int]] = []
        make(Recipe("kws-cnn"), tmp_path / "m.onnx", progress=lambda done, total: seen.append((done, total)))
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1] == 22_604 * 4

    @pytest.mark.parametrize("external_above_mb", [0, 1536])
    def test_a_broken_off_write_leaves_the_earlier_file_and_nothing_else(
        self, external_above_mb: int, tmp_path: Path
    ) -> None:
        path = tmp_path / "model.onnx"
        path.write_bytes(b"earlier")

        def stop(done: int, total: int) -> None:
            if done > total // 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make(Recipe("kws-cnn", options={"external_above_mb": external_above_mb}), path, progress=stop)
        assert path.read_bytes() == b"earlier"
        assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]

    def test_a_folder_in_the_way_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r": cannot be written \(Is a directory\); expected a writable place"):
            make(Recipe("kws-cnn"), tmp_path)

    def test_listing_the_zoo_imports_no_format_library(self) -> None:
        code = "import sys, opscope.zoo as z; z.names(); sys.exit(bool({'onnx', 'flatbuffers'} & set(sys.modules)))"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def declared(model: onnx.ModelProto) -> Iterator[tuple[onnx.TensorProto, dict[str, str]]]:
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            yield tensor, {entry.key: entry.value for entry in tensor.external_data}


class TestTflite:
    @pytest.mark.parametrize("key", TFLITE)
    def test_both_precisions_run_and_give_nearly_the_same_results(self, key: str, tmp_path: Path) -> None:
        exact, rounded = (run_tflite(made(small(key, precision, "tflite"), tmp_path)) for precision in ("f32", "int8"))
        assert np.isfinite(exact).all()
        assert exact.std() > 0
        assert likeness(exact, rounded) > 0.95

    @pytest.mark.parametrize("key", ["vit-b16", "kws-cnn", "cifar-resnet", "yolov3-tiny"])
    def test_a_model_computes_the_same_in_both_formats(self, key: str, tmp_path: Path) -> None:
        path = made(small(key), tmp_path)
        shape = [dim.dim_value for dim in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]
        last = (shape[0], *shape[2:], shape[1])
        data = np.random.default_rng(7).standard_normal(last).astype(np.float32).transpose(0, 3, 1, 2)
        expected = run_onnx(path, {"input": data})[0]
        if expected.ndim == 4:  # an image, whose channels are last in the other format
            expected = expected.transpose(0, 2, 3, 1)
        assert np.allclose(run_tflite(made(small(key, form="tflite"), tmp_path)), expected, atol=1e-5)

    def test_activations_are_fused_and_integers_reach_both_ends(self, tmp_path: Path) -> None:
        model = read_tflite(made(small("kws-cnn", "int8", "tflite"), tmp_path))
        graph = model.Subgraphs(0)
        codes = [model.OperatorCodes(graph.Operators(i).OpcodeIndex()).BuiltinCode() for i in range(13)]
        code = tflite.BuiltinOperator
        block = [code.DEPTHWISE_CONV_2D, code.CONV_2D]
        tail = [code.AVERAGE_POOL_2D, code.RESHAPE, code.FULLY_CONNECTED, code.SOFTMAX]
        assert graph.OperatorsLength() == 13
        assert codes == [code.CONV_2D, *block * 4, *tail]
        ends = [graph.Tensors(graph.Inputs(0)), graph.Tensors(graph.Outputs(0))]
        assert [end.Type() for end in ends] == [tflite.TensorType.INT8] * 2

    def test_a_transformer_is_integers_throughout_in_a_converter_s_operators(self, tmp_path: Path) -> None:
        model = read_tflite(made(small("vit-b16", "int8", "tflite"), tmp_path))
        graph = model.Subgraphs(0)
        kinds = {graph.Tensors(index).Type() for index in range(graph.TensorsLength())}
        assert kinds == {tflite.TensorType.INT8, tflite.TensorType.INT32}
        stored = [model.OperatorCodes(graph.Operators(i).OpcodeIndex()) for i in range(graph.OperatorsLength())]
        words = {number: word for word, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
        layers, norms = 2, 5
        assert Counter(words[code.BuiltinCode()] for code in stored) == {
            "CONV_2D": 1,
            "CONCATENATION": 1,
            "ADD": 1 + 2 * norms + 2 * layers,
            "MEAN": 2 * norms,
            "SQUARED_DIFFERENCE": norms,
            "RSQRT": norms,
            "SUB": norms,
            "MUL": 2 * norms + layers,
            "FULLY_CONNECTED": 4 * layers + 1,
            "BATCH_MATMUL": 2 * layers,
            "SOFTMAX": layers,
            "GELU": layers,
            "RESHAPE": 1 + 2 * layers,
            "TRANSPOSE": 3 * layers,
            "GATHER": 3 * layers + 1,
        }
        assert {code.DeprecatedBuiltinCode() for code in stored if words[code.BuiltinCode()] == "GELU"} == {127}

    def test_a_report_counts_the_same_work_in_both_formats(self, tmp_path: Path) -> None:
        paths = [made(small("vit-b16"), tmp_path), made(small("vit-b16", "int8", "tflite"), tmp_path)]
        totals = [reported_macs(path) for path in paths]
        assert totals[0] == totals[1] == macs(onnx.load(paths[0]))

    def test_kernels_have_a_scale_per_channel_along_the_right_axis(self, tmp_path: Path) -> None:
        graph = read_tflite(made(small("kws-cnn", "int8", "tflite"), tmp_path)).Subgraphs(0)
        tensors = {tensor.Name().decode(): tensor for tensor in map(graph.Tensors, range(graph.TensorsLength()))}
        found = {
            name: (
                tuple(tensors[name].ShapeAsNumpy()),
                tensors[name].Quantization().ScaleLength(),
                tensors[name].Quantization().QuantizedDimension(),
            )
            for name in ("conv.weight", "blocks.0.depthwise.weight", "fc.weight")
        }
        assert found == {
            "conv.weight": ((64, 10, 4, 1), 64, 0),
            "blocks.0.depthwise.weight": ((1, 3, 3, 64), 64, 3),
            "fc.weight": ((12, 64), 1, 0),
        }

    def test_data_is_aligned_as_kernels_expect(self, tmp_path: Path) -> None:
        content = np.fromfile(made(small("kws-cnn", form="tflite"), tmp_path), np.uint8)
        model = tflite.Model.GetRootAsModel(content, 0)
        start = content.__array_interface__["data"][0]
        buffers = [model.Buffers(number).DataAsNumpy() for number in range(1, model.BuffersLength())]
        assert len(buffers) == 2 * 10 + 1
        assert {(data.__array_interface__["data"][0] - start) % 16 for data in buffers} == {0}


def reported_macs(path: Path) -> int:
    out = path.with_suffix(".json")
    assert main(["report", str(path), "--target", "aic100-std", "--format", "json", "-o", str(out)]) == 0
    return sum(layer["macs"] for layer in json.loads(out.read_text())["layers"])


def read_tflite(path: Path) -> tflite.Model:
    content = path.read_bytes()
    assert tflite.Model.ModelBufferHasIdentifier(content, 0)
    return tflite.Model.GetRootAsModel(content, 0)
