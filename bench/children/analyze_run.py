"""python analyze_run.py RUN ROUNDS: read the run, analyse it; prints spans and the seconds of every round as JSON."""

import gc
import json
import sys
from pathlib import Path
from time import perf_counter

from opscope.analysis.analyse import analyse
from opscope.recording.folder_reader import read_run

gc.set_threshold(200_000, 50, 50)  # as the command line has it
folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
seconds, spans = [], 0
for _ in range(rounds + 1):
    begin = perf_counter()
    run = read_run(folder)
    findings = analyse(run)
    seconds.append(perf_counter() - begin)
    spans = len(run.trace.spans)
    del run, findings
print(json.dumps({"spans": spans, "seconds": seconds[1:]}))  # the first round imports modules
