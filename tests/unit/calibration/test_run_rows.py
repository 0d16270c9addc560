"""Measured runs whose model is known count op by op: what the runtime ran as one, beside the layers of the target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opscope.calibration.calibrate import calibrate
from opscope.calibration.measurements import read_measurements, repeated_once
from opscope.calibration.priced import Models
from opscope.calibration.quantities import Quantity
from opscope.calibration.terms import fitted_keys
from opscope.calibration.validate import validate
from opscope.core.provenance import Provenance
from opscope.estimate.estimator import estimate
from opscope.estimate.machines import use_machine
from opscope.estimate.precision import in_precision, with_precision
from opscope.machine import catalogue
from opscope.machine.catalogue import with_figures
from opscope.machine.target import Figure, Target
from opscope.readers import graph_of
from opscope.recording.recording import OpRecord, Placed, Recording
from opscope.recording.summary import Latency
from opscope.recording.trace import COUNTER, EDGE, SPAN, Trace
from opscope.workflows.record import analysed
from support.estimate.measured_rows import make_networks


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_networks(tmp_path_factory.mktemp("nets"), ("mobile",))["mobile"]


@pytest.fixture(scope="module")
def target() -> Target:
    return catalogue.load("hexagon")


def write_run(folder: Path, model: Path, ops: list[OpRecord], latency_ns: int = 10**6) -> Path:
    """The folder of a run that says what ops of a model took."""
    empty = (np.zeros(0, SPAN), np.zeros(0, EDGE), (), np.zeros(0, COUNTER))
    recording = Recording(
        maker="test",
        provenance=Provenance.MEASURED,
        trace=Trace((), (), *empty, Provenance.MEASURED),
        ops=tuple(ops),
        model=str(model),
        target="chip",
        latency=Latency(latency_ns, None, None, Provenance.MEASURED),
    )
    analysed(recording, folder, command=(), created="2026-01-01T00:00:00Z", sha256=None)
    return folder


def measured_on(target: Target, model: Path) -> list[OpRecord]:
    """What a machine that is just like a target would have measured, with what it fused."""
    chosen = with_precision(target, None)
    layers = estimate(in_precision(graph_of(model), chosen, None), use_machine(chosen)).layers
    return [
        OpRecord(layer.name, covers=layer.sources, time_ns=round((layer.latency_s or 0.0) * 1e9), placed=Placed.CPU)
        for layer in layers
    ]


def test_each_op_of_the_model_is_a_row_with_what_ran_as_a_part_of_it(
    model: Path, target: Target, tmp_path: Path
) -> None:
    ops = measured_on(target, model)
    rows = read_measurements([write_run(tmp_path / "a.run", model, ops)])
    timed = [op for op in ops if op.time_ns]
    assert len(rows) == len(timed) > 30
    assert [row.seconds for row in rows] == pytest.approx([(op.time_ns or 0) / 1e9 for op in timed])
    assert all(row.ops[0] == op.name and set(op.covers) <= set(row.ops) for row, op in zip(rows, timed, strict=True))
    assert rows[0].network == "conv 1x3x96x96, 32x3x3x3, 32, 1x32x48x48"
    assert rows[0].place == f"a.run: {timed[0].name}"


def test_ops_of_a_network_are_priced_as_its_estimate_has_them(model: Path, target: Target, tmp_path: Path) -> None:
    rows = read_measurements([write_run(tmp_path / "a.run", model, measured_on(target, model))])
    predictions, skipped = validate(target, rows)
    assert not skipped
    for row in predictions:
        assert row.predicted == pytest.approx(row.measured, abs=2e-9)  # whole nanoseconds
        assert row.low <= row.predicted <= row.high
    keys = fitted_keys(target)
    for row in rows[:5]:
        terms = Models().priced(row, target).terms(Quantity.LATENCY, keys)
        assert terms.total(np.zeros((1, len(keys))))[0][0] == pytest.approx(row.seconds, abs=2e-9)


def test_one_run_fits_figures_that_its_latency_alone_does_not_tell_apart(
    model: Path, target: Target, tmp_path: Path
) -> None:
    table = dict(catalogue.figures(target))
    key = "engines[0].reached.depthwise_convolution.f16"
    truth = with_figures(target, {key: Figure(table[key].value / 3, table[key].source)})
    rows = read_measurements([write_run(tmp_path / "a.run", model, measured_on(truth, model))])
    found = calibrate(target, rows)
    assert found.judges
    assert found.figures[0][key].value < 0.45 * table[key].value  # clock and MACs a cycle share in what is slower
    assert np.median([abs(row.fitted / row.measured - 1) for row in found.predictions]) < 0.05
    for other in ("dense_convolution", "pointwise_convolution"):
        other_key = f"engines[0].reached.{other}.f16"
        assert found.figures[0][other_key].value == pytest.approx(table[other_key].value, rel=0.25)


def test_an_op_that_the_target_runs_inside_another_is_named_and_the_others_count(
    model: Path, target: Target, tmp_path: Path
) -> None:
    first, *others = measured_on(target, model)
    inner = next(name for name in first.covers if name != first.name)
    apart = [replace(first, covers=()), OpRecord(inner, time_ns=900), *others]
    predictions, skipped = validate(target, read_measurements([write_run(tmp_path / "a.run", model, apart)]))
    assert len(predictions) == len([op for op in (first, *others) if op.time_ns])
    assert skipped == (
        f"a.run: {inner}: runs as a part of another op on the target; expected an op that has a time of its own",
    )


def test_what_a_runtime_added_is_no_row_and_a_run_of_other_names_is_one(model: Path, tmp_path: Path) -> None:
    ops = measured_on(catalogue.load("hexagon"), model)
    added = OpRecord("reorder", time_ns=50, placed=Placed.INSERTED)
    rows = read_measurements([write_run(tmp_path / "a.run", model, [*ops, added])])
    assert "reorder" not in {name for row in rows for name in row.ops}
    strangers = [replace(op, name=f"kernel {number}", covers=()) for number, op in enumerate(ops)]
    (row,) = read_measurements([write_run(tmp_path / "b.run", model, strangers, 7_000_000)])
    assert (row.ops, row.seconds, row.network) == ((), 0.007, "mobile")


def test_an_op_of_two_runs_of_a_model_counts_once(model: Path, target: Target, tmp_path: Path) -> None:
    ops = measured_on(target, model)
    twice = [replace(op, time_ns=2 * (op.time_ns or 0)) for op in ops]
    runs = [write_run(tmp_path / "a.run", model, ops), write_run(tmp_path / "b.run", model, twice)]
    rows = repeated_once(read_measurements(runs))
    assert len(rows) == len([op for op in ops if op.time_ns])
    assert rows[0].seconds == pytest.approx(1.5 * (ops[0].time_ns or 0) / 1e9)


def test_rows_of_one_op_in_two_types_are_not_the_same(tmp_path: Path) -> None:
    text = "op_type,shapes,dtype,time_ns\nmatmul,64x256;256x256,f16,5000\nmatmul,64x256;256x256,i8,2500\n"
    (tmp_path / "ops.csv").write_text(text)
    rows = repeated_once(read_measurements([tmp_path / "ops.csv"]))
    assert [row.seconds for row in rows] == pytest.approx([5e-6, 2.5e-6])
    assert rows[0].network == rows[1].network  # left out together
    predictions, _ = validate(catalogue.load("hexagon"), rows)
    assert predictions[0].predicted > predictions[1].predicted
