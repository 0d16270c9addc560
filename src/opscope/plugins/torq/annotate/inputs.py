"""A runtime's log → JobTimes or ActionTimes, whichever form the file has; a compiler's dump → Listing."""

from __future__ import annotations

from pathlib import Path

from ....core.errors import ImportFileError
from ....importers.formats import appearance
from ....importers.reading import head_of
from ..importers.dump import read_listing
from ..importers.host_log import read_actions
from ..importers.runtime_csv import read_jobs
from ..manifest import HOST_LOGS, JOBS
from .annotated import ActionTimes, JobTimes

__all__ = ["ActionTimes", "JobTimes", "read_listing", "read_log"]

_KNOWN = (
    "expected a log of jobs (id;time_since_open;time_since_start[;location]) or of the host (dispatch_name,"
    "invocation_id,action_id,timestamp_us,event or actionIndex, elapsed_time(us), timestamp(us), event, location)"
)


def read_log(path: Path) -> JobTimes | ActionTimes:
    """What a runtime logged; the content decides how it is read."""
    head = head_of(path)
    if JOBS.fits(head, path.name):
        return read_jobs(path, locations=False)  # a job is known by its place
    form = next((form for form, log in HOST_LOGS.items() if log.fits(head, path.name)), None)
    if form is None:
        raise ImportFileError(str(path), "line 1", f"looks like {appearance(head)}; {_KNOWN}")
    return read_actions(path, form)
