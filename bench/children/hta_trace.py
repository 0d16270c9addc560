"""python hta_trace.py TRACE ROUNDS: the same questions asked of HolisticTraceAnalysis; seconds of every round as JSON.

Reading the trace, where device time goes, which kernels take it, and why the device is idle.
"""

import json
import logging
import sys
from time import perf_counter

from hta.trace_analysis import TraceAnalysis

logging.disable(logging.CRITICAL)
path, rounds = sys.argv[1], int(sys.argv[2])
QUESTIONS = {  # what `opscope analyze` answers too
    "temporal": lambda analysis: analysis.get_temporal_breakdown(visualize=False),
    "kernels": lambda analysis: analysis.get_gpu_kernel_breakdown(visualize=False),
    "idle": lambda analysis: analysis.get_idle_time_breakdown(ranks=[0], visualize=False),
}
read, ask, failed = [], [], []
for _ in range(rounds + 1):
    begin = perf_counter()
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir="")
    loaded = perf_counter()
    failed = []
    for name, question in QUESTIONS.items():
        try:
            question(analysis)
        except AssertionError:  # it trips over some real traces; the time until then counts
            failed.append(name)
    read.append(loaded - begin)
    ask.append(perf_counter() - loaded)
print(json.dumps({"read": read[1:], "ask": ask[1:], "failed": failed}))
