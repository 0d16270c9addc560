"""What one op costs as graphs grow, and what declared weights cost that are never read."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

import models
from measure import CHILDREN, OPSCOPE, PYTHON, Row, main, progress, run_child

TITLE = "Cost per op as graphs grow (µs of processor time per op, in one warm process), and memory as weights grow"
SIZES = (1_000, 10_000, 100_000)
STAGES = ("read", "estimate", "report")
TARGET = "aic100-std"
MIB = 1 << 20


def stage_seconds(ops: int, model: Path, rounds: int) -> dict[str, float]:
    """Processor seconds of reading, estimating, and the whole report with advice and text: medians."""
    progress(f"reading, estimating and reporting {ops:,} ops")
    runs = max(3, rounds) if ops < SIZES[-1] else 3
    child = [PYTHON, str(CHILDREN / "stage_seconds.py"), str(model), TARGET, str(runs)]
    measured: dict[str, list[float]] = json.loads(run_child(child, timeout=600).output.splitlines()[-1])
    return {stage: median(measured[stage]) for stage in STAGES}


def per_op(chains: Mapping[int, Path], rounds: int) -> Iterator[Row]:
    micros = {}
    for ops, model in chains.items():
        seconds = stage_seconds(ops, model, rounds)
        micros[ops] = {stage: seconds[stage] / ops * 1e6 for stage in STAGES}
    for stage in STAGES:
        ratio = micros[SIZES[-1]][stage] / micros[SIZES[0]][stage]
        values = {f"{ops // 1000}k ops": micros[ops][stage] for ops in SIZES}
        yield Row(f"{stage}, µs/op", values | {"100k ÷ 1k": ratio}, "≤ 1.5", ratio <= 1.5)


def command_line(chains: Mapping[int, Path]) -> Iterator[Row]:
    """`opscope report` from process start: time and memory of the whole command."""
    for ops, model in chains.items():
        sample = run_child([OPSCOPE, "report", str(model), "--target", TARGET], timeout=600)
        values = {"seconds": sample.seconds, "peak MB": sample.peak_bytes / MIB}
        yield Row(f"opscope report, {ops:,} ops", values)


def declared_weights() -> Iterator[Row]:
    """Two decoders of 32 layers that differ in the weights they declare, not in their graphs."""
    small_shape = ("--hidden", "256", "--intermediate", "1024")
    common = ("--precision", "f16", "--no-weights")
    small = models.zoo("llm-decoder", "llm-100mb.onnx", *common, *small_shape)
    large = models.zoo("llm-decoder", "llm-13gb.onnx", *common)
    peaks = {}
    for what, model in (("100 MB", small), ("13 GB", large)):
        sample = run_child([OPSCOPE, "report", str(model), "--target", "aic100-ultra"], timeout=120)
        peaks[what] = sample.peak_bytes
        yield Row(
            f"report, {what} of weights declared", {"seconds": sample.seconds, "peak MB": sample.peak_bytes / MIB}
        )
    ratio = peaks["13 GB"] / peaks["100 MB"]
    yield Row("peak memory, 13 GB ÷ 100 MB", {"ratio": ratio}, "does not grow (≤ 1.1)", ratio <= 1.1)


def measure(options: Namespace) -> Iterator[Row]:
    chains = {ops: models.chain(ops) for ops in SIZES}
    yield from per_op(chains, options.rounds)
    yield from command_line(chains)
    yield from declared_weights()


if __name__ == "__main__":
    main(TITLE, measure)
