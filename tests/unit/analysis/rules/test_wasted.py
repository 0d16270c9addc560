"""Work that computes nothing, and modelled times that are in doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opscope.core.meaning import Does
from opscope.core.provenance import Provenance
from opscope.program.program import OpInfo
from opscope.recording.run import Run
from support.recording.analyse_build import Span, analyse, finding, ids, run_of, total

MOVERS = 3
LIMITS = {"vector_bytes_per_s": 1e9}  # a byte takes a nanosecond


def moved(*, shape: str = "1x8", length: int = 100) -> Run:
    """Three alike Squeeze ops one after the other, and a product of the same length as each."""
    ops = [OpInfo(f"squeeze{number}", "Squeeze", "reshape", "") for number in range(MOVERS)]
    spans = [Span(0, n * length, (n + 1) * length, op=n, does=Does.LAYOUT) for n in range(MOVERS)]
    spans.append(Span(1, MOVERS * length, (MOVERS + 1) * length, op=MOVERS, does=Does.COMPUTE))
    totals = [
        total(
            op.name,
            length,
            type="Squeeze",
            op=number,
            kernel="SlicePad",
            shape=shape if number else "1x8",
            vector_bytes=5,
            engine="HVX",
            threads=1,
            engine_threads=4,
            does=Does.LAYOUT.label,
        )
        for number, op in enumerate(ops)
    ]
    product = total("product", length, type="MatMul", op=MOVERS, macs=9, does=Does.COMPUTE.label)
    return run_of(
        spans,
        ops=[*ops, OpInfo("product", "MatMul", "matmul", "")],
        totals=[*totals, product],
        limits=LIMITS,
        edges=[],
    )


def test_alike_nodes_are_one_finding_and_the_first_of_the_list() -> None:
    found = finding(moved(), "no-compute")
    assert found.title == "3 Squeeze ops compute nothing and take 75.0% of the critical path"
    assert found.detail.startswith("kernel SlicePad on 1x8; 100 ns each; 20 × what moving its bytes takes; on 1 of 4 ")
    assert set(found.ops) == {"squeeze0", "squeeze1", "squeeze2"}
    assert found.cost_ns == 300
    assert analyse(moved()).findings[0] == found


def test_other_shapes_are_other_findings() -> None:
    titles = [each.title for each in analyse(moved(shape="1x9")).findings if each.id == "no-compute"]
    assert titles == [
        "2 Squeeze ops compute nothing and take 50.0% of the critical path",
        "squeeze0 (Squeeze) computes nothing and takes 25.0% of the critical path",
    ]


def test_what_is_named_alone_is_not_told_again_among_conversions() -> None:
    assert "layout" not in ids(moved())


def modelled(*, ns: int, provenance: Provenance = Provenance.VENDOR_MODEL, **fields: object) -> Run:
    pool = total("pool", ns, type="MaxPool", op=0, kernel="MaxPool.k", does=Does.COMPUTE.label, **fields)
    run = run_of(
        [Span(0, 0, ns, op=0, does=Does.COMPUTE)],
        ops=[OpInfo("pool", "MaxPool", "max_pool", "")],
        totals=[pool],
        limits=LIMITS,
    )
    return replace(run, info=replace(run.info, provenance=provenance))


def test_a_time_far_above_what_the_work_needs_is_in_doubt() -> None:
    found = finding(modelled(ns=10_000, vector_bytes=20), "outlier")
    assert found.title == "pool (MaxPool): the model's time is 500 × what bytes and operations need"
    assert "10 us for work of 20 ns at the least" in found.detail
    assert found.cost_ns == 10_000


@pytest.mark.parametrize(
    "run",
    [
        modelled(ns=900, vector_bytes=20),  # 45 times: element by element
        modelled(ns=10_000),  # what it needs is not known
        modelled(ns=10_000, vector_bytes=20, provenance=Provenance.MEASURED),
    ],
)
def test_other_times_are_not(run: Run) -> None:
    assert "outlier" not in ids(run)


def test_an_op_in_doubt_is_not_told_as_slow_too() -> None:
    assert "slow-op" in ids(modelled(ns=900, vector_bytes=20))
    assert "slow-op" not in ids(modelled(ns=10_000, vector_bytes=20))
