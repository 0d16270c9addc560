"""Kinds of commands → what they do. A kind that is not here is unknown, on an engine that does not move."""

from __future__ import annotations

from ...core.meaning import Carries, Does
from ...recording.run import RunRoute

DDR, LOCAL = "DDR", "local memory"

_KINDS = {
    Does.COMPUTE: ("CONV", "MM", "MM2", "AR", "PorD", "SFU", "FUSED_CMP", "FUSED_LINEAR", "VC", "CMP", "RAND"),
    # other types, or the same values in other lanes of local memory
    Does.LAYOUT: ("RQDQ", "LANE_COPY", "LANE_BC", "STATIC_BC", "DISTRIBUTE_BC", "TRANS", "TRANS_BC", "SG", "SGL"),
    Does.LAUNCH: ("BD_SYS_TRWR",),  # writes registers that the next command reads
    Does.SYNC: tuple(f"{engine}_{word}_MSG" for engine in ("BD", "GDMA", "SDMA", "HAU") for word in ("SEND", "WAIT")),
}
OF_KIND = {kind: does for does, kinds in _KINDS.items() for kind in kinds}
MATRIX = frozenset({"CONV", "MM", "MM2"})  # kinds that multiply and accumulate; PorD does too, where it is no pooling
POOL_OR_DEPTHWISE = "PorD"

_LAYOUT_OPS = frozenset(  # whose element-wise commands change the form of data and nothing else
    {
        "Cast",
        "Concat",
        "Copy",
        "Depth2Space",
        "DequantInt",
        "DequantIntAxis",
        "DtypeCast",
        "Expand",
        "Load",
        "Pad",
        "Permute",
        "RequantFp",
        "RequantFpAxis",
        "RequantInt",
        "RequantIntAxis",
        "Reshape",
        "Reverse",
        "ShuffleChannel",
        "Slice",
        "Split",
        "Squeeze",
        "Store",
        "StridedSlice",
        "SwapChannel",
        "SwapDimInner",
        "Tile",
        "Unsqueeze",
    }
)


def does_of_op(opcode: str) -> Does:
    """Of an op of the compiler's own dialect."""
    if opcode in ("Load", "Store"):
        return Does.MOVE
    return Does.LAYOUT if opcode in _LAYOUT_OPS else Does.COMPUTE


def does_of(kind: str, opcode: str) -> Does:
    """Of a command that moves no bytes to or from DDR."""
    found = OF_KIND.get(kind, Does.UNKNOWN)
    return Does.LAYOUT if found is Does.COMPUTE and opcode in _LAYOUT_OPS else found


ROUTES = (  # by direction, as in profile_file.DIRECTIONS; within local memory bytes take no route
    RunRoute("DDR to local memory", Carries.READ, DDR),
    RunRoute("local memory to DDR", Carries.WRITE, DDR),
    RunRoute("DDR to DDR", Carries.COPY, DDR),
)
