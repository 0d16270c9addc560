"""Small networks of the zoo, and rows that a known machine would have measured of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from opscope.calibration.measurements import Measurement
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.estimate.precision import in_precision, with_precision
from opscope.machine.target import Target
from opscope.readers import graph_of
from opscope.zoo import Recipe, make

NETWORKS: Mapping[str, Recipe] = {
    "kws": Recipe("kws-cnn", weights=False),
    "small": Recipe("conv-small", weights=False),
    "fc": Recipe("fc", weights=False),
    "fc-wide": Recipe("fc", weights=False, options={"features": 4096, "units": 4096}),
    "mobile": Recipe("mobilenetv2", weights=False, options={"size": 96}),
    "vit": Recipe("vit-tiny", weights=False, options={"layers": 1}),
    "unet": Recipe("unet", weights=False, options={"size": 128, "channels": 16}),
    "resnet": Recipe("resnet18", weights=False, options={"size": 128}),
}


def make_networks(folder: Path, names: Sequence[str] = tuple(NETWORKS)) -> dict[str, Path]:
    """Write networks without weights; returns their files by name."""
    for name in names:
        make(NETWORKS[name], folder / f"{name}.onnx")
    return {name: folder / f"{name}.onnx" for name in names}


def seconds_on(target: Target, model: Path, precision: str | None = None) -> float:
    """What the estimator says of a network."""
    chosen = with_precision(target, precision)
    found = estimate(in_precision(graph_of(model), chosen, precision), use_machine(chosen)).totals.latency_s
    assert found is not None
    return found.value


def rows_of(target: Target, models: Mapping[str, Path], *, chip: str = "") -> list[Measurement]:
    """What a machine that is just like a target would have measured."""
    return [Measurement(f"rows.csv:{name}", path, seconds_on(target, path), chip) for name, path in models.items()]


def csv_text(rows: Sequence[Measurement]) -> str:
    lines = [f"{row.model.name},{row.seconds * 1e3:.6g},{row.chip}" for row in rows]
    return "\n".join(["model,latency_ms,chip", *lines]) + "\n"
