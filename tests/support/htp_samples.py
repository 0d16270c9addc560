"""Real files of the vendor's library, and small timelines typed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opscope.plugins.qnn.compilation import Compilation, read_graphs
from opscope.plugins.qnn.importers.log import read_log
from opscope.plugins.qnn.importers.op_trace import MappedOp, OpTrace, read_op_trace
from opscope.plugins.qnn.importers.schematic import Schematic, Step
from opscope.plugins.qnn.importers.timeline import WORK, Timeline
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.profile import assemble
from opscope.recording.recording import Recording

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "qnn"
needs_fixtures = pytest.mark.skipif(not FIXTURES.is_dir(), reason=f"{FIXTURES} is not here: real files of the library")
MHZ = 1000.0

TINY_NODES = (("conv0", "Conv"), ("sig3", "Sigmoid"), ("mul3", "Mul"), ("y_DequantizeLinear", "DequantizeLinear"))
TWO_NODES = (("conv0", "Conv"), ("acosh_mid", "Acosh"), ("conv1", "Conv"), ("relu1", "Relu"))


def two_partitions() -> Compilation:
    """Two graphs around a node that runs on the CPU."""
    folder = FIXTURES / "two_partitions"
    log = read_log((folder / "prof_qnn.log").read_bytes(), source="prof_qnn.log")
    op_trace = read_op_trace((folder / "qnn_op_trace.json").read_bytes(), source="qnn_op_trace.json")
    graphs = tuple(read_graphs(folder, log, op_trace))
    return Compilation(graphs, op_trace, TWO_NODES, (), {"onnxruntime-qnn": "2.7.0"})


def tiny() -> Compilation:
    """One graph; the folder has no op trace, so ops keep the names that the compiler got."""
    folder = FIXTURES / "hx52"
    log = read_log((folder / "prof_qnn.log").read_bytes(), source="prof_qnn.log")
    (name,) = log.timelines
    (file,) = folder.glob("*_schematic.bin")
    assert name in file.name
    op_trace = OpTrace(52, {name: (MappedOp("conv0_token_1", "Conv2d", ("conv0",)),)}, ())
    return Compilation(tuple(read_graphs(folder, log, op_trace)), op_trace, TINY_NODES, (), {})


def profiled(compilation: Compilation, **options: str) -> Recording:
    return assemble(Path("model.onnx"), HtpOptions.of({"soc": "52", **options}), compilation)


def timeline(*rows: tuple[int, str, int, int, bool], engines: tuple[int, ...] = ()) -> Timeline:
    """Rows of op id, lane, start, end, bookkeeping; at 1 GHz, so that a cycle is a nanosecond."""
    lanes = tuple(dict.fromkeys((0, lane) for _, lane, _, _, _ in rows))
    work = np.zeros(len(rows), WORK)
    for place, (op, lane, start, end, keeps) in enumerate(rows):
        work[place]["id"], work[place]["lane"] = op, lanes.index((0, lane))
        work[place]["start"], work[place]["end"], work[place]["bookkeeping"] = start, end, keeps
        work[place]["engine"] = engines[place] if engines else int(not keeps)
        work[place]["kernel"] = int(keeps)
    return Timeline(
        lanes, ("Kernel", "hvx_validate Kernel"), work, np.zeros((0, 2), np.int64), {"sim_core_freq": MHZ}, ""
    )


def schematic(*steps: tuple[int, int, tuple[int, ...]]) -> Schematic:
    """Rows of number, op id, and the numbers that it waits for."""
    made = tuple(Step(number, op, f"op{number}", place, after) for place, (number, op, after) in enumerate(steps))
    return Schematic("g", {}, {}, {}, (), {}, made, ())
