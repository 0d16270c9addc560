"""Small graphs, built by hand, and the reports that pages are made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO

from opscope.core.units import Bytes
from opscope.estimate.build_report import build_report
from opscope.estimate.price import Machine
from opscope.estimate.report import Report
from opscope.graph.graph import Attribute, DType, Graph, Note, Op, Role, Tensor
from opscope.machine import catalogue as targets
from opscope.views.page.page import RunPage
from opscope.workflows.estimating import analysed_run

SHAPE = (1, 16, 16, 16)
CONV: dict[str, Attribute] = {"kernel": (3, 3), "strides": (1, 1), "dilations": (1, 1), "groups": 1, "channel_axis": 3}


def chain(
    kinds: Sequence[str], *, name: Callable[[int], str] = "layer_{}".format, shared_weights: bool = False
) -> Graph:
    """Ops one after the other on tensors of one shape; `shared_weights` lets every convolution read the same ones."""
    tensors = [
        Tensor("input", SHAPE, DType.F32, Role.INPUT),
        Tensor("weights", (16, 3, 3, 16), DType.F32, Role.CONSTANT),
    ]
    ops = []
    held = 0
    for index, kind in enumerate(kinds):
        weights = 1
        if kind == "conv" and not shared_weights and index:
            weights = len(tensors)
            tensors.append(Tensor(f"{name(index)}_w", (16, 3, 3, 16), DType.F32, Role.CONSTANT))
        result = len(tensors)
        tensors.append(Tensor(f"{name(index)}_out", SHAPE, DType.F32, Role.ACTIVATION))
        inputs = (held, weights) if kind == "conv" else (held,)
        ops.append(Op(kind, kind.title(), name(index), inputs, (result,), CONV if kind == "conv" else {}))
        held = result
    notes = (Note("odd-op", f"look at {name(0)}", name(0)),)
    return Graph(name(0), f"/models/{name(0)}", "ONNX", tuple(ops), tuple(tensors), (0,), (held,), Bytes(4096), notes)


def report_of(graph: Graph, target: str = "max32690-cm4", *, advise: bool = True) -> Report:
    return build_report(graph, Machine(targets.load(target), 1, 1), sha256=None, advise=advise)


def page_of(report: Report) -> str:
    """The file that `opscope report --format html` writes."""
    recorded = analysed_run(report, command=(), created="")
    out = StringIO()
    RunPage().render(recorded.run, recorded.findings, out)
    return out.getvalue()
