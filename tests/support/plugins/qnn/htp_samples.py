"""Compilations read from made files of the vendor's library, and small timelines typed by hand."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from opscope.plugins.qnn.compilation import Compilation, read_graphs
from opscope.plugins.qnn.importers.log import read_log
from opscope.plugins.qnn.importers.op_trace import read_op_trace
from opscope.plugins.qnn.importers.schematic import ScheduledOp, Schematic
from opscope.plugins.qnn.importers.timeline import WORK, Thread, Timeline
from opscope.plugins.qnn.options import HtpOptions
from opscope.plugins.qnn.profile import assemble
from opscope.recording.recording import Recording
from support.plugins.qnn.qnn_session import Session, one_graph, two_graphs

MHZ = 1000.0  # of the timelines typed by hand

TINY_NODES = (("conv0", "Conv"), ("sig3", "Sigmoid"), ("mul3", "Mul"), ("y_DequantizeLinear", "DequantizeLinear"))
TWO_NODES = (("conv0", "Conv"), ("acosh_mid", "Acosh"), ("conv1", "Conv"), ("relu1", "Relu"))


def two_partitions() -> Compilation:
    """Two graphs around a node that runs on the CPU."""
    return compilation_of(two_graphs(), TWO_NODES)


def tiny() -> Compilation:
    """One graph, in which the work of a node is done by the next."""
    return compilation_of(one_graph(), TINY_NODES)


def compilation_of(session: Session, nodes: tuple[tuple[str, str], ...]) -> Compilation:
    """What a session leaves, written and read back."""
    with TemporaryDirectory() as name:
        folder = session.write(Path(name))
        log = read_log((folder / "prof_qnn.log").read_bytes(), source="prof_qnn.log")
        op_trace = read_op_trace((folder / "qnn_op_trace.json").read_bytes(), source="qnn_op_trace.json")
        return Compilation(tuple(read_graphs(folder, log, op_trace)), op_trace, nodes, (), {})


def profiled(compilation: Compilation, **options: str) -> Recording:
    return assemble(Path("model.onnx"), HtpOptions.of({"soc": "52", **options}), compilation)


def timeline(*rows: tuple[int, str, int, int, bool], engines: tuple[int, ...] = ()) -> Timeline:
    """Rows of op id, lane, start, end, bookkeeping; at 1 GHz, so that a cycle is a nanosecond."""
    lanes = tuple(dict.fromkeys(Thread.of(0, lane) for _, lane, _, _, _ in rows))
    work = np.zeros(len(rows), WORK)
    for place, (op, lane, start, end, keeps) in enumerate(rows):
        work[place]["id"], work[place]["lane"] = op, lanes.index(Thread.of(0, lane))
        work[place]["start"], work[place]["end"], work[place]["bookkeeping"] = start, end, keeps
        work[place]["engine"] = engines[place] if engines else int(not keeps)
        work[place]["kernel"] = int(keeps)
    return Timeline(
        lanes, ("Kernel", "hvx_validate Kernel"), work, np.zeros((0, 2), np.int64), {"sim_core_freq": MHZ}, ""
    )


def schematic(*steps: tuple[int, int, tuple[int, ...]]) -> Schematic:
    """Rows of number, op id, and the numbers that it waits for."""
    made = tuple(
        ScheduledOp(number, op, f"op{number}", place, after) for place, (number, op, after) in enumerate(steps)
    )
    return Schematic("g", {}, {}, {}, (), {}, made, ())
