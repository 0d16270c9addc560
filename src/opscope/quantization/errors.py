"""A copy against the float model: outputs over all samples, and every tensor that both graphs have.

Inner tensors are fetched in groups that fit into a budget, so that memory does not grow with the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..recording.quantized import Difference, LayerDifference, OutputDifference
from .copies import DEQUANTIZE, QUANTIZE, Copy
from .samples import Feed, Samples
from .sessions import fetch, groups_of, open_session, with_outputs

if TYPE_CHECKING:
    import onnx

Tell = Callable[[str], None]
LAYER_SAMPLES = 2  # layers are compared on the worst samples alone: it takes a run per group, graph and sample
MOST_LAYERS = 50  # that are kept


@dataclass(slots=True)
class _Sums:
    """What a Difference is made of, added up sample by sample."""

    signal: float = 0.0
    other: float = 0.0
    both: float = 0.0
    noise: float = 0.0
    max_abs: float = 0.0
    largest: float = 0.0
    finite: bool = True

    def add(self, wanted: npt.NDArray[np.generic], found: npt.NDArray[np.generic]) -> None:
        a, b = (np.asarray(each, np.float64).ravel() for each in (wanted, found))
        if a.size != b.size or not np.isfinite(a).all() or not np.isfinite(b).all():
            self.finite = False
            return
        if not a.size:
            return
        apart = a - b
        self.signal += float(a @ a)
        self.other += float(b @ b)
        self.both += float(a @ b)
        self.noise += float(apart @ apart)
        self.max_abs = max(self.max_abs, float(np.abs(apart).max()))
        self.largest = max(self.largest, float(np.abs(a).max()))

    def difference(self) -> Difference | None:
        if not self.finite:
            return None
        size = sqrt(self.signal) * sqrt(self.other)
        cosine = min(self.both / size, 1.0) if size else None
        return Difference(self.signal, self.noise, cosine, self.max_abs, self.largest)


def output_differences(
    model: bytes, copy: Path, samples: Samples, *, step: Tell
) -> tuple[tuple[OutputDifference, ...], list[int]]:
    """Every output of the model, over all samples; and the numbers of the samples that are furthest off."""
    ours, theirs = open_session(model), open_session(copy)
    outputs = [OutputSums(port.name) for port in ours.get_outputs()]
    names = [output.name for output in outputs]
    shares: list[float] = []
    for number, feed in enumerate(samples.feeds(), start=1):
        step(f"comparing outputs, sample {number} of {samples.count}")
        both = zip(outputs, fetch(ours, names, feed), fetch(theirs, names, feed), strict=True)
        shares.append(max([output.add(wanted, found) for output, wanted, found in both], default=0.0))
    worst = sorted(range(len(shares)), key=lambda number: -shares[number])[:LAYER_SAMPLES]
    return tuple(output.difference() for output in outputs), worst


@dataclass(slots=True)
class OutputSums:
    """What is known of one output so far."""

    name: str
    sums: _Sums = field(default_factory=_Sums)
    same: int = 0
    rows: int = 0
    is_float: bool = True

    def add(self, wanted: object, found: object) -> float:
        """Take a sample in; return its noise for one of signal."""
        if not isinstance(wanted, np.ndarray) or not isinstance(found, np.ndarray) or wanted.dtype.kind != "f":
            self.is_float = False
            return 0.0
        alone = _Sums()
        for sums in (alone, self.sums):
            sums.add(wanted, found)
        if wanted.ndim == 2 and wanted.shape[1] > 1 and wanted.shape == found.shape:
            self.same += int((wanted.argmax(1) == found.argmax(1)).sum())
            self.rows += len(wanted)
        difference = alone.difference()
        return inf if difference is None else difference.share

    def difference(self) -> OutputDifference:
        if not self.is_float:
            return OutputDifference(self.name, None, problem="no tensor of floats")
        found = self.sums.difference()
        problem = "" if found else "values that are not finite, or of another shape"
        return OutputDifference(self.name, found, self.same / self.rows if self.rows else None, self.rows, problem)


def layer_differences(copy: Copy, feeds: Sequence[Feed], *, step: Tell) -> tuple[LayerDifference, ...]:
    """Every op whose output both graphs have, the one that adds most noise first."""
    import onnx

    graphs = [onnx.load(str(file)) for file in (copy.simplified, copy.file)]
    shared = {name for node in graphs[1].graph.node for name in node.output}
    makers = {
        name: node
        for node in graphs[0].graph.node
        for name in node.output
        if name in shared and node.op_type not in (QUANTIZE, DEQUANTIZE, "Constant")
    }
    seen = _as_read(graphs[1].graph)
    found: dict[str, Difference] = {}
    groups = list(groups_of(graphs[0], list(makers)))
    for number, group in enumerate(groups, start=1):
        step(f"comparing layers, group {number} of {len(groups)}")
        found |= _compared(graphs[0], graphs[1], {name: seen.get(name, name) for name in group}, feeds)
    producers = {name: node for node in graphs[0].graph.node for name in node.output}
    layers = []
    for name, difference in found.items():
        node = makers[name]
        before = max(_before(node, found, producers), key=lambda each: each.share, default=None)
        added = max(0.0, difference.share - (before.share if before else 0.0))
        layers.append(
            LayerDifference(node.name, node.op_type, name, difference, before.sqnr_db if before else None, added)
        )
    return tuple(sorted(layers, key=lambda layer: -layer.added))


def _before(
    node: onnx.NodeProto, found: Mapping[str, Difference], producers: Mapping[str, onnx.NodeProto]
) -> Iterator[Difference]:
    """What is known nearest before a node: of its inputs, else of what they were made from."""
    left, seen = list(node.input), set[str]()
    while left:
        name = left.pop()
        if name in found:
            yield found[name]
        elif name in producers and name not in seen:
            left.extend(producers[name].input)
        seen.add(name)


def _as_read(copy: onnx.GraphProto) -> dict[str, str]:
    """Tensor → what its readers get: itself, quantised and back. An activation may be in that step alone."""
    whole = {node.input[0]: node.output[0] for node in copy.node if node.op_type == DEQUANTIZE}
    pairs = ((node.input[0], node.output[0]) for node in copy.node if node.op_type == QUANTIZE)
    return {name: whole[quantised] for name, quantised in pairs if quantised in whole}


def _compared(
    ours: onnx.ModelProto, theirs: onnx.ModelProto, names: Mapping[str, str], feeds: Sequence[Feed]
) -> Iterator[tuple[str, Difference]]:
    """Tensors of the model, and their names in the copy."""
    sums = {name: _Sums() for name in names}
    sessions = [open_session(with_outputs(ours, list(names))), open_session(with_outputs(theirs, [*names.values()]))]
    types = {port.name: port.type for port in sessions[0].get_outputs()}
    fetched = [name for name in names if types.get(name) in ("tensor(float)", "tensor(float16)", "tensor(double)")]
    for feed in feeds if fetched else ():
        wanted, found = fetch(sessions[0], fetched, feed), fetch(sessions[1], [names[name] for name in fetched], feed)
        for name, one, other in zip(fetched, wanted, found, strict=True):
            sums[name].add(one, other)
    for name in fetched:
        difference = sums[name].difference()
        if difference is not None and difference.signal:
            yield name, difference
