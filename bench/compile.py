"""Compile and simulate, from process start; with `--peers`, against zigzag-dse and SCALE-Sim on the same network."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import models
from measure import CHILDREN, PYTHON, Row, Sample, main, middle_seconds, peak_bytes, progress, run_child
from peers import SCALESIM, ZIGZAG

TITLE = "Compile and simulate one inference at stats level 70, whole processes"
MIB, GIB = 1 << 20, 1 << 30
PEER_NOTE = "> means the peer was stopped at the limit (--peer-seconds): the ratio is a lower bound"


def simulation(model: Path, target: str, devices: int) -> list[str]:
    """A process that compiles for 16 cores per device and simulates one inference."""
    return [PYTHON, str(CHILDREN / "simulate_model.py"), str(model), target, str(devices)]


def resnet50(model: Path, rounds: int) -> Iterator[Row]:
    argv = simulation(model, "aic100-pro", 1)
    with TemporaryDirectory() as empty:  # not even byte code is there, of opscope or of numpy
        fresh = run_child(argv, timeout=120, environment={"PYTHONPYCACHEPREFIX": empty})
    run_child(argv, timeout=120)
    runs = [run_child(argv, timeout=120) for _ in range(rounds)]
    for what, samples in (("first run, no byte code", [fresh]), ("later runs", runs)):
        seconds = middle_seconds(samples)
        yield Row(f"resnet50, 16 cores, {what}", figures(samples), "< 3 s", seconds < 3)


def llm_decode() -> Iterator[Row]:
    model = models.zoo("llm-decoder", "llm-13gb.onnx", "--precision", "f16", "--no-weights")
    progress("compiling a 7B decode step for 4 × 16 cores")
    sample = run_child(simulation(model, "aic100-ultra", 4), timeout=600)
    met = sample.seconds < 60 and sample.peak_bytes < 4 * GIB and not sample.stopped
    yield Row("7B decode, 4 × 16 cores", figures([sample]), "< 60 s, < 4 GiB", met)
    yield simulated("7B decode, 4 × 16 cores, the simulation alone", sample)


def simulated(what: str, sample: Sample) -> Row:
    """How fast the device runs a program that the compiler made, without compiling it."""
    commands, seconds = map(float, sample.output.split()[-2:])
    rate = commands / seconds
    return Row(what, {"seconds": seconds, "M commands/s": rate / 1e6}, "≥ 1 M commands/s", rate >= 1e6)


def figures(samples: Sequence[Sample]) -> dict[str, float | str]:
    return {"seconds": middle_seconds(samples), "peak MB": peak_bytes(samples) / MIB}


def against_zigzag(model: Path, limit: float) -> Iterator[Row]:
    python = ZIGZAG.tool("python")
    if python is None:
        return
    with TemporaryDirectory() as folder:
        argv = [python, str(CHILDREN / "zigzag_model.py"), str(model), folder]
        yield peer_row("zigzag-dse", argv, model, limit)


def against_scalesim(model: Path, limit: float) -> Iterator[Row]:
    python = SCALESIM.tool("python")
    if python is None:
        return
    with TemporaryDirectory() as folder:
        topology = Path(folder) / "resnet50.csv"
        run_child([PYTHON, str(CHILDREN / "scalesim_topology.py"), str(model), str(topology)], timeout=60)
        argv = [python, str(CHILDREN / "scalesim_model.py"), str(topology), folder]
        yield peer_row("scalesim", argv, model, limit)


def peer_row(peer: str, argv: Sequence[str], model: Path, limit: float) -> Row:
    """Once opscope, once the peer, once opscope: a peer of minutes is not run seven times."""
    ours = simulation(model, "aic100-pro", 1)
    before = run_child(ours, timeout=120)
    progress(f"{peer} on {model.name}, for at most {limit:.0f} s")
    theirs = run_child(argv, timeout=limit)
    runs = [before, run_child(ours, timeout=120)]
    faster = theirs.seconds / middle_seconds(runs)
    mark = "> " if theirs.stopped else ""
    values: dict[str, float | str] = figures(runs) | {
        "peer s": f"{mark}{theirs.seconds:.0f}",
        "peer MB": f"{mark}{theirs.peak_bytes / MIB:.0f}",
        "times faster": f"{mark}{faster:.0f}",
    }
    met = True if faster >= 100 else None if theirs.stopped else False
    return Row(
        f"resnet50, {peer}", values, "≥ 100×, less memory", met and theirs.peak_bytes > peak_bytes(runs), (PEER_NOTE,)
    )


def measure(options: Namespace) -> Iterator[Row]:
    model = models.zoo("resnet50", "resnet50.onnx")
    yield from resnet50(model, options.rounds)
    yield from llm_decode()
    if options.peers:
        yield from against_zigzag(model, options.peer_seconds)
        yield from against_scalesim(model, options.peer_seconds)


if __name__ == "__main__":
    main(TITLE, measure)
