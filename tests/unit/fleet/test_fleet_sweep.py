"""Sweeps on this machine: every cell becomes one row, whatever happens to its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.fleet import sweep as sweeps
from opscope.fleet.cell import Job, Models
from opscope.fleet.plan import planned
from opscope.fleet.query import ask
from opscope.fleet.runner import Runner, outcomes_here
from opscope.fleet.spec import Spec
from opscope.fleet.store import Store
from opscope.fleet.sweep import Progress, plan_sweep, sweep
from opscope.options import SweepOptions
from support import fleet_cells

AXES = {"target": ("aic100-std",), "backend": ("estimate",)}
WORDS = {
    "fine": "ns 1500",
    "late": "hang",
    "broken": "crash",
    "large": "memory",
    "wrong": "refuse",
    "odd": "raise",
}


@pytest.fixture(autouse=True)
def _support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", fleet_cells.PYTHON_PATH)


def options(**fields: object) -> SweepOptions:
    return SweepOptions(**{"jobs": 1, "profile": "support.fleet_cells:act", **fields})  # type: ignore[arg-type]


def run(folder: Path, **fields: object) -> Progress:
    spec = Spec(("*.onnx",), folder, AXES)
    return sweep(spec, folder / "s", options(**fields), created=fleet_cells.CREATED, commit="abc")


def rows(folder: Path, sql: str) -> tuple[tuple[object, ...], ...]:
    return ask(Store(folder / "s"), sql).rows


def test_every_cell_becomes_a_row_with_figures_or_a_reason(tmp_path: Path) -> None:
    for name, word in WORDS.items():
        (tmp_path / f"{name}.onnx").write_text(word)
    state = run(tmp_path, jobs=2, time_limit_s=3.0, memory_limit_bytes=2 << 30)
    assert (state.done, state.failed, state.refused, state.total) == (1, 4, 1, 6)
    found = {str(row[0]): row[1:] for row in rows(tmp_path, "SELECT model, status, reason, latency_ns FROM cells")}
    assert found["fine"] == ("ok", None, 1500.0)
    assert found["wrong"] == ("refused", "net: has an op that the target lacks; expected another", None)
    assert found["late"] == ("failed", "took longer than 3 s; expected less (--time-limit)", None)
    assert found["broken"][:2] == ("failed", "the process ended (SIGABRT): the compiler is about to fall over")
    assert found["large"][:2] == ("failed", "out of memory: needs more than 2048 MiB, the limit (--memory-limit)")
    assert found["odd"][:2] == ("failed", "RuntimeError: something unforeseen")
    facts = rows(tmp_path, "SELECT DISTINCT commit, model_path, backend, target FROM cells WHERE model = 'fine'")
    assert facts == (("abc", "fine.onnx", "estimate", "aic100-std"),)


def test_a_sweep_goes_on_where_it_stopped_and_redoes_nothing(tmp_path: Path) -> None:
    fleet_cells.write_models(tmp_path, 4)
    assert run(tmp_path, profile="support.fleet_cells:logged").done == 4
    fleet_cells.write_models(tmp_path, 6)
    assert run(tmp_path, profile="support.fleet_cells:logged").ended == 2
    (tmp_path / "m000.onnx").write_text("sleep 0.001")  # another model under the same name
    assert run(tmp_path, profile="support.fleet_cells:logged").ended == 1
    ran = (tmp_path / "s.log").read_text().split()
    assert len(ran) == len(set(ran)) == 7
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT id) FROM cells") == ((7, 7),)
    assert rows(tmp_path, "SELECT count(*) FROM latest") == ((6,),)


def test_a_failed_cell_is_retried_when_asked_and_is_then_one_row(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("crash")
    assert run(tmp_path).failed == 1
    assert run(tmp_path).ended == 0
    state = run(tmp_path, retry_failed=True, profile="support.fleet_cells:recorded_cell")
    assert state.done == 1
    assert rows(tmp_path, "SELECT status FROM cells") == (("ok",),)


def test_fresh_cells_stand_beside_the_old_ones(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("sleep 0")
    assert run(tmp_path).done == 1
    assert run(tmp_path, fresh=True).done == 1
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT key) FROM cells") == ((2, 1),)


def test_a_cell_that_dies_of_what_another_left_gets_a_new_process(tmp_path: Path) -> None:
    for name, word in (("a", "poison"), ("b", "sleep 0"), ("c", "sleep 0")):
        (tmp_path / f"{name}.onnx").write_text(word)
    assert run(tmp_path, jobs=1).done == 3


def test_a_model_that_changes_under_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_text("sleep 0")
    (cell,) = planned(Spec(("net.onnx",), tmp_path, AXES))
    (tmp_path / "net.onnx").write_text("sleep 1")
    with pytest.raises(UsageError, match="is not the file that was planned"):
        Models().check(cell)


def test_a_plan_tells_cells_and_time_and_writes_nothing(tmp_path: Path) -> None:
    fleet_cells.write_models(tmp_path, 3)
    spec = Spec(("*.onnx",), tmp_path, AXES)
    plan = plan_sweep(spec, tmp_path / "s", options())
    assert (len(plan.todo), plan.seconds) == (3, None)
    assert not (tmp_path / "s").exists()
    run(tmp_path)
    fleet_cells.write_models(tmp_path, 5)
    plan = plan_sweep(spec, tmp_path / "s", options())
    assert len(plan.todo) == 2
    assert plan.seconds is not None
    assert plan.seconds > 0


def test_the_same_model_is_read_once_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import opscope.readers
    from support.models import small_models

    small_models.convnet(tmp_path / "net.onnx")
    reads = []
    real = opscope.readers.read_model
    monkeypatch.setattr(opscope.readers, "read_model", lambda *a, **k: reads.append(k["batch"]) or real(*a, **k))
    cells = planned(Spec(("net.onnx",), tmp_path, {**AXES, "cores": (1, 2, 4), "batch": (1, 2)}))
    models = Models()
    graphs = {id(models.read(cell)) for cell in cells}
    assert sorted(reads) == [1, 2]
    assert len(graphs) == 2


@pytest.mark.parametrize("keep", ["runs", "ops", "rows"])
def test_what_is_kept(tmp_path: Path, keep: str) -> None:
    from support.models import small_models

    small_models.convnet(tmp_path / "net.onnx")
    spec = Spec(("net.onnx",), tmp_path, AXES)
    state = sweep(spec, tmp_path / "s", SweepOptions(jobs=1, keep=keep), created=fleet_cells.CREATED)
    assert state.done == 1
    ((run_folder, ops, latency),) = rows(tmp_path, "SELECT run, (SELECT count(*) FROM ops), latency_ns FROM cells")
    assert (run_folder is not None) is (keep == "runs")
    assert (ops == 0) is (keep == "rows")
    assert latency
    if run_folder is not None:
        assert (tmp_path / "s" / str(run_folder) / "run.json").is_file()


def test_runs_are_not_kept_where_there_are_no_folders(tmp_path: Path) -> None:
    fleet_cells.write_models(tmp_path, 1)
    with pytest.raises(UsageError, match="--keep runs: memory://x is no folder"):
        sweep(Spec(("*.onnx",), tmp_path, AXES), "memory://x", options(keep="runs"), created=fleet_cells.CREATED)


def test_a_closed_runner_leaves_no_process_and_no_row(tmp_path: Path) -> None:
    fleet_cells.write_models(tmp_path, 3, "hang")
    store = Store(tmp_path / "s", create=True)
    cells = planned(Spec(("*.onnx",), tmp_path, AXES))
    job = Job(store.place.root, "s", fleet_cells.CREATED, profile="support.fleet_cells:act")
    found = outcomes_here(cells, job, jobs=2)

    class StopError(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise StopError

    old = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        with pytest.raises(StopError):
            next(found)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert rows(tmp_path, "SELECT count(*) FROM cells") == ((0,),)


def test_an_interrupt_between_two_cells_ends_the_processes_too(tmp_path: Path) -> None:
    for name, word in (("a", "sleep 0"), ("b", "hang"), ("c", "hang")):
        (tmp_path / f"{name}.onnx").write_text(word)

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    spec, start = Spec(("*.onnx",), tmp_path, AXES), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sweep(spec, tmp_path / "s", options(), created=fleet_cells.CREATED, progress=interrupt)
    assert time.monotonic() - start < 300  # which hanging cells are far from
    assert rows(tmp_path, "SELECT model FROM cells") == (("a",),)


def test_an_interrupt_ends_in_one_line_and_keeps_what_ended(tmp_path: Path) -> None:
    """As a person presses Ctrl-C; then the same command ends the work."""
    fleet_cells.write_models(tmp_path, 4, "sleep 0.4")
    code = (
        "import sys; from dataclasses import replace; from opscope.fleet import sweep\n"
        "real, given = sweep.sweep, {'profile': 'support.fleet_cells:logged'}\n"
        "sweep.sweep = lambda spec, store, options, **k: real(spec, store, replace(options, **given), **k)\n"
        "from opscope.cli import main; sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", code, "sweep", "--models", "*.onnx", "--target", "aic100-std"]
    command += ["--backend", "estimate", "-o", "s", "--jobs", "1"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list((tmp_path / "s").glob("inbox/*.json")):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command goes on" in errors
    assert "Traceback" not in errors
    kept = rows(tmp_path, "SELECT count(*) FROM cells")[0][0]
    assert isinstance(kept, int)
    assert 1 <= kept < 4
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    assert f"{4 - kept} of 4 cells to run" in done.stderr
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT id) FROM cells") == ((4, 4),)


def test_children_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    fleet_cells.write_models(tmp_path, 1)
    store = Store(tmp_path / "s", create=True)
    runner = Runner(Job(store.place.root, "s", fleet_cells.CREATED, profile="support.fleet_cells:act"))
    (cell,) = planned(Spec(("*.onnx",), tmp_path, AXES))
    assert runner.run(cell).status == "ok"
    process = runner._idle[0]._process
    assert process.stdin is not None
    process.stdin.close()  # what the system does for one that is killed
    assert process.wait(timeout=20) == 0
    runner.close()


def test_memory_is_shared_among_the_processes() -> None:
    one, four = sweeps.part_of_memory(1), sweeps.part_of_memory(4)
    assert one is None or (four is not None and abs(one / four - 4) < 0.01)
