"""Shapes of all tensors of a model, from the shapes of its inputs.

    nodes in order ─ shape rule of the operator ─▶ type and shape of every output
                          │ asks for elements (a Reshape's target, the pads of a Pad)
                          ▼
                     frame ─ value rules ─▶ computed from constants and shapes, when asked for

`rules` is the table of operators; `control` runs branches and loops; what no rule covers goes to the `onnx` package.
What follows from constants and shapes alone is folded: it is computed before the first inference, so it is no op.
"""

from .interpret import resolve_shapes

__all__ = ["resolve_shapes"]
