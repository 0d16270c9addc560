"""Sweeps on a real Dask cluster of processes: who is killed, what is left, and that every cell is there once."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from opscope.core.errors import UsageError
from opscope.fleet.query import ask
from opscope.fleet.spec import Pattern, Spec
from opscope.fleet.store import Store
from opscope.fleet.sweep import Progress, Started, sweep
from opscope.options import SweepOptions
from support import fleet_cells

pytest.importorskip("distributed")
AXES = {"target": ("aic100-std",), "backend": ("estimate",)}


def free_port() -> int:
    """Below those that systems give to whoever connects: one that waits for the port could get it."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


class Cluster:
    """A scheduler and workers, each a process; all are ended with it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack, self.port = folder, stack, free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": fleet_cells.PYTHON_PATH}
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.stack.callback(self.end, process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def scheduler(self) -> subprocess.Popen[bytes]:
        place = ("--host", "127.0.0.1", "--port", str(self.port), "--dashboard-address", "127.0.0.1:0")
        process = self._start("dask_scheduler", *place)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as found:
                if found.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.1)
        raise AssertionError("the scheduler does not answer")

    def worker(self, *words: str) -> subprocess.Popen[bytes]:
        place = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
        return self._start("dask_worker", self.address, *place, *words)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(folder, stack)


def run(folder: Path, address: str, **fields: object) -> Progress:
    spec = Spec(("*.onnx",), folder, AXES)
    seen = fields.pop("progress", None)
    started = fields.pop("started", None)
    options = SweepOptions(scheduler=address, profile="support.fleet_cells:logged", **fields)  # type: ignore[arg-type]
    return sweep(spec, folder / "s", options, created=fleet_cells.CREATED, progress=seen, started=started)  # type: ignore[arg-type]


def cells_in(folder: Path) -> tuple[object, ...]:
    return ask(Store(folder / "s"), "SELECT count(*), count(DISTINCT id), count(DISTINCT model) FROM cells").rows[0]


@pytest.mark.filterwarnings("ignore")
def test_workers_and_scheduler_are_killed_and_every_cell_is_there_once(tmp_path: Path) -> None:
    """One worker is killed, then the scheduler; all is started again, and the same sweep ends the work."""
    count = 14
    fleet_cells.write_models(tmp_path, count, "sleep 0.2")
    told: list[Started] = []
    with cluster(tmp_path) as made:
        scheduler, workers = made.scheduler(), [made.worker(), made.worker()]

        def progress(state: Progress) -> None:
            if state.ended == 3:
                made.end(workers[0])
            if state.ended == 6:
                made.end(scheduler)

        with pytest.raises(UsageError, match="the same command again"):
            run(tmp_path, made.address, progress=progress, started=told.append)
        made.end(workers[1])
    before = cells_in(tmp_path)
    assert isinstance(before[0], int)
    assert 6 <= before[0] < count
    assert before == (before[0],) * 3
    assert told[0].dashboard.startswith("http")
    with cluster(tmp_path) as made:
        made.scheduler(), made.worker(), made.worker()
        state = run(tmp_path, made.address)
    assert state.failed + state.refused == 0
    assert state.done <= count - before[0]  # a cell that was under way may have ended after all
    assert cells_in(tmp_path) == (count,) * 3


@pytest.mark.filterwarnings("ignore")
def test_cells_go_to_workers_that_have_what_they_need(tmp_path: Path) -> None:
    fleet_cells.write_models(tmp_path, 2)
    needs = ((Pattern({"model": ("m001",)}), {"board": 1.0}),)
    spec = Spec(("*.onnx",), tmp_path, AXES, resources=needs)
    with cluster(tmp_path) as made:
        made.scheduler(), made.worker()
        options = SweepOptions(scheduler=made.address, profile="support.fleet_cells:act")
        with pytest.raises(UsageError, match=r"resources board=1: no worker has them"):
            sweep(spec, tmp_path / "s", options, created=fleet_cells.CREATED)
        made.worker("--resources", "board=1")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                state = sweep(spec, tmp_path / "s", options, created=fleet_cells.CREATED)
                break
            except UsageError:  # the worker has not come yet
                time.sleep(0.5)
    assert state.done == 2


def test_a_scheduler_that_does_not_answer_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opscope.fleet import cluster as clusters

    monkeypatch.setattr(clusters, "_CONNECT_S", 1)
    fleet_cells.write_models(tmp_path, 1)
    with pytest.raises(UsageError, match=r"no scheduler answers .*; expected `dask scheduler` to run there"):
        run(tmp_path, f"tcp://127.0.0.1:{free_port()}")


def test_a_cluster_that_somebody_else_starts_runs_the_cells_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of a queue of jobs, Dask's own processes."""
    import distributed

    def started() -> distributed.LocalCluster:
        return distributed.LocalCluster(n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None)

    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=started))
    monkeypatch.setenv("PYTHONPATH", fleet_cells.PYTHON_PATH)
    fleet_cells.write_models(tmp_path / "models", 4)
    options = SweepOptions(cluster="slurm", jobs=2, profile="support.fleet_cells:act")
    spec = Spec(("models/*.onnx",), tmp_path, AXES)
    assert sweep(spec, tmp_path / "s", options, created=fleet_cells.CREATED).done == 4
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(UsageError, match=r"^dask_jobqueue: is not installed .*; expected `pip install dask-jobqueue`$"):
        sweep(spec, tmp_path / "s", options, created=fleet_cells.CREATED)
    for wrong, words in (
        ({"cluster": "cloud", "jobs": 1}, "--cluster cloud: not known; expected one of slurm, "),
        ({"cluster": "slurm"}, "--cluster slurm: starts a scheduler; expected --jobs N workers"),
        ({"cluster": "slurm", "jobs": 1, "scheduler": "tcp://h:1"}, "no --scheduler"),
    ):
        with pytest.raises(UsageError, match=words):
            sweep(spec, tmp_path / "s", SweepOptions(**wrong), created=fleet_cells.CREATED)  # type: ignore[arg-type]
