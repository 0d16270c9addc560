"""A batch taken apart: every sample on its own, from the inputs of the model as far as operators keep samples apart."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from .layout import reshape
from .rule import Graph, Maker, Match, Op, Shape, Tensor, numbers_of, options, shape_of, shaped

MOST_SAMPLES = 32
MOST_OPS = 20_000  # of all samples
# Operators whose first operand is a batch, and whose others are the same for all samples.
OF_ONE = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
    *("RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "ELU", "GELU", "HARD_SWISH", "LOGISTIC", "TANH", "EXP", "ABS"),
    *("NEG", "SQRT", "RSQRT", "QUANTIZE", "DEQUANTIZE", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX", "PAD", "MEAN"),
)
BROADCAST = ("ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM")


def split_batch(op: Op, graph: Graph) -> Match | None:
    """A model of a batch as one of as many samples: inputs cut, every operator once for each, results joined."""
    if not any(tensor is not None and tensor in graph.inputs for tensor in op.inputs):
        return None
    given = next((shape for tensor in graph.inputs if (shape := shape_of(tensor))), ())
    samples = given[0] if given else 0
    found, batches = _apart(graph, samples) if 2 <= samples <= MOST_SAMPLES else ([], set())
    if not found or found[0] is not op or samples * len(found) > MOST_OPS:
        return None
    inside = set(found)
    made = [tensor for each in found for tensor in each.outputs]
    leaving = [each for each in made if graph.is_result(each) or not inside.issuperset(graph.readers(each))]

    def build(make: Maker) -> Mapping[Tensor, Tensor]:
        parts = _Parts(make, samples, batches)
        for each in found:
            parts.add(each)
        return {tensor: parts.joined(tensor) for tensor in leaving}

    return Match(found, build, group=f"batch({'x'.join(map(str, given))})")


def _apart(graph: Graph, samples: int) -> tuple[list[Op], set[Tensor]]:
    """Operators that keep the samples of the inputs apart, in the order in which they run, and all that are batches.

    Samples lie along the first axis of each.
    """
    batches = {tensor for tensor in graph.inputs if tensor is not None and (shape_of(tensor) or (0,))[0] == samples}
    found = []
    for op in graph.ops:
        shapes = [shape_of(tensor) for tensor in op.outputs]
        if op.intermediates or not all(shape and shape[0] == samples and 0 not in shape for shape in shapes):
            continue
        if _keeps_apart(op, [tensor in batches for tensor in op.inputs]):
            found.append(op)
            batches.update(op.outputs)
    return found, batches


def _keeps_apart(op: Op, are_batches: list[bool]) -> bool:
    if op.kind == "CONCATENATION":
        return all(are_batches) and op.options.axis % len(shape_of(op.outputs[0]) or (1,)) != 0
    if op.kind in BROADCAST:
        rank = len(shape_of(op.outputs[0]) or ())
        return any(are_batches) and all(
            shape is not None and (len(shape) == rank if is_batch else len(shape) < rank or shape[0] == 1)
            for is_batch, shape in zip(are_batches, map(shape_of, op.inputs), strict=True)
        )
    if op.kind not in OF_ONE or not are_batches[0] or any(are_batches[1:]):
        return False
    shape, result = shape_of(op.inputs[0]) or (), shape_of(op.outputs[0]) or ()
    if op.kind in ("PAD", "MEAN"):
        numbers = numbers_of(op.inputs[1])
        if numbers is None:
            return False
        return (
            not any(numbers[:2]) if op.kind == "PAD" else bool(numbers) and 0 not in {n % len(shape) for n in numbers}
        )
    if op.kind == "FULLY_CONNECTED":  # rows of its result are samples, however it flattens them
        weights = shape_of(op.inputs[1])
        return weights is not None and int(np.prod(shape)) // weights[-1] * weights[0] == int(np.prod(result))
    return op.kind != "SOFTMAX" or len(shape) > 1


@dataclass(slots=True)
class _Parts:
    """Tensors of a batch, sample by sample, as they are made."""

    make: Maker
    samples: int
    batches: set[Tensor]
    made: dict[Tensor, list[Tensor]] = field(default_factory=dict)

    def add(self, op: Op) -> None:
        """An operator, once for each sample."""
        operands = [self._operand(tensor) for tensor in op.inputs]
        results: list[list[Tensor]] = [[] for _ in op.outputs]
        for sample in range(self.samples):
            inputs = [each[sample] for each in operands]
            if op.kind == "RESHAPE" and inputs[0] is not None:
                results[0].append(reshape(self.make, inputs[0], self._of_one(op.outputs[0]), op.outputs[0]))
                continue
            outputs = [shaped(tensor, self._of_one(tensor)) for tensor in op.outputs]
            self.make.ops.append(Op(op.kind, inputs, outputs, copy(op.table), op.code))
            for found, tensor in zip(results, outputs, strict=True):
                found.append(tensor)
        self.made.update(zip(op.outputs, results, strict=True))

    def joined(self, tensor: Tensor) -> Tensor:
        along = options("ConcatenationOptions", axis=0)
        return self.make.op("CONCATENATION", *self.made[tensor], like=tensor, options=along)

    def _operand(self, tensor: Tensor | None) -> list[Tensor | None]:
        if tensor is None or tensor not in self.batches:
            return [tensor] * self.samples
        if tensor not in self.made:
            axis = self.make.constant(np.asarray(0, np.int32), name="axis")
            count, shapes = options("SplitOptions", numSplits=self.samples), [self._of_one(tensor)] * self.samples
            self.made[tensor] = self.make.parts("SPLIT", axis, tensor, like=tensor, shapes=shapes, options=count)
        return list(self.made[tensor])

    def _of_one(self, tensor: Tensor) -> Shape:
        return (1, *(shape_of(tensor) or ())[1:])
