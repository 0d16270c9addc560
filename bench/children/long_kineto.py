"""python long_kineto.py TRACE TIMES OUT: the same iteration so many times in a row, with numbers of its own."""

import gzip
import json
import sys

SPREAD = 10_000_000  # between the numbers of two repeats
GAP = 1000.0  # microseconds

source, times, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with gzip.open(source) as file:
    trace = json.load(file)
events = [event for event in trace["traceEvents"] if "ts" in event]
start = min(event["ts"] for event in events)
length = max(event["ts"] + event.get("dur", 0) for event in events) - start + GAP
repeated = [event for event in trace["traceEvents"] if "ts" not in event]
for number in range(times):
    for event in events:
        args = dict(event.get("args", {}))
        for key in ("External id", "correlation"):
            if isinstance(args.get(key), int):
                args[key] += number * SPREAD
        moved = {**event, "ts": event["ts"] + number * length, "args": args}
        if "id" in event:
            moved["id"] = event["id"] + number * SPREAD if isinstance(event["id"], int) else event["id"]
        repeated.append(moved)
with gzip.open(target, "wt", compresslevel=1) as file:
    json.dump({**trace, "traceEvents": repeated}, file)
