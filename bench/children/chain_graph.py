"""Write an ONNX graph of so many ops: convolution, activation, sum with what came before; every shape declared."""

import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

CHANNELS, SIDE = 8, 14
OPSET = 17


def write(count: int, path: str) -> None:
    shape = [1, CHANNELS, SIDE, SIDE]
    weights = np.full((CHANNELS, CHANNELS, 1, 1), 0.1, np.float32)
    nodes, initializers, values = [], [], []
    last = block = "x"
    for index in range(count):
        output = f"t{index}"
        if index % 3 == 0:
            initializers.append(numpy_helper.from_array(weights, f"w{index}"))
            nodes.append(helper.make_node("Conv", [last, f"w{index}"], [output], name=f"conv{index}"))
        elif index % 3 == 1:
            nodes.append(helper.make_node("Relu", [last], [output], name=f"relu{index}"))
        else:
            nodes.append(helper.make_node("Add", [last, block], [output], name=f"add{index}"))
            block = output
        values.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, shape))
        last = output
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [values.pop()],
        initializers,
        value_info=values,
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]), path)


if __name__ == "__main__":
    write(int(sys.argv[1]), sys.argv[2])
