"""Why an op takes another time: what binds it, how much it does, where it runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.gate.baseline import decode_baseline, encode_baseline
from opscope.gate.compare import compare
from opscope.gate.figures import OpFigure
from opscope.gate.op_causes import SAME_WORK, cause_of
from support.recording.compare_build import LABELS, figures, op


def working(engine: str = "NPU", **work: int) -> OpFigure:
    return replace(op("pool"), engine=engine, work={name.replace("__", ":"): amount for name, amount in work.items()})


@pytest.mark.parametrize(
    ("base", "new", "cause"),
    [
        (working(cycles__SRAM=1608, cycles__NPU=1372), working(cycles__NPU=5476), "SRAM 1,608 → NPU 5,476 cycles"),
        (working(cycles__NPU=10), working(cycles__NPU=30, cycles__SRAM=20), "NPU 10 → 30 cycles"),
        (working(macs=1000, commands=1), working(macs=2000, commands=2), "MACs 1,000 → 2,000; commands 1 → 2"),
        (working(moved_bytes=1024), working(moved_bytes=2048), "bytes moved 1.00 KB → 2.00 KB"),
        (working(), working("CPU"), "NPU → CPU"),
        (working(macs=5), working(macs=5), SAME_WORK),
        (working(commands=5), working(commands=5), ""),
        (working(macs=5), working(), ""),
    ],
)
def test_the_cause_says_what_is_different_about_the_work(base: OpFigure, new: OpFigure, cause: str) -> None:
    assert cause_of([base], [new]) == cause


def test_what_became_one_op_is_added_up() -> None:
    assert cause_of([working(macs=1), working(macs=2)], [working(macs=3)]) == SAME_WORK


works = st.dictionaries(st.sampled_from(["macs", "moved_bytes", "commands", "cycles:NPU"]), st.integers(1, 10**12))


@given(works, works)
def test_a_baseline_keeps_what_causes_are_told_from(one: dict[str, int], other: dict[str, int]) -> None:
    base, new = (figures([replace(op("a", ns), work=work)]) for ns, work in ((100, one), (200, other)))
    kept = decode_baseline(encode_baseline(base, labels=LABELS), source="b.json", label="base")
    causes = [compare(side, new, labels=LABELS).ops[0].cause for side in (base, kept)]
    assert causes[0] == causes[1]
