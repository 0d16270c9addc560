"""The convolutions and products of a model as SCALE-Sim's topology: python scalesim_topology.py MODEL FILE."""

import sys
from pathlib import Path

from opscope import api
from opscope.graph.graph import Graph, Op

HEADER = "Layer name,IFMAP height,IFMAP width,Filter height,Filter width,Channels,Num filter,Strides,"


def row(number: int, op: Op, graph: Graph) -> str:
    weights = graph.tensors[op.inputs[1]].shape
    if op.kind == "matmul":
        return f"layer{number},1,1,1,1,{op.attributes['k']},{op.attributes['n']},1,"
    (filters, channels, high, wide), stride = weights, op.attributes["strides"][0]
    *_, rows, columns = graph.tensors[op.outputs[0]].shape
    padded = (rows - 1) * stride + high, (columns - 1) * stride + wide  # SCALE-Sim has no padding of its own
    return f"layer{number},{padded[0]},{padded[1]},{high},{wide},{channels},{filters},{stride},"


graph = api.read(sys.argv[1])
layers = [op for op in graph.ops if op.kind in ("conv", "matmul")]
Path(sys.argv[2]).write_text("\n".join([HEADER, *(row(i, op, graph) for i, op in enumerate(layers))]) + "\n")
