"""Ops of PyTorch by what they were called with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opscope
from opscope.calibration.measurements import read_measurements
from opscope.core.errors import ImportFileError
from opscope.plugins.traces.aten import Called, Told, told_by

HALF = "c10::Half"


def called(*dims: object, types: tuple[str, ...] = (HALF,), concrete: tuple[str, ...] = ()) -> Called:
    return Called(dims=dims, types=types, concrete=concrete)


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "shapes", "macs"),
    [
        ("aten::addmm", called([9], [4, 6], [6, 9], [], []), "matmul", "4x6;6x9->4x9", 4 * 6 * 9),
        ("aten::bmm", called([12, 5, 7], [12, 7, 3]), "matmul", "12x5x7;12x7x3->12x5x3", 12 * 5 * 7 * 3),
        (
            "aten::cudnn_convolution",
            called([1, 3, 224, 224], [64, 3, 7, 7], concrete=("", "", "[3, 3]", "[2, 2]", "[1, 1]", "1")),
            "conv",
            "1x3x224x224;64x3x7x7->1x64x112x112",
            64 * 112 * 112 * 3 * 49,
        ),
        (
            "aten::cudnn_convolution",
            called([1, 32, 9, 9], [32, 1, 3, 3], concrete=("", "", "[1, 1]", "[1, 1]", "[1, 1]", "32")),
            "conv",
            "1x32x9x9;32x1x3x3->1x32x9x9",
            32 * 81 * 9,
        ),
        (
            "aten::_slow_conv2d_forward",
            called([1, 3, 64, 64], [16, 3, 3, 3], [], [16], concrete=("", "", "[3, 3]", "", "[2, 2]", "[1, 1]")),
            "conv",
            "1x3x64x64;16x3x3x3->1x16x32x32",
            16 * 32 * 32 * 27,
        ),
        (
            "aten::max_pool2d_with_indices",
            called([1, 64, 112, 112], concrete=("", "[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False")),
            "max_pool",
            "1x64x112x112->1x64x56x56",
            0,
        ),
        (
            "aten::_cudnn_attention_forward",
            called([1, 12, 128, 64], [1, 12, 128, 64], [1, 12, 128, 64]),
            "attention",
            "1x12x128x64;1x12x128x64;1x12x128x64->1x12x128x64",
            2 * 12 * 128 * 128 * 64,
        ),
        ("aten::mean", called([1, 8, 7, 7], concrete=("", "[-1, -2]")), "reduce", "1x8x7x7->1x8x1x1", 0),
        ("aten::add_", called([4, 8], [1, 8], []), "add", "4x8;1x8->4x8", 0),
        ("aten::native_layer_norm", called([1, 128, 768], []), "layer_norm", "1x128x768", 0),
        ("aten::clamp_min_", called([4], []), "relu", "4", 0),
        ("aten::cat", called([[8, 1, 4], [8, 6, 4]], [], concrete=("", "1")), "concat", "8x1x4;8x6x4->8x7x4", 0),
    ],
)
def test_what_an_op_was_called_with_tells_what_it_does(
    name: str, arguments: Called, kind: str, shapes: str, macs: int
) -> None:
    assert told_by(name, arguments) == Told(kind, shapes, "f16", macs)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aten::view", called([4])),
        ("aten::addmm", called()),
        ("aten::addmm", called([4], "x", 5)),
        ("aten::addmm", called([4], [2, 3], [3, 4], types=("Scalar",))),
        ("aten::cudnn_convolution", called([1, 3, 8, 8], [4, 3, 3, 3], concrete=("", "", "a"))),
        ("aten::cudnn_convolution", called([1, 3, 8, 8], [4, 3, 3, 3], concrete=("", "", "[1]", "[0]", "[1]"))),
        ("aten::_cudnn_attention_forward", called([4, 8], [4, 8], [4, 8])),
        ("aten::gelu", called([-1, 4])),
        ("aten::cat", called([8], [], concrete=("", "5"))),
    ],
)
def test_what_is_not_known_or_odd_is_told_as_nothing(name: str, arguments: Called) -> None:
    assert told_by(name, arguments) is None


def trace(folder: Path) -> Path:
    """Two calls of a product, of 30 and 50 µs, and one of an op that nobody knows."""
    arguments = {"Input Dims": [[8], [4, 16], [16, 8]], "Input type": [HALF] * 3, "Concrete Inputs": ["", "", ""]}
    events: list[dict[str, object]] = []
    for number, (name, ns) in enumerate([("aten::addmm", 30), ("aten::addmm", 50), ("my::op", 9)]):
        ids = {"External id": number, "correlation": number, "device": 0, "stream": 7}
        where = {"ph": "X", "ts": 100 * number}
        events += [
            {**where, "cat": "cpu_op", "name": name, "dur": 9, "pid": 1, "tid": 1, "args": {**arguments, **ids}},
            {**where, "cat": "kernel", "name": "k", "dur": ns, "pid": 0, "tid": 7, "args": ids},
        ]
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"name": "G"}], "traceEvents": events}))
    return path


def test_a_run_of_a_trace_is_rows_of_ops_for_a_calibration(tmp_path: Path) -> None:
    recorded = opscope.import_profile([trace(tmp_path)], tmp_path / "run")
    first = recorded.recording.ops[0]
    assert (first.kind, first.shape, first.dtype, first.macs) == ("matmul", "4x16;16x8->4x8", "f16", 2 * 4 * 16 * 8)
    (row,) = read_measurements([tmp_path / "run"])
    assert row.seconds == pytest.approx(40e-6)
    assert row.network == "matmul 4x16, 16x8, 4x8"


def test_a_run_without_shapes_is_refused_as_before(tmp_path: Path) -> None:
    path = trace(tmp_path)
    path.write_text(path.read_text().replace("aten::addmm", "your::op"))
    opscope.import_profile([path], tmp_path / "run")
    with pytest.raises(ImportFileError, match=r"its latency is measured; expected a measured run|is not there"):
        read_measurements([tmp_path / "run"])
