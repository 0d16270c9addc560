"""`opscope report` against onnx-tool and ethos-u-vela: from process start to the result on stdout."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import models
from measure import OPSCOPE, Row, Sample, alternate, main, middle_seconds, peak_bytes, progress, run_child, times_slower
from peers import ONNX_TOOL, VELA

TITLE = "opscope report against its peers, whole processes (median seconds, peak resident MB)"
ONNX_TARGET, TFLITE_TARGET = "aic100-std", "max32690-cm4"
LARGE_BYTES = 25_000_000  # below this, the interpreter alone outweighs the file
MIB = 1 << 20


def against_onnx_tool(rounds: int) -> Iterator[Row]:
    """Shape inference and a cost table per layer: what both do with an ONNX file."""
    python = ONNX_TOOL.tool("python")
    for name in ("mobilenetv2", "resnet50", "bert-base"):
        model = models.zoo(name, f"{name}.onnx")
        peer = [python, "-m", "onnx_tool", "-i", str(model)] if python else None
        yield from compare(model, ONNX_TARGET, "onnx-tool", peer, rounds)


def against_vela(rounds: int) -> Iterator[Row]:
    """Vela also emits a command stream; opscope also tries changes to the model. Both end in a cost summary."""
    vela = VELA.tool("vela")
    for name in ("kws-cnn", "cifar-resnet", "mobilenetv2"):
        model = models.zoo(name, f"{name}.tflite", "--precision", "int8")
        with TemporaryDirectory() as folder:
            peer = [vela, str(model), "--output-dir", folder] if vela else None
            yield from compare(model, TFLITE_TARGET, "vela", peer, rounds)


def compare(model: Path, target: str, peer: str, peer_argv: Sequence[str] | None, rounds: int) -> Iterator[Row]:
    """One row for time; for a large file, one for memory."""
    progress(f"{peer} and opscope on {model.name}")
    sides: dict[str, Sequence[str]] = {"opscope": [OPSCOPE, "report", str(model), "--target", target]}
    if peer_argv:
        sides["peer"] = peer_argv
    samples = alternate(sides, rounds=rounds)
    ours, theirs = samples["opscope"], samples.get("peer")
    values: dict[str, float | str] = {"opscope s": middle_seconds(ours), "opscope MB": peak_bytes(ours) / MIB}
    if theirs:
        faster = times_slower(theirs, ours)
        values |= {"peer s": middle_seconds(theirs), "peer MB": peak_bytes(theirs) / MIB, "times faster": faster}
        yield Row(f"{model.name}, {peer}", values, "≥ 3× (aim 10×)", faster >= 3)
    else:
        yield Row(f"{model.name}, {peer} not installed", values)
    if model.stat().st_size > LARGE_BYTES:
        yield memory_row(f"{model.name}, peak memory", ours, model.stat().st_size, 1.2)


def external_weights() -> Iterator[Row]:
    """The same network with its weights beside it: they are not read at all."""
    model = models.zoo("bert-base", "bert-external.onnx", "--external-above-mb", "0")
    total = sum(file.stat().st_size for file in model.parent.glob(f"{model.stem}*"))
    sample = run_child([OPSCOPE, "report", str(model), "--target", ONNX_TARGET], timeout=120)
    yield memory_row(f"{model.name}, weights beside it", [sample], total, 0.3)


def memory_row(what: str, samples: Sequence[Sample], file_bytes: int, limit: float) -> Row:
    peak = peak_bytes(samples)
    values = {"opscope MB": peak / MIB, "file MB": file_bytes / MIB, "memory ÷ file": peak / file_bytes}
    return Row(what, values, f"< {limit}× file", peak < limit * file_bytes)


def measure(options: Namespace) -> Iterator[Row]:
    yield from against_onnx_tool(options.rounds)
    yield from against_vela(options.rounds)
    yield from external_weights()


if __name__ == "__main__":
    main(TITLE, measure)
