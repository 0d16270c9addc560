"""Nodes that the accelerator refuses, in one clause for alike ones and with what it takes instead."""

from __future__ import annotations

from opscope.core.provenance import Provenance
from opscope.plugins.qnn.causes import causes_of, plain_reason, refusals, replacements
from opscope.recording.recording import OpRecord, Placed, Recording, empty_trace

ERF = "Operators of type `Erf` are not supported by QNN EP. Erf node `erf_1` will not be assigned to QNN EP"
AFFINITY = "GroupQueryAttention node `g` was filtered off QNN by the op_affinity provider option"


def node(name: str, kind: str, reason: str = ERF) -> OpRecord:
    return OpRecord(name, kind, placed=Placed.CPU, reason=reason)


def recording(*ops: OpRecord, **machine: object) -> Recording:
    return Recording(
        "htp",
        Provenance.VENDOR_MODEL,
        empty_trace(Provenance.VENDOR_MODEL),
        ops,
        machine={"vtcm_mb": 8, **machine},  # type: ignore[dict-item]
        options={"vtcm_mb": machine.get("given")},  # type: ignore[dict-item]
    )


def test_alike_nodes_are_one_clause_and_the_commonest_comes_first() -> None:
    nodes = [node("odd", "Acosh", "no."), *(node(f"erf_{number}", "Erf") for number in range(1, 6))]
    assert refusals(nodes) == (
        "5 × Erf (erf_1, erf_2, erf_3, …): Operators of type `Erf` are not supported by QNN EP; 1 × Acosh (odd): no"
    )
    assert [text.split(" → ")[0] for text in replacements(nodes)] == ["Erf"]


def test_words_of_the_runtimes_inside_are_put_plainly() -> None:
    assert plain_reason(AFFINITY, "g") == "the runtime has no translation of this op for the accelerator"
    assert plain_reason("", "x") == "no reason is given"


def test_the_finding_says_what_to_use_instead() -> None:
    (found,) = causes_of(recording(node("erf_1", "Erf"), node("q", "DynamicQuantizeLinear", "no")))
    assert found.id == "cpu-fallback"
    assert "Erf → Gelu" in found.action
    assert "`opscope quantize`" in found.action


def test_advice_against_spills_is_what_is_left_to_try() -> None:
    spilled = OpRecord("wide", "Conv", spill_bytes=10, fill_bytes=10)
    (whole,) = causes_of(recording(spilled, macs_in="i8"))
    assert whole.action == "a smaller input or batch, or fewer channels where these nodes are widest"
    (some,) = causes_of(recording(spilled, macs_in="f16", given=2))
    assert some.action.startswith("give the compiler more VTCM: --vtcm-mb 8, or use a smaller precision")
