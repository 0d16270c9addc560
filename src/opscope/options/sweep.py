"""How a sweep is carried out: where, how much at once, within which limits, and what is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.errors import UsageError
from . import check_words, shown
from .shared import MEMORY_LIMIT, TIME_LIMIT_S, jobs, time_limit

RUNS, OPS, ROWS = "runs", "ops", "rows"  # what is kept of a cell: its run folder, its ops, its row alone
PROFILE = "opscope.fleet.cell:profile_cell"  # module:attribute


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """Options of `sweep`: where cells run, how many at once, within which limits, and what is kept of them."""

    jobs: int | None = field(default=None, metadata=jobs("processes, or workers of --cluster,"))
    scheduler: str | None = field(
        default=None, metadata=shown("run on the workers of a Dask cluster", "tcp://HOST:PORT")
    )
    cluster: str | None = field(
        default=None,
        metadata=shown("start --jobs workers on this cluster, with the configuration of Dask", "slurm|pbs|lsf|sge|k8s"),
    )
    keep: str = field(
        default=OPS,
        metadata=shown("what to keep: runs with ops, ops (default), or only rows", choices=(RUNS, OPS, ROWS)),
    )
    retry_failed: bool = field(default=False, metadata=shown("run again those cells that have no figures"))
    fresh: bool = field(default=False, metadata=shown("run all cells again; earlier rows stay"))
    time_limit_s: float = field(default=TIME_LIMIT_S, metadata=time_limit("cell"))
    memory_limit_bytes: int | None = field(default=None, metadata=MEMORY_LIMIT)  # on a cluster: none by default
    profile: str = PROFILE  # tests and benchmarks put theirs in its place
    tidy: bool = True  # put many rows together when all cells have ended; a store that is thrown away needs it not

    def __post_init__(self) -> None:
        check_words(self)
        if self.cluster is not None and (self.scheduler is not None or self.jobs is None):
            raise UsageError(f"--cluster {self.cluster}: starts a scheduler; expected --jobs N workers, no --scheduler")
