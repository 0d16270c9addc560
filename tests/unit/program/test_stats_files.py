"""Names of stats buffers, and what is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.target_words import TargetWords
from opscope.machine.catalogue import load, words_of
from opscope.program.file_names import plain_name
from opscope.program.stats_files import find_samples, output_name


def names(folder: Path, *files: str) -> list[tuple[str, list[int | None]]]:
    for name in files:
        (folder / name).touch()
    return [(sample.merged_stem, [file.slice for file in sample.files]) for sample in find_samples(folder)]


def test_buffers_are_grouped_by_inference_in_the_order_of_numbers(tmp_path: Path) -> None:
    stem = "aic-profiling-program-0-activation-{}-inf-{}-Net"
    files = [f"{stem.format(a, i)}-aiccyclecounts.bin" for a, i in ((1, 2), (0, 10), (0, 9))]
    assert names(tmp_path, *files, "notes.txt", "aic-profiling-program-0-trace.json") == [
        (stem.format(0, 9), [None]),
        (stem.format(0, 10), [None]),
        (stem.format(1, 2), [None]),
    ]


def test_slices_of_one_inference_are_one_sample(tmp_path: Path) -> None:
    stem = "aic-profiling-program-0-activation-0-inf-3-QAicGraph"
    files = [f"{stem}_slice{i:02d}-aiccyclecounts.bin" for i in (1, 0, 11)]
    assert names(tmp_path, *files) == [(f"{stem}-merged", [0, 1, 11])]


def test_a_suffix_behind_the_buffers_name_is_allowed(tmp_path: Path) -> None:
    assert names(tmp_path, "aic-profiling-program-0-activation-0-inf-3-Net-aiccyclecounts_0.bin")


@pytest.mark.parametrize(
    ("target", "tag"), [("aic100-std", "qaic-opstats"), ("aic100-ultra", "qaic-opstats"), ("torq-sl2610", "opstats")]
)
def test_outputs_bear_the_name_of_the_tool_of_the_vendor_that_the_target_is_of(target: str, tag: str) -> None:
    stem = "aic-profiling-program-0-activation-0-inf-213-QAicGraph"
    assert output_name(stem, load(target).words, ".summary.txt") == f"{stem}.{tag}.summary.txt"
    old = words_of(None, target)  # a program of an earlier version carries none
    assert output_name(stem, old, ".summary.txt") == f"{stem}.{tag}.summary.txt"


@pytest.mark.parametrize("tag", ["../../home", "", "a b", "x" * 41])
def test_a_word_that_is_a_part_of_file_names_leads_nowhere_else(tag: str) -> None:
    with pytest.raises(ValueError, match=r"opstats_tag is .*; expected 1 to 40 letters"):
        TargetWords(opstats_tag=tag)


@pytest.mark.parametrize(("network", "name"), [("QAicGraph", "QAicGraph"), ("../a b", "_a_b"), ("..", "network")])
def test_a_networks_name_means_nothing_to_a_file_system(network: str, name: str) -> None:
    assert plain_name(network) == name
