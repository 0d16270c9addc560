"""What only this vendor's compiler tells of a profile: nodes that it refuses, and results that did not fit VTCM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ...core.units import format_bytes
from ...recording.finding import Finding, in_order
from ...recording.recording import OpRecord, Placed, Recording
from .details import parts_of
from .importers.op_trace import Refused

_NAMED = 3  # nodes of one kind that are named
_ATTENTION = "attention written out as MatMul, Softmax and MatMul: export without fused attention"
_STATIC = "static quantisation with calibrated scales: `opscope quantize` makes it of the float model"
_FOLDED = "fixed shapes (--shape), so that it is folded away before compilation"
_UNROLLED = "the body written out: fixed shapes and a fixed number of rounds"
_AFTER = "leave it to the application, behind the model: it is work for the CPU"
REPLACEMENTS: Mapping[str, str] = {  # type of a node that the accelerator does not take → what it takes instead
    "Erf": "Gelu, if it is part of a decomposed GELU (opset 20, or an optimiser that fuses it)",
    "FastGelu": "Gelu",
    "BiasGelu": "Add and Gelu",
    "QuickGelu": "Sigmoid and Mul",
    "DynamicQuantizeLinear": _STATIC,
    "MatMulInteger": _STATIC,
    "ConvInteger": _STATIC,
    "DynamicQuantizeMatMul": _STATIC,
    "DynamicQuantizeLSTM": _STATIC,
    "MatMulIntegerToFloat": _STATIC,
    "GroupQueryAttention": _ATTENTION,
    "MultiHeadAttention": _ATTENTION,
    "Attention": _ATTENTION,
    "RotaryEmbedding": "rotation written out as Mul, Add, Split and Concat",
    "SkipLayerNormalization": "Add and LayerNormalization",
    "SimplifiedLayerNormalization": "RMSNormalization, or Mul, ReduceMean, Sqrt and Div",
    "SkipSimplifiedLayerNormalization": "Add and RMSNormalization",
    "NonMaxSuppression": _AFTER,
    "NonZero": _AFTER,
    "Unique": _AFTER,
    "If": _UNROLLED,
    "Loop": _UNROLLED,
    "Scan": _UNROLLED,
    "Shape": _FOLDED,
    "Size": _FOLDED,
    "Range": _FOLDED,
    "ConstantOfShape": _FOLDED,
    "STFT": "a Conv with the window and the sines as weights",
    "DFT": "MatMul with the sines as weights",
    "Einsum": "MatMul with Transpose and Reshape",
    "RNN": "GRU or LSTM, or MatMul and Tanh written out",
    "Trilu": "Mul or Where with a constant mask",
    "Mish": "Softplus, Tanh and Mul",
    "Quant": "QuantizeLinear and DequantizeLinear: export to QDQ (qonnx's own converter does it)",
}


def causes_of(recording: Recording) -> tuple[Finding, ...]:
    return in_order((*cpu_nodes(recording), *spills(recording)))


def cpu_nodes(recording: Recording) -> Iterator[Finding]:
    """Nodes that the accelerator does not take: alike ones together, with what it takes instead."""
    nodes = recording.placed(Placed.CPU)
    if nodes:
        yield Finding(
            "cpu-fallback",
            f"{len(nodes):,} node{'' if len(nodes) == 1 else 's'} on the CPU",
            f"{refusals(nodes)}; the model is cut into {len(parts_of(recording))} graphs, and the time of the CPU is "
            "unknown",
            tuple(node.name for node in nodes),
            action="; ".join(replacements(nodes)) or "replace these nodes with ones that the accelerator takes",
        )


def replacements(nodes: Sequence[OpRecord] | Sequence[Refused]) -> list[str]:
    """What the accelerator takes in place of these, a clause for each type that one is known of."""
    return [f"{kind} → {REPLACEMENTS[kind]}" for kind in _by_type(nodes) if kind in REPLACEMENTS]


def refusals(nodes: Sequence[OpRecord] | Sequence[Refused]) -> str:
    """Refused nodes, a clause for each type and reason."""
    words = []
    for kind, rows in _by_type(nodes).items():
        names = ", ".join(node.name for node in rows[:_NAMED]) + (", …" if len(rows) > _NAMED else "")
        words.append(f"{len(rows)} × {kind or 'unknown type'} ({names}): {plain_reason(rows[0].reason, rows[0].name)}")
    return "; ".join(words)


def plain_reason(reason: str, node: str) -> str:
    """The runtime's sentence that does not name the one node; some of its words are of its own inside."""
    if "op_affinity" in reason:
        return "the runtime has no translation of this op for the accelerator"
    told = [part for part in reason.split(". ") if part and node not in part]
    return (told[0] if told else reason).strip(" .") or "no reason is given"


def _by_type(nodes: Sequence[OpRecord] | Sequence[Refused]) -> dict[str, list[OpRecord | Refused]]:
    found: dict[str, list[OpRecord | Refused]] = defaultdict(list)
    for node in nodes:
        found[node.type].append(node)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def spills(recording: Recording) -> Iterator[Finding]:
    """Intermediate results that did not fit VTCM."""
    nodes = sorted(
        (node for node in recording.ops if node.spill_bytes or node.fill_bytes),
        key=lambda node: -(node.spill_bytes + node.fill_bytes),
    )
    if nodes:
        spilled, filled = sum(node.spill_bytes for node in nodes), sum(node.fill_bytes for node in nodes)
        yield Finding(
            "spill",
            f"{format_bytes(spilled)} spilled to DDR and {format_bytes(filled)} read back",
            f"VTCM is full: intermediate results of {len(nodes)} nodes go through DDR",
            tuple(node.name for node in nodes),
            action=", or ".join(_against_spills(recording)),
        )


def _against_spills(recording: Recording) -> Iterator[str]:
    """What is left to try: the part's VTCM may all be in use, the model may have 8 bits already."""
    given, whole = recording.options.get("vtcm_mb"), recording.machine.get("vtcm_mb")
    if isinstance(given, int) and isinstance(whole, int) and given < whole:
        yield f"give the compiler more VTCM: --vtcm-mb {whole}"
    if recording.machine.get("macs_in") == "f16":
        yield "use a smaller precision: --precision w8a8"
    yield "a smaller input or batch, or fewer channels where these nodes are widest"
