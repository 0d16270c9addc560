"""What does opscope add to the vendor's own compiler, how long does a profile take, and does a grid use all cores?"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from importlib.util import find_spec
from statistics import median

import models
from measure import CHILDREN, OPSCOPE, PYTHON, Row, alternate, main, middle_seconds, run_child, times_slower

TITLE = "The HTP backend: opscope beside the vendor's compiler"
GRID = ("--vtcm-mb", "1,2,4,8", "--io-quant", "on,off")
_ALONE = "the vendor's compiler alone is started from Python too; `opscope profile` starts two processes"


def stages(model: str, rounds: int) -> Row:
    """Reading and analysis against the process that compiles."""
    pairs = []
    for _ in range(rounds):
        output = run_child([PYTHON, str(CHILDREN / "htp_stages.py"), model], timeout=120).output
        vendor, ours = map(float, output.split()[-2:])
        pairs.append((vendor, ours))
    share = median(ours / vendor for vendor, ours in pairs)
    values = {"s": median(ours for _, ours in pairs), "vendor s": median(v for v, _ in pairs), "share": share}
    return Row("mobilenetv2 int8: reading and analysis", values, "< 0.20 of the compile", share < 0.20)


def whole(model: str, rounds: int) -> Row:
    """The command, and the recipe without opscope."""
    sides = {
        "opscope": [OPSCOPE, "profile", model, "--backend", "htp"],
        "vendor": [PYTHON, str(CHILDREN / "htp_compile.py"), model],
    }
    samples = alternate(sides, rounds=rounds)
    seconds = middle_seconds(samples["opscope"])
    values = {
        "s": seconds,
        "vendor s": middle_seconds(samples["vendor"]),
        "times the vendor": times_slower(samples["opscope"], samples["vendor"]),
    }
    return Row("mobilenetv2 int8: opscope profile", values, "< 3 s", seconds < 3, (_ALONE,))


def grid(model: str, rounds: int) -> Row:
    """Eight points with one process at a time, and with as many as there are cores."""
    cores = os.cpu_count() or 1
    base = [OPSCOPE, "whatif", model, *GRID]
    samples = alternate({"one": [*base, "--jobs", "1"], "all": [*base, "--jobs", str(cores)]}, rounds=rounds)
    gain = times_slower(samples["one"], samples["all"])
    values = {"s": middle_seconds(samples["all"]), "one at a time s": middle_seconds(samples["one"]), "gain": gain}
    goal = f"≥ {0.6 * cores:.1f}× on {cores} cores"
    return Row("mobilenetv2 int8: grid of 8 points", values, goal, gain >= 0.6 * cores)


def measure(options: Namespace) -> Iterator[Row]:
    if find_spec("onnxruntime_qnn") is None:
        yield Row("skipped", {}, notes=("onnxruntime-qnn is not installed: pip install 'opscope[htp]'",))
        return
    model = str(models.zoo("mobilenetv2", "mobilenetv2-int8.onnx", "--precision", "int8"))
    yield stages(model, options.rounds)
    yield whole(model, options.rounds)
    yield grid(model, min(options.rounds, 3))


if __name__ == "__main__":
    main(TITLE, measure)
