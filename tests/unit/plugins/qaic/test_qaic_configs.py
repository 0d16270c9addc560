"""Partition files and specializations: what is read, and how a wrong one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.plugins.qaic.configs import read_partition, read_specializations
from opscope.plugins.qaic.flags import CompileCall, compile_call


def written(folder: Path, value: object) -> Path:
    path = folder / "config.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def devices(*cores: object, first: int = 0) -> dict[str, object]:
    return {"name": "P", "devices": [{"deviceId": n, "numCores": count} for n, count in enumerate(cores, first)]}


def compiled(*words: str) -> CompileCall:
    call = compile_call(["-model=m.onnx", "-aic-binary-dir=b", *words])
    assert call is not None
    return call


def test_one_partition_shares_every_op_among_its_devices(tmp_path: Path) -> None:
    path = written(tmp_path, {"connections": [{"devices": [0, 1], "type": "p2p"}], "partitions": [devices(16, 16)]})
    found = read_partition(path)
    assert (found.devices, found.cores, found.is_pipeline, found.notes) == (2, 16, False, ())
    call = compiled(f"-mdp-load-partition-config={path}")
    assert (call.options.devices, call.options.cores, call.options.parallel) == (2, 16, "auto")
    assert call.target == "aic100-ultra"
    assert call.notes == ("2 devices: compiled for aic100-ultra (-target=NAME for another)",)
    with pytest.raises(UsageError, match=r"^-aic-num-cores=8: -mdp-load-partition-config has 16 cores a device; "):
        compiled(f"-mdp-load-partition-config={path}", "-aic-num-cores=8")


def test_a_partition_per_device_is_a_pipeline(tmp_path: Path) -> None:
    stages = {
        "partitions": [devices(4) | {"nodeList": ["a"]}, devices(4, first=1)],
        "connections": [{"type": "host"}],
        "x": 1,
    }
    found = read_partition(written(tmp_path, stages))
    assert (found.devices, found.cores, found.is_pipeline) == (2, 4, True)
    assert [note.partition("config.json: ")[2] for note in found.notes] == [
        "x: not known, left aside",
        "nodeList: the compiler itself chooses the ops of every stage",
        "connection of type host: simulated as p2p",
    ]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"partitions": [devices(16, 8)]}, "devices of 8 and 16 cores; expected the same number on every device"),
        ({"partitions": [devices("x")]}, "P: numCores: found 'x'; expected a whole number from 1"),
        ({"partitions": [devices(0)]}, "P: numCores: found 0; expected a whole number from 1"),
        ({"partitions": []}, "no partitions; expected a list of at least one"),
        ({"partitions": [{"name": "P"}]}, "P: no devices; expected a list of at least one"),
        ({"partitions": [devices(4, 4), devices(4)]}, "2 partitions on 3 devices; expected one partition, or one"),
        ([], "found []; expected "),
        ("{", "not JSON ("),
        (
            {"partitions": [{"devices": [{"deviceId": 3, "numCores": 2}] * 2}]},
            "deviceId 3 is given twice; expected every device once",
        ),
    ],
)
def test_a_wrong_partition_file_is_told_in_one_line(tmp_path: Path, value: object, problem: str) -> None:
    path = written(tmp_path, value)
    with pytest.raises(UsageError) as error:
        read_partition(path)
    assert str(error.value).startswith(f"{path}: {problem}")


def test_specializations_are_sizes_of_symbols(tmp_path: Path) -> None:
    rows = [{"batch_size": "1", "seq_len": "32"}, {"batch_size": 1, "seq_len": 1}]
    path = written(tmp_path, {"specializations": rows})
    assert [each.sizes for each in read_specializations(path)] == [
        {"batch_size": (1,), "seq_len": (32,)},
        {"batch_size": (1,), "seq_len": (1,)},
    ]
    assert len(compiled(f"-network-specialization-config={path}").specializations) == 2
    with pytest.raises(UsageError, match=r"^seq_len: sized by a flag and by -network-specialization-config; expected"):
        compiled(f"-network-specialization-config={path}", "-onnx-define-symbol=seq_len,8")


def test_specializations_may_have_names_and_shapes_of_inputs(tmp_path: Path) -> None:
    rows = [{"name": "Prefill", "symbols": {"seq_len": "128"}}, {"pixels": [1, 3, "64", 64]}]
    named, shaped = read_specializations(written(tmp_path, {"specializations": rows}))
    assert (str(named), str(shaped)) == ("Prefill: seq_len 128", "pixels 1x3x64x64")
    assert (named.sizes, shaped.sizes) == ({"seq_len": (128,)}, {"pixels": (1, 3, 64, 64)})


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"specializations": [{"x": [1, 0]}]}, "specialization 0: x: found 0; expected a whole number from 1"),
        ({"specializations": [{"name": "Decode", "symbols": {}}]}, "specialization 0 is empty; expected sizes of"),
        ({"specializations": [{}]}, "specialization 0 is empty; expected sizes of symbols"),
        ({"specializations": [{"a": "-1"}]}, "specialization 0: a: found '-1'; expected a whole number from 1"),
        ({"specializations": {}}, "no specializations; expected a list of at least one"),
        ({"specializations": [{"a": 1}] * 257}, "257 specializations; expected at most 256"),
    ],
)
def test_a_wrong_specialization_is_told_in_one_line(tmp_path: Path, value: object, problem: str) -> None:
    path = written(tmp_path, value)
    with pytest.raises(UsageError) as error:
        read_specializations(path)
    assert str(error.value).startswith(f"{path}: {problem}")
