"""python analyze_trace.py TRACE ROUNDS: import a Kineto trace and analyse it; prints seconds of every round as JSON."""

import gc
import json
import sys
from pathlib import Path
from time import perf_counter

from opscope.analysis.analyse import analyse
from opscope.analysis.run_analysis import RunAnalysis
from opscope.analysis.timeline.gaps import waits_for
from opscope.importers.formats import read_profile
from opscope.recording.build import to_run

gc.set_threshold(200_000, 50, 50)  # as the command line has it
path, rounds = Path(sys.argv[1]), int(sys.argv[2])
read, ask, everything = [], [], []
for _ in range(rounds + 1):
    begin = perf_counter()
    run = to_run(read_profile(path), command=(), created="", sha256=None)
    loaded = perf_counter()
    analysis = RunAnalysis(run)
    temporal, idle, kernels = (
        analysis.engines,
        waits_for(analysis),
        run.summary.ops,
    )  # these were added up while reading
    asked = perf_counter()
    found = analyse(run)
    read.append(loaded - begin)
    ask.append(asked - loaded)
    everything.append(perf_counter() - asked)
print(json.dumps({"read": read[1:], "ask": ask[1:], "all": everything[1:]}))
