"""Dataclasses of options as flags, and what a command line leaves in them."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import fields
from pathlib import Path

import pytest

from opscope.commands.options import add_options, options_from
from opscope.options import (
    BakeoffOptions,
    CompileOptions,
    OpstatsOptions,
    OptimizeOptions,
    ReportOptions,
    RunOptions,
    SweepOptions,
)


def parsed(kind: type, *words: str) -> object:
    parser = ArgumentParser()
    add_options(parser, kind)
    return options_from(parser.parse_args(words), kind)


@pytest.mark.parametrize("kind", [RunOptions, OpstatsOptions, SweepOptions])
def test_no_words_leave_the_defaults(kind: type) -> None:
    assert parsed(kind) == kind()


def test_every_kind_of_value_is_read() -> None:
    assert parsed(
        CompileOptions, "--cores", "2", "--shape", "a=1x2", "--shape", "b=3", "--ddr-stats"
    ) == CompileOptions(cores=2, shapes={"a": (1, 2), "b": (3,)}, ddr_stats=True)
    assert parsed(RunOptions, "--profile", "stats", "--profile", "trace", "--time", "2.5", "-o", "out") == RunOptions(
        profile=("stats", "trace"), time=2.5, out_dir=Path("out")
    )
    words = ("-c", "0,5", "--merge-mq-traces", "false", "--flow-events", "full", "--show-barrier-events")
    assert parsed(OpstatsOptions, *words) == OpstatsOptions(
        cores=(0, 5), merge_devices=False, flows=True, barriers=True
    )


def test_lists_and_values_with_units_are_read() -> None:
    assert parsed(SweepOptions, "--time-limit", "90s", "--memory-limit", "2GB") == SweepOptions(
        time_limit_s=90.0, memory_limit_bytes=2 << 30
    )
    assert parsed(BakeoffOptions, "--backend", "ort, vela", "--precision", "as-is") == BakeoffOptions(
        backend=("ort", "vela"), precision=("as-is",), shapes={}
    )
    assert parsed(OptimizeOptions, "--allow", "quantize", "--max-error", "0.1%") == OptimizeOptions(
        allow=("quantize",), max_error=0.001, shapes={}
    )


def test_what_has_the_wrong_unit_is_answered_with_the_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(SweepOptions, "--time-limit", "soon")
    assert "argument --time-limit: 'soon': not understood; expected a time such as 20ms" in capsys.readouterr().err


def test_a_flag_can_say_no() -> None:
    assert parsed(ReportOptions, "--no-advice") == ReportOptions(shapes={}, advise=False)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (CompileOptions, ["--cores", "0"]),
        (CompileOptions, ["--parallel", "both"]),
        (RunOptions, ["--seed", "-1"]),
        (RunOptions, ["--time", "soon"]),
        (OpstatsOptions, ["-c", "0,x"]),
        (OpstatsOptions, ["--merge-thread-groups", "maybe"]),
    ],
)
def test_what_is_no_value_is_refused(kind: type, words: list[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(kind, *words)


def test_a_field_without_a_flag_is_given_by_name() -> None:
    parser = ArgumentParser()
    add_options(parser, ReportOptions)
    made = options_from(parser.parse_args([]), ReportOptions, fingerprint=False)
    assert not made.fingerprint
    assert {each.name for each in fields(ReportOptions)} == {
        "shapes",
        "batch",
        "cores",
        "devices",
        "precision",
        "kv_cache",
        "advise",
        "fingerprint",
        "shapes_from_run",
        "planner",
        "battery",
        "duty",
        "sleep",
    }
