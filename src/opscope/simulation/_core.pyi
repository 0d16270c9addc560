import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

def run(
    cycles: Floats,
    moved_bytes: Floats,
    queue_of: npt.NDArray[np.int32],
    dependency_first: npt.NDArray[np.uint32],
    dependency_source: npt.NDArray[np.uint32],
    lane_first: npt.NDArray[np.int64],
    channel_of: npt.NDArray[np.int32],
    shared_rate: Floats,
    queue_rate: Floats,
    latency: Floats,
    pool_first: npt.NDArray[np.int32],
    pool_rate: Floats,
    lane_ready: Floats,
    start: Floats,
    issue_end: Floats,
    transfer_start: Floats,
    done: Floats,
    blocker: npt.NDArray[np.int64],
    /,
) -> int: ...
