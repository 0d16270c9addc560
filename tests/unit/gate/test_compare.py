from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.core.errors import UsageError
from opscope.gate.bootstrap import spread_of
from opscope.gate.compare import compare
from opscope.gate.comparison import ADDED, FUSED, REMOVED, Comparison
from opscope.gate.figures import Figures
from opscope.gate.limits import parse_limit
from opscope.gate.run_figures import figures_of_parts
from opscope.program.program import OpInfo
from opscope.recording.summary import LaneTotal, Latency, Summary
from opscope.recording.trace import SpanKind
from support.recording.compare_build import LABELS, figures, info, op, op_infos, rows, spans_of, summary_of, total

OPS = 6


def compared(base: Figures, new: Figures, *limits: str, allow: tuple[str, ...] = ()) -> Comparison:
    return compare(base, new, limits=[parse_limit(text) for text in limits], allow=allow, labels=LABELS)


@st.composite
def runs(draw: st.DrawFn) -> Figures:
    """Figures of random spans; names of some ops differ from run to run."""
    infos = op_infos(OPS)
    shift = draw(st.integers(0, 2))
    infos = [*infos[shift:], *infos[:shift]] if draw(st.booleans()) else infos[: OPS - shift]
    found = draw(rows(len(infos)))
    walls = draw(st.lists(st.one_of(st.none(), st.integers(0, 50)), min_size=len(infos), max_size=len(infos)))
    totals = [total(one.name, ns, type=one.type) for one, ns in zip(infos, walls, strict=True)]
    latency = draw(st.one_of(st.none(), st.integers(0, 200)))
    return figures_of_parts(info(), infos, summary_of(totals, latency=latency), spans_of(found), label="run")


@given(runs())
def test_a_run_compared_with_itself_has_no_difference_and_passes(run: Figures) -> None:
    found = compared(run, run, "latency>0", "latency<0", "ops>0", "macs>0")
    assert all(metric.change in (0, None) for metric in found.metrics)
    assert all(row.time.change in (0, None) and row.own.change in (0, None) for row in found.ops)
    assert all(row.how == "name" for row in found.ops)
    assert all(check.passed or not check.known for check in found.verdict.checks)
    for whole in found.explanations.values():
        assert (whole.change_ns, whole.parts, whole.rest.ns) == (0, (), 0)


@given(runs(), runs())
def test_turned_round_every_difference_has_the_other_sign(one: Figures, other: Figures) -> None:
    there, back = compared(one, other, allow=("model",)), compared(other, one, allow=("model",))

    def changes(found: Comparison, sign: int) -> dict[str, float | None]:
        return {m.name: None if m.change is None else sign * m.change for m in found.metrics}

    assert changes(there, 1) == changes(back, -1)
    for by in LABELS:
        mine = {row.name: row.own.change for row in there.rollups[by]}
        theirs = {row.name: None if row.own.change is None else -row.own.change for row in back.rollups[by]}
        assert mine == theirs
    if there.explanation and back.explanation:
        assert there.explanation.change_ns == -back.explanation.change_ns
        assert there.explanation.rest.ns == -back.explanation.rest.ns


@given(runs(), runs())
def test_the_parts_and_the_rest_add_up_to_the_change_of_latency(one: Figures, other: Figures) -> None:
    found = compared(one, other, allow=("model",))
    if one.latency_ns is None or other.latency_ns is None:
        assert not found.explanations
        return
    assert set(found.explanations) == {"op", *LABELS}
    for whole in found.explanations.values():
        assert whole.change_ns == other.latency_ns - one.latency_ns
        assert sum(part.ns for part in whole.parts) + whole.rest.ns == whole.change_ns
        assert [abs(part.ns) for part in whole.parts] == sorted((abs(part.ns) for part in whole.parts), reverse=True)


@given(runs(), runs())
def test_rollups_are_the_sums_of_their_ops(one: Figures, other: Figures) -> None:
    found = compared(one, other, allow=("model",))
    for by, labels in LABELS.items():
        for row in found.rollups[by]:
            for side, run in ((row.own.base, one), (row.own.new, other)):
                missing = [o for o, label in zip(run.ops, labels(run), strict=True) if label == row.name]
                known = [o.own_ns for o in missing if o.own_ns is not None]
                tells = any(o.wall_ns is not None or o.own_ns is not None for o in run.ops)
                assert side == (sum(known) if known or (not missing and tells) else None)


def test_added_removed_and_fused_ops_explain_the_change() -> None:
    base = figures([op("in", 10), op("conv", 50), op("relu", 20), op("old", 5, kind="Tanh")], latency=90)
    new = figures([op("in", 10), op("conv + relu", 60, kind="Fused"), op("new", 25, kind="Erf")], latency=100)
    found = compared(base, new)
    assert [(row.name, row.how, row.own.change) for row in found.ops] == [
        ("new", ADDED, 25),
        ("conv + relu", FUSED, -10),
        ("old", REMOVED, -5),
        ("in", "name", 0),
    ]
    assert found.explanation is not None
    assert (found.explanation.change_ns, found.explanation.rest.ns) == (10, 0)
    assert found.ops[1].base_names == ("conv", "relu")


def test_limits_reach_ops_by_any_of_their_names_and_rollups() -> None:
    base = figures([op("conv", 50, kind="Conv"), op("relu", 20, kind="Relu")])
    new = figures([op("conv + relu", 80, kind="Conv")])
    found = compared(base, new, "op:relu>5%", "op:conv + relu>20%", "type:Conv>100%", "type:Relu<-1%", "op:none>0")
    assert [check.word for check in found.verdict.checks] == ["fail", "pass", "pass", "fail", "unknown"]
    assert found.word == "fail"


def test_without_a_timeline_the_times_of_ops_explain_the_change() -> None:
    base = figures([op("a", 50, own=None), op("b", None, own=None)], latency=100)
    new = figures([op("a", 70, own=None), op("b", None, own=None)], latency=130)
    found = compared(base, new).explanation
    assert found is not None
    assert [(part.name, part.ns) for part in found.parts] == [("a", 20)]
    assert found.rest.ns == 10


@pytest.mark.parametrize(
    ("change", "words", "way"),
    [
        ({"target": "other"}, "target is chip and other", "target"),
        ({"provenance": "measured"}, "provenance is simulated and measured", "provenance"),
        ({"batch": 8}, "batch is 1 and 8", "batch"),
    ],
)
def test_runs_that_do_not_compare_are_refused_in_one_line_unless_insisted_on(
    change: dict[str, object], words: str, way: str
) -> None:
    base, new = figures([op("a")], label="base"), figures([op("a")], label="new", **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        compared(base, new)
    assert str(caught.value) == f"base and new: not comparable: {words}; expected the same, or --allow {way}"
    found = compared(base, new, allow=(way,))
    assert f"compared in spite of this: {words}" in found.notes


def test_another_model_is_one_without_an_op_in_common() -> None:
    base, new = figures([op("a", kind="X")], model="one"), figures([op("b", kind="X")], model="two")
    with pytest.raises(UsageError, match="one and two, has the same name or place; expected the same, or --allow"):
        compared(base, new)
    assert compared(base, new, allow=("model",)).ops[0].how == "structure"
    assert compared(base, figures([], model="two")).ops[0].how == REMOVED  # without ops there is nothing to say


def test_a_target_that_is_not_known_is_noted_and_other_cores_too() -> None:
    found = compared(figures(target="unknown"), figures(target="chip", cores=2))
    assert found.notes == ("the target of one of the two is not known", "cores: 1 × 1 and 1 × 2")


def test_another_unit_is_never_compared() -> None:
    from dataclasses import replace

    new = figures()
    odd = replace(new, metrics=(replace(new.metrics[0], unit="bytes"),))
    with pytest.raises(UsageError, match=r"not comparable: latency is in ns and bytes; expected the same$"):
        compared(figures(), odd, allow=("target", "provenance", "model", "batch"))


STEADY = [1000.0, 1010, 990, 1005, 995, 1002, 998, 1008, 992, 1001]


def test_measured_runs_fail_only_beyond_noise() -> None:
    base = figures(latency=1000, provenance="measured", samples=STEADY)
    slower = [value * 1.2 for value in STEADY]
    found = compared(base, figures(latency=1200, provenance="measured", samples=slower), "latency>5%")
    assert found.word == "fail"
    assert found.metrics[0].interval is not None
    noisy = [value * (1.5 if n % 2 else 0.7) for n, value in enumerate(STEADY)]
    found = compared(base, figures(latency=1100, provenance="measured", samples=noisy), "latency>5%")
    assert (found.word, found.verdict.checks[0].warning) == ("pass", True)


def test_exact_runs_are_compared_exactly_even_with_samples() -> None:
    base = figures(latency=1000, samples=None)
    found = compared(base, figures(latency=1001), "latency>0")
    assert (found.word, found.metrics[0].interval, found.metrics[0].note, found.notes) == ("fail", None, "", ())


def test_one_measured_sample_is_compared_and_labelled() -> None:
    base, new = (figures(latency=ns, provenance="measured") for ns in (1000, 1100))
    found = compared(base, new, "latency>5%", "peak_memory>0")
    assert found.word == "fail"
    assert "noise is not known: 1 and 1 samples" in found.verdict.checks[0].reason
    assert found.notes[0].startswith("latency: noise is not known")
    assert found.metrics[1].note == ""  # bytes do not jitter


def test_ops_and_rollups_of_measured_runs_are_judged_by_their_samples() -> None:
    def run(factor: float) -> Figures:
        spread = spread_of([value * factor for value in STEADY])
        ops = [op(name, round(spread.median), kind="Conv", spread=spread) for name in ("a", "b")]
        return figures(ops, provenance="measured")

    noisy = figures(
        [op(n, 1100, kind="Conv", spread=spread_of([800.0, 1400, 900, 1300, 1000, 1200, 1100])) for n in ("a", "b")],
        provenance="measured",
    )
    assert compared(run(1), run(1.2), "op:a>5%", "type:Conv>5%").word == "fail"
    found = compared(run(1), noisy, "op:a>5%", "type:Conv>5%")
    assert [(check.word, check.warning) for check in found.verdict.checks] == [("pass", True), ("pass", True)]


@pytest.mark.parametrize("waited", [None, 0])
def test_waits_that_a_run_does_not_record_are_unknown(waited: int | None) -> None:
    lanes = (LaneTotal(0, 0, "CPU", 60, waited, 40),)
    summary = Summary(Latency(100, None, None, "measured"), None, 1, lanes=lanes)
    spans = spans_of([(SpanKind.OP, 0, 0, 0, 60)])
    found = figures_of_parts(info("measured"), [OpInfo("a", "", "", "")], summary, spans, label="run")
    metric = found.metric("wait")
    assert metric is not None
    assert metric.value == waited
    assert (found.metric("wait:CPU") is None) == (waited is None)


def test_what_makes_totals_unlike_is_said_once_with_the_runs_that_it_is_true_of() -> None:
    ops = [op("a")]
    watched = replace(figures(ops, label="one"), caveats=("latency is with the profiler on",))
    again = replace(watched, label="two")
    plain = replace(figures(ops, label="three"), caveats=("latency is with the profiler off",))
    assert compared(watched, again).notes == ("one, two: latency is with the profiler on",)
    assert compared(watched, plain).notes == (
        "one: latency is with the profiler on",
        "three: latency is with the profiler off",
    )
    assert compared(figures(ops), figures(ops)).notes == ()


def test_an_unknown_target_is_said_beside_whatever_was_insisted_on() -> None:
    found = compare(
        figures([op("a")], target="unknown"),
        figures([op("a")], provenance="estimated"),
        allow=["provenance"],
        labels=LABELS,
    )
    assert found.notes == (
        "compared in spite of this: provenance is simulated and estimated",
        "the target of one of the two is not known",
    )


def test_a_run_without_times_of_ops_does_not_say_that_they_took_none() -> None:
    timed = figures([op("a", 60), op("b", 40)], label="timed")
    for ops in ([], [op("a", None), op("b", None)]):
        found = compared(timed, figures(ops, label="silent", latency=900), "op:a>0", "type:MatMul<0")
        assert [check.word for check in found.verdict.checks] == ["unknown", "unknown"]
        assert "silent tells no times of ops" in found.notes
        assert found.explanation is not None
        assert found.explanation.parts == ()
        assert found.explanation.rest.ns == -100


def test_an_op_that_is_gone_from_a_run_with_times_takes_none() -> None:
    found = compared(figures([op("a", 60), op("b", 40)]), figures([op("a", 60)]), "op:b>0")
    assert found.word == "pass"
    assert next(row.time.change for row in found.ops if row.name == "b") == -40


def test_runs_with_few_ops_in_common_are_questioned() -> None:
    base = figures([op(f"a{n}", kind=f"A{n}") for n in range(9)] + [op("in")], label="old")
    other = figures([op(f"b{n}", kind=f"B{n}") for n in range(9)] + [op("in")], label="new")
    assert compared(base, other).notes == ("only 1 of 10 ops of old are in new: another model?",)
    assert compared(base, base).notes == ()
    (insisted,) = compared(figures([op("a", kind="A")]), figures([op("b", kind="B")]), allow=("model",)).notes
    assert insisted.startswith("compared in spite of this: no op of the two models")


def test_a_batch_that_is_not_known_keeps_nothing_from_being_compared() -> None:
    ops = [op("a")]
    assert compared(replace(figures(ops), batch=None), figures(ops, batch=8)).notes == ()
    with pytest.raises(UsageError, match=r"batch is 1 and 8; expected the same, or --allow batch"):
        compared(figures(ops), figures(ops, batch=8))


def test_nothing_is_said_of_the_noise_of_a_latency_that_is_not_known() -> None:
    run = figures([op("a")], latency=None, provenance="measured")
    assert compared(run, run).notes == ()
