"""Cells on the workers of a Dask cluster: Dask says where, a Runner on each worker gives them processes."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from .. import __version__
from ..core.errors import UsageError, printable
from .cell import Job, Outcome, Outcomes, record_failure
from .place import needed
from .plan import Cell, code_digest, tool_version
from .runner import Runner
from .store import Store

if TYPE_CHECKING:
    from distributed import Client

_CONNECT_S = 30
_QUEUED_S = 3600  # that the first worker may wait in a queue of jobs
_AHEAD = 4  # cells given out for each thread of a worker: enough that none waits for the scheduler


_MAKERS = {  # who starts workers → module, class, package; which queue or image they use is in Dask's own configuration
    **{
        name: ("dask_jobqueue", f"{prefix}Cluster", "dask-jobqueue")
        for name, prefix in (("slurm", "SLURM"), ("pbs", "PBS"), ("lsf", "LSF"), ("sge", "SGE"))
    },
    "k8s": ("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes"),
}
MAKERS = tuple(_MAKERS)


@contextmanager
def started_cluster(maker: str, workers: int) -> Iterator[Client]:
    """A scheduler of our own, and so many workers that a queue of jobs or Kubernetes starts; all end with it."""
    if maker not in _MAKERS:
        raise UsageError(f"--cluster {printable(maker)}: not known; expected one of {', '.join(MAKERS)}")
    module, name, package = _MAKERS[maker]
    make = getattr(needed(module, install=f"pip install {package}"), name)
    try:
        found = make()
        found.scale(workers)
    except Exception as error:
        problem = printable(" ".join(str(error).split()), 300)
        found = None
    if found is None:  # not from the error: a half made cluster that it keeps alive would complain at the end
        gc.collect()
        raise UsageError(f"--cluster {maker}: cannot be started ({problem}); expected what {package} asks for")
    with found, cluster(found, wait_s=_QUEUED_S) as client:
        yield client


@contextmanager
def cluster(address: Any, *, wait_s: float = _CONNECT_S) -> Iterator[Client]:
    """A connection to a scheduler, by its address or as Dask has it; what goes wrong with it is said in one line."""
    distributed = needed("distributed")
    where = str(getattr(address, "scheduler_address", address))
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, name="opscope")
    except (OSError, TimeoutError, ValueError) as error:
        problem = f"no scheduler answers ({printable(str(error), 200)})"
        raise UsageError(f"{printable(where)}: {problem}; expected `dask scheduler` to run there") from error
    try:
        with _one_line(where):
            client.wait_for_workers(1, timeout=wait_s)
        yield client
    finally:
        with suppress(OSError, TimeoutError):
            client.close(timeout=5)


@contextmanager
def _one_line(address: str) -> Iterator[None]:
    """Everything that Dask raises of a lost connection, as an error of ours."""
    try:
        yield
    except (OSError, TimeoutError, needed("distributed").client.FutureCancelledError) as error:
        problem = f"the scheduler or its workers are gone ({printable(str(error), 200)})"
        raise UsageError(
            f"{printable(address)}: {problem}; what ended is in the store, expected the same command again"
        ) from error


def threads_of(client: Client) -> int:
    """Cells that run at once."""
    return sum(int(worker["nthreads"]) for worker in _workers(client).values())


def versions_there(client: Client, backends: Sequence[str]) -> dict[str, str]:
    """Backend → version of its tool on the workers, which must be one; and their opscope must be ours."""
    told: dict[str, tuple[str, dict[str, str]]] = client.run(_versions, list(backends))
    ours = code_digest()
    for worker, (code, _) in told.items():
        if code != ours:
            raise UsageError(f"worker {worker}: has another opscope; expected {__version__} with the code that is here")
    found = [versions for _, versions in told.values()]
    for name in backends:
        if len({versions[name] for versions in found}) > 1:
            listed = ", ".join(sorted({versions[name] or "none" for versions in found}))
            raise UsageError(f"backend {name}: workers have several versions ({listed}); expected one")
    return found[0]


def _versions(backends: list[str]) -> tuple[str, dict[str, str]]:
    return code_digest(), {name: tool_version(name) for name in backends}


def outcomes_there(client: Client, cells: Sequence[Cell], job: Job) -> Outcomes:
    """Every cell on the cluster, in the order in which they end."""
    distributed = needed("distributed")
    address = str(client.scheduler.address) if client.scheduler else "cluster"
    _check_resources(client, cells)
    name = f"opscope-{job.sweep}"
    with _one_line(address):
        client.register_plugin(_plugin(distributed, job, name))
    ended = distributed.as_completed()
    waiting, under_way, store = iter(cells), {}, Store(job.store)

    def give(most: int) -> None:
        for _, cell in zip(range(most), waiting, strict=False):
            future = client.submit(
                _run_on_worker,
                msgspec.msgpack.encode(cell),
                name,
                key=f"{name}-{cell.id}",
                pure=False,
                resources=dict(cell.resources) or None,
            )
            under_way[future.key] = cell
            ended.add(future)

    try:
        with _one_line(address):
            give(_AHEAD * max(1, threads_of(client)))
            for future in ended:
                cell = under_way.pop(future.key)
                try:
                    yield msgspec.msgpack.decode(future.result(), type=Outcome)
                except distributed.scheduler.KilledWorker as error:  # one after the other died while it ran there
                    yield record_failure(store, cell, job, f"workers were lost with it ({error})", 0.0, host="")
                give(1)
    finally:
        if client.status == "running":  # a scheduler that is gone cannot be told so
            with suppress(OSError, TimeoutError):
                client.cancel(list(ended.futures))
                client.unregister_worker_plugin(name)


def _plugin(distributed: Any, job: Job, name: str) -> object:
    class CellRunner(distributed.WorkerPlugin):  # type: ignore[misc]  # Dask has no types
        """The processes of one worker, from its start to its end."""

        def setup(self, worker: object) -> None:
            self.runner = Runner(job)

        def teardown(self, worker: object) -> None:
            self.runner.close()

    plugin = CellRunner()
    plugin.name = name
    return plugin


def _run_on_worker(cell: bytes, name: str) -> bytes:
    from distributed import get_worker

    runner: Runner = get_worker().plugins[name].runner
    return msgspec.msgpack.encode(runner.run(msgspec.msgpack.decode(cell, type=Cell)))


def _check_resources(client: Client, cells: Sequence[Cell]) -> None:
    """A cell that no worker may take would wait for ever."""
    offered = [dict(worker.get("resources") or {}) for worker in _workers(client).values()]
    for needs in {tuple(sorted(cell.resources.items())) for cell in cells if cell.resources}:
        if not any(all(have.get(name, 0) >= count for name, count in needs) for have in offered):
            wanted = ", ".join(f"{name}={count:g}" for name, count in needs)
            raise UsageError(f"resources {printable(wanted)}: no worker has them; expected `dask worker --resources`")


def _workers(client: Client) -> dict[str, dict[str, Any]]:
    return dict(client.scheduler_info(n_workers=-1)["workers"])
