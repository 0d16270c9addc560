"""Options: what the dataclasses accept, how keywords become one, and what two kinds of them share."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.options import (
    BakeoffOptions,
    CompileOptions,
    OpstatsOptions,
    OptimizeOptions,
    ProfileOptions,
    ReportOptions,
    RunOptions,
    SweepOptions,
    WhatIfOptions,
    chosen,
    options_of,
    part_of,
)


def test_keywords_change_the_options_given_or_the_defaults() -> None:
    assert chosen(CompileOptions, None, {"cores": 2}) == CompileOptions(cores=2)
    assert chosen(CompileOptions, CompileOptions(batch=4), {"cores": 2}) == CompileOptions(batch=4, cores=2)


def test_a_keyword_that_is_no_option_is_answered_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"^option 'core': not known; did you mean cores\?"):
        chosen(CompileOptions, None, {"core": 2})


def test_options_of_another_verb_are_refused() -> None:
    with pytest.raises(UsageError, match="expected CompileOptions"):
        chosen(CompileOptions, RunOptions(), {})  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("kind", "named", "message"),
    [
        (CompileOptions, {"parallel": "both"}, "parallel 'both': not known; expected one of auto, tensor, pipeline"),
        (
            RunOptions,
            {"profile": ["times"]},
            "profile 'times': not known; expected one of stats, trace, latency, raw_de",
        ),
        (OpstatsOptions, {"trace_format": "xml"}, "trace format 'xml': not known; expected json or perfetto"),
        (SweepOptions, {"keep": "all"}, "keep 'all': not known; expected one of runs, ops, rows"),
        (SweepOptions, {"cluster": "slurm"}, "--cluster slurm: starts a scheduler; expected --jobs N workers"),
        (ProfileOptions, {"stats_level": 40}, "stats level 40: has no operators; expected 70 or more to profile"),
    ],
)
def test_a_value_is_checked_when_options_are_made(kind: type, named: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        kind(**named)
    assert str(error.value).startswith(message)


def test_options_of_a_profile_hold_those_of_its_steps() -> None:
    profile = ProfileOptions(cores=3, precision="i8", num_iter=7, seed=5, shapes={"x": (1, 2)})
    expected = CompileOptions(cores=3, precision="i8", shapes={"x": (1, 2)}, stats_level=70, ddr_stats=True)
    assert part_of(CompileOptions, profile) == expected
    assert part_of(RunOptions, profile) == RunOptions(num_iter=7, seed=5, set_size=1)
    assert part_of(ReportOptions, profile) == ReportOptions(cores=3, precision="i8", shapes={"x": (1, 2)})


def test_a_bakeoff_and_a_sweep_have_the_same_limits() -> None:
    asked = BakeoffOptions(jobs=2, retry_failed=True, time_limit_s=9.0, memory_limit_bytes=1 << 30)
    expected = SweepOptions(jobs=2, retry_failed=True, time_limit_s=9.0, memory_limit_bytes=1 << 30)
    assert part_of(SweepOptions, asked) == expected
    assert part_of(SweepOptions, BakeoffOptions()) == SweepOptions()


def test_lists_and_text_become_what_the_fields_say() -> None:
    assert RunOptions(profile=["stats"], out_dir="x") == RunOptions(profile=("stats",), out_dir=Path("x"))  # type: ignore[arg-type]
    assert OptimizeOptions(allow=["quantize"], data="x") == OptimizeOptions(allow=("quantize",), data=Path("x"))  # type: ignore[arg-type]
    assert OpstatsOptions(cores=[1, 0], run="r") == OpstatsOptions(cores=(1, 0), run=Path("r"))  # type: ignore[arg-type]


KINDS = (
    BakeoffOptions,
    CompileOptions,
    OptimizeOptions,
    OpstatsOptions,
    ProfileOptions,
    ReportOptions,
    RunOptions,
    SweepOptions,
    WhatIfOptions,
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_flag_is_explained(kind: type) -> None:
    assert all(option.help for option in options_of(kind).values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_of_every_option_is_a_value_that_it_takes(kind: type) -> None:
    for name, option in options_of(kind).items():
        default = getattr(kind(), name)
        if option.least is not None and default is not None:
            assert default >= option.least, name


@pytest.mark.parametrize("name", ["activations", "threads", "seed", "num_samples"])
def test_an_option_of_a_profile_and_of_a_run_is_the_same(name: str) -> None:
    profile, run = (options_of(kind)[name] for kind in (ProfileOptions, RunOptions))
    assert (profile.help, profile.least) == (run.help, run.least)
