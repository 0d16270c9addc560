"""Rows are ranked within one kind of number, and the front of a kind is what nothing of it beats."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.core.provenance import Provenance
from opscope.machine.entry import WHY
from opscope.recording.summary import Energy, Latency
from opscope.selection.page import BakeoffPage
from opscope.selection.rows import Bakeoff, BakeoffRow, MemoryNeed, parse_limits, ranked, within
from opscope.selection.views import KINDS_WORDS, BakeoffJson, BakeoffMarkdown, BakeoffText


def row(
    target: str = "chip",
    ns: int | None = 100,
    *,
    kind: Provenance = Provenance.ESTIMATED,
    peak: int | None = None,
    room: int | None = None,
    joules: float | None = None,
    note: str = "",
    reason: str = "",
) -> BakeoffRow:
    return BakeoffRow(
        target,
        target.title(),
        "Chips",
        "test",
        reason=reason,
        provenance=None if ns is None else kind,
        latency=None if ns is None else Latency(ns, None, None, kind),
        peak_bytes=peak,
        memories=() if peak is None else (MemoryNeed("RAM", peak, room),),
        energy=None if joules is None else Energy(joules, None, None, kind, note),
    )


def few(values: st.SearchStrategy[int]) -> st.SearchStrategy[int | None]:
    return st.one_of(st.none(), values)


rows = st.lists(
    st.builds(
        row,
        ns=few(st.integers(1, 4)),
        kind=st.sampled_from([Provenance.MEASURED, Provenance.CALIBRATED, Provenance.ESTIMATED]),
        peak=few(st.integers(1, 4)),
        room=few(st.integers(2, 4)),
        joules=few(st.integers(1, 3)),
        note=st.sampled_from(["", "arithmetic only"]),
    ),
    max_size=12,
)


@given(rows)
def test_kinds_stand_together_and_each_is_sorted(found: list[BakeoffRow]) -> None:
    ordered = ranked(found)
    assert len(ordered) == len(found)
    kinds = [each.provenance for each in ordered]
    places = [len(WHY) if kind is None else list(WHY).index(kind) for kind in kinds]
    assert places == sorted(places)
    for one, other in pairwise(ordered):
        if one.provenance is other.provenance is not None:
            assert (one.latency_ns or 0) <= (other.latency_ns or 0)


@given(rows)
def test_the_front_is_exactly_what_nothing_of_its_kind_beats(found: list[BakeoffRow]) -> None:
    """Every pair is looked at, in words of its own: unknown is the worst, what does not fit is out."""

    def costs(each: BakeoffRow) -> list[float]:
        whole = each.energy is not None and not each.energy.note
        return [
            float(each.latency_ns or inf),
            inf if each.peak_bytes is None else each.peak_bytes,
            each.energy.value_j if whole and each.energy else inf,
        ]

    def out(each: BakeoffRow) -> bool:
        return each.provenance is None or any((need.share or 0) > 1 for need in each.memories)

    for each in ranked(found):
        beaten = False
        for other in found:
            if other.provenance is each.provenance and not out(other):
                pairs = list(zip(costs(other), costs(each), strict=True))
                beaten |= not any(a > b for a, b in pairs) and any(a < b for a, b in pairs)
        assert each.is_on_front == (not out(each) and not beaten)


def test_kinds_are_told_apart_and_failures_say_why() -> None:
    found = Bakeoff(
        "net",
        "net.onnx",
        "",
        ranked(
            [
                row("slow", 900, peak=3072, room=1024),
                row("fast", 5),
                row("real", 70, kind=Provenance.MEASURED),
                row("none", None, reason="takes tflite, this is onnx"),
            ]
        ),
    )
    text = io.StringIO()
    BakeoffText().render(found, text)
    lines = text.getvalue().splitlines()
    order = [next(i for i, line in enumerate(lines) if word in line) for word in ("measured –", "real", "estimated –")]
    assert order == sorted(order)
    assert any("no, RAM 3 × 1.00 KB" in line for line in lines)
    assert any(line.strip().startswith("none by test, as-is: takes tflite") for line in lines)
    assert KINDS_WORDS in lines
    markdown, page, data = io.StringIO(), io.StringIO(), io.StringIO()
    BakeoffMarkdown().render(found, markdown)
    BakeoffPage().render(found, page)
    BakeoffJson().render(found, data)
    assert "### measured – on the hardware" in markdown.getvalue()
    assert '"opscope.bakeoff-page/1"' in page.getvalue()
    loaded = json.loads(data.getvalue())
    assert loaded["schema"] == "opscope.bakeoff/1"
    assert [each["target"] for each in loaded["rows"]] == ["real", "fast", "slow", "none"]
    assert [each["fits"] for each in loaded["rows"]] == [None, None, False, None]


def test_a_budget_needs_figures_that_are_known_and_a_chip_that_fits() -> None:
    limits = parse_limits("latency=1us,ram=2KB")
    assert within(row(ns=900, peak=1000, room=4000), limits)
    assert not within(row(ns=900, peak=None), limits)
    assert not within(row(ns=900, peak=1000, room=500), limits)
    assert not within(row(ns=2000, peak=1000), limits)
    with pytest.raises(UsageError, match=r"--budget flash: rows do not have it; expected of latency, ram"):
        parse_limits("flash=1MB")
