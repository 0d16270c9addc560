"""Vendor command lines: what was given twice is said, and errors from below speak their words."""

from __future__ import annotations

import pytest

from opscope.commands.vendor_flags import Flag, read_words, respelt, spelt_as
from opscope.core.errors import ModelError, UsageError

TABLE = (Flag(("size", "s"), "size"),)


def test_of_a_flag_that_is_given_several_times_the_last_counts_with_one_note() -> None:
    found = read_words("tool", TABLE, ["-size=1", "-s", "2"])
    assert (found.last("size"), found.last("size"), found.notes) == (
        "2",
        "2",
        ["-s: given 2 times; the last counts, 2"],
    )
    same = read_words("tool", TABLE, ["-size=2", "-s", "2"])
    assert (same.last("size"), same.notes) == ("2", [])


@pytest.mark.parametrize(
    ("text", "theirs"),
    [
        ("--cores 15: aic100-std has 14", "-aic-num-cores=15: aic100-std has 14"),
        ("more devices (--devices N) or less", "more devices (-mdp=FILE) or less"),
        ("expected what `opscope compile` wrote", "expected what `opscope theirs` wrote"),
        ("activations 0: out of range", "-a=0: out of range"),
        ("time nan: expected a number", "--time=nan: expected a number"),
        ("two activations 0: out of range", "two activations 0: out of range"),
        ("time of day: not a word of ours", "time of day: not a word of ours"),
        ("--cores-of 3, my--cores 3", "--cores-of 3, my--cores 3"),
    ],
)
def test_words_of_ours_are_theirs(text: str, theirs: str) -> None:
    words = {
        "--cores": "-aic-num-cores",
        "--devices N": "-mdp=FILE",
        "--devices": "-wrong",
        "`opscope compile`": "`opscope theirs`",
        "activations": "-a",
        "time": "--time",
    }
    assert respelt(text, words) == theirs


def test_errors_keep_their_class_and_speak_the_words_of_the_line() -> None:
    with pytest.raises(ModelError, match=r"^m.onnx: expected -shape=x=1$"), spelt_as({"--shape": "-shape"}):
        raise ModelError("m.onnx", "", "expected --shape x=1")
    with pytest.raises(UsageError, match=r"^fine$"), spelt_as({}):
        raise UsageError("fine")
