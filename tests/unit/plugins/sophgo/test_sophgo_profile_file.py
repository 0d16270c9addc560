"""Schedules of tpu-mlir: the identities that they obey, and what damaged ones are answered with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opscope.core.errors import ImportFileError
from opscope.plugins.sophgo.profile_file import (
    GIB_AS_GHZ,
    checks,
    dependencies,
    earliest_starts,
    model_gib_per_s,
    moved_bytes,
    read_profile,
    told_bytes,
)
from support.plugins.sophgo_build import SAMPLES, SCHEDULES, recorded_text, schedule_text

LOAD = "Load_1|GDMA_TENSOR|s:0|b:0|g:1|e:9|t:10|dr:0|sz:64|bw:5.96"
CONV = "Conv2D_2|CONV|s:10|b:1|g:1|e:19|t:10"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "compiler_profile_0.txt"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: path.name)
def test_recorded_schedules_obey_every_identity(path: Path) -> None:
    cores = 2 if path.name.startswith("core") else 1
    found = list(checks(read_profile(path), cores=cores))
    assert len(found) >= 4
    assert [f"{check.name}: {check.detail}" for check in found if not check.holds] == []


@pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: path.name)
def test_every_start_follows_from_costs_and_counters(path: Path) -> None:
    profile = read_profile(path)
    assert np.array_equal(profile.commands.start, earliest_starts(profile))
    sources, targets = dependencies(profile).T
    assert (profile.commands.end[sources] <= profile.commands.start[targets]).all()


def test_the_clock_is_the_roundest_that_makes_the_runtime() -> None:
    clocks = {path.name.split(".")[0]: read_profile(path).clock_hz for path in SCHEDULES}
    assert clocks == {
        "f16": 1_000_000_000,
        "i8": 900_000_000,
        "core_0": 1_000_000_000,
        "core_1": 1_000_000_000,
        "odd": 1_000_000_000,
        "cut": 1_000_000_000,
    }


def test_the_bandwidth_of_the_model_follows_from_the_share_of_it_that_was_used() -> None:
    assert [model_gib_per_s(read_profile(SAMPLES / f"{name}.txt.gz")) for name in ("f16", "i8", "odd")] == [64, 24, 24]


def test_transfers_may_be_faster_than_what_the_file_cuts_their_bandwidth_off_at() -> None:
    profile = read_profile(SAMPLES / "odd.txt.gz")
    rates = moved_bytes(profile) / np.maximum(profile.commands.cycles, 1) / GIB_AS_GHZ
    assert rates.max() > 24
    assert max(profile.bandwidth) == 24


def test_a_free_command_takes_no_cycle_and_may_end_before_the_first() -> None:
    profile = read_profile(SAMPLES / "core_1.txt.gz")
    free = profile.commands.cycles == 0
    assert free.any()
    assert profile.commands.end[0] == 0


def test_blocks_of_subnets_follow_each_other() -> None:
    profile = read_profile(SAMPLES / "cut.txt.gz")
    assert [block.cycles for block in profile.blocks] == [985, 451]
    assert profile.end == profile.cycles == 985 + 451
    later = profile.commands.block == 1
    assert profile.commands.start[later].min() == 985
    for engine in range(2):
        own = profile.commands.number[profile.commands.engine == engine]
        assert own.tolist() == list(range(1, len(own) + 1))


def test_messages_repeat_a_size_and_move_nothing(tmp_path: Path) -> None:
    message = "Conv2D_2|GDMA_SEND_MSG|s:20|b:1|g:2|e:19|t:0|dr:1|sz:64|bw:64.00"
    profile = read_profile(written(tmp_path, schedule_text(("", LOAD), (CONV, ""), ("", message))))
    assert told_bytes(profile) == (64, 64, 0, 0)
    assert moved_bytes(profile).tolist() == [64, 0, 0]


def test_a_command_without_a_kind_and_one_of_the_other_engine_are_taken(tmp_path: Path) -> None:
    odd = "Softmax_3|GDMA_TENSOR|s:20|b:2|g:1|e:24|t:5|dr:1|sz:8000|bw:24.00"
    text = schedule_text(("", LOAD), (CONV, ""), (odd, ""), ("Softmax_3||s:25|b:3|g:1|e:24|t:0", ""))
    profile = read_profile(written(tmp_path, text))
    assert profile.kinds == ("GDMA_TENSOR", "CONV", "")
    assert moved_bytes(profile).tolist() == [64, 0, 0, 0]


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        ((("", "Load_1"),), 5, "'Load_1'; expected NAME|KIND|key:number|…"),
        ((("", LOAD.replace("t:10", "t:11")),), 5, r"t:11, but s:0 and e:9; expected t = e - s \+ 1"),
        ((("", LOAD.replace("|s:0", "")),), 5, r"s:\(missing\); expected a whole number"),
        ((("", LOAD.replace("|s:0", "|s:0|s:0")),), 5, "a key twice; expected each once"),
        ((("", LOAD.replace("sz:64", "sz:99999999999999999999")),), 5, "sz:9+; expected a whole number"),
        ((("", LOAD.replace("dr:0", "dr:7")),), 5, "dr:7; expected 0 to 3"),
        ((("", LOAD), ("", LOAD)), 6, "command 1 of GDMA; expected 2, one after the other"),
        (
            (("", LOAD), ("", LOAD.replace("g:1", "g:2").replace("s:0", "s:5").replace("t:10", "t:5"))),
            6,
            "s:5, while the command before it ends at 9; expected it later",
        ),
        ((("", LOAD), (CONV.replace("g:1", "g:4"), "")), 6, "waits for command 4 of GDMA; the block has 1"),
    ],
)
def test_damage_is_named_with_its_line(
    tmp_path: Path, rows: tuple[tuple[str, str], ...], line: int, words: str
) -> None:
    with pytest.raises(ImportFileError, match=rf"^.*: line {line}: .*{words.replace('|', '[|]')}"):
        read_profile(written(tmp_path, schedule_text(*rows)))


@pytest.mark.parametrize("cut", [0, 40, 300, 900])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, cut: int) -> None:
    with pytest.raises(ImportFileError, match=r"line \d+: .*expected"):
        read_profile(written(tmp_path, recorded_text("f16.txt.gz")[:cut]))


def test_a_file_without_its_total_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match="no TCYC; expected the schedule of a network"):
        read_profile(written(tmp_path, schedule_text(("", LOAD), tail="nothing")))


def test_an_engine_that_the_legend_does_not_count_is_refused(tmp_path: Path) -> None:
    text = schedule_text(("", LOAD)).replace("ENGINE_GDMA", "ENGINE_NEW")
    with pytest.raises(ImportFileError, match="line 4: engine NEW without a counter"):
        read_profile(written(tmp_path, text))
