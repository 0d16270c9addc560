"""One function per user verb: the only place that wires stages together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from . import targets
from .compatibility import Compatibility
from .errors import UsageError
from .estimate.build_report import build_report
from .estimate.compatible import check_compatibility
from .estimate.flat import flat_report as count_flat
from .estimate.price import Machine
from .graph import Graph
from .readers import read_model
from .report import Report
from .target import Target

_CHUNK_BYTES = 1 << 20


def report(
    model: str | Path,
    target: str | Path | Target,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    cores: int | None = None,
    devices: int = 1,
    advise: bool = True,
    fingerprint: bool = True,
) -> Report:
    """Estimate what a model takes on a target.

    Args:
        model: path of an ONNX or TensorFlow Lite file.
        target: name from the catalogue, path of a target TOML file, or a Target.
        shapes: graph input name → shape, for dimensions the model leaves open.
        batch: leading dimension of every input.
        cores: cores to use per device; all of them when not given.
        devices: devices to use.
        advise: try changes to the graph and suggest those that help.
        fingerprint: put the SHA-256 of the model file into the report, which means reading all of it.
    """
    path = Path(model)
    machine = use_machine(target, cores=cores, devices=devices)
    graph = read_model(path, shapes=shapes, batch=batch)
    return build_report(graph, machine, sha256=sha256_of(path) if fingerprint else None, advise=advise)


def flat_report(
    model: str | Path,
    target: str | Path | Target,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    batch: int | None = None,
    cores: int | None = None,
    devices: int = 1,
    advise: bool = True,
    fingerprint: bool = True,
) -> Report:
    """The report by flat counting: every operation priced like a MAC. Arguments as for `report`."""
    path = Path(model)
    machine = use_machine(target, cores=cores, devices=devices)
    graph = read_model(path, shapes=shapes, batch=batch)
    flat = count_flat(graph, machine, sha256=sha256_of(path) if fingerprint else None)
    return flat if advise else replace(flat, suggestions=(), heavy_memory=(), heavy_macs=())


def compatibility(model: str | Path, target: str | Path | Target) -> tuple[Graph, Compatibility]:
    """What of a model a target cannot take, with the graph it was found in."""
    graph = read_model(Path(model))
    return graph, check_compatibility(graph, use_machine(target))


def read(model: str | Path, *, shapes: Mapping[str, tuple[int, ...]] | None = None, batch: int | None = None) -> Graph:
    """Read a model file."""
    return read_model(Path(model), shapes=shapes, batch=batch)


def use_machine(target: str | Path | Target, *, cores: int | None = None, devices: int = 1) -> Machine:
    """So many cores and devices of a target."""
    chosen = target if isinstance(target, Target) else targets.load(str(target))
    have_cores, have_devices = round(chosen.topology.cores.value), round(chosen.topology.devices.value)
    for word, asked, have in (("cores", cores, have_cores), ("devices", devices, have_devices)):
        if asked is not None and not 1 <= asked <= have:
            raise UsageError(f"--{word} {asked}: {chosen.name} has {have}; expected 1 to {have}")
    return Machine(chosen, devices=devices, cores=have_cores if cores is None else cores)


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
