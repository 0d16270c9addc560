"""Processor seconds of each stage of a report, in one warm process: python stage_seconds.py MODEL TARGET RUNS."""

import io
import json
import sys
from collections.abc import Callable
from functools import partial
from time import process_time

from opscope import api
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.views.text.report_text import ReportText


def seconds(work: Callable[[], object]) -> float:
    begin = process_time()  # of this one thread: other work on the machine does not count
    work()
    return process_time() - begin


def main(model: str, target: str, runs: int) -> None:
    machine = use_machine(target)
    estimate(api.read(model), machine)  # whatever is imported on first use is imported now

    def report() -> None:
        ReportText(top=15).render(api.report(model, target, fingerprint=False), io.StringIO())

    times: dict[str, list[float]] = {"read": [], "estimate": [], "report": []}
    for _ in range(runs):
        times["read"].append(seconds(lambda: api.read(model)))
        times["estimate"].append(seconds(partial(estimate, api.read(model), machine)))
        times["report"].append(seconds(report))
    print(json.dumps(times))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
