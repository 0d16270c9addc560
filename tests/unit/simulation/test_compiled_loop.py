"""The compiled event loop on its own: it is built, compiles cleanly, and survives arguments that nobody checked."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import opscope.simulation

FOLDER = Path(opscope.simulation.__file__).parent
COMPILER = shutil.which("gcc")
HEADERS = Path(sysconfig.get_path("include"))

CAN_COMPILE = COMPILER is not None and (HEADERS / "Python.h").exists()
if not CAN_COMPILE:
    pytest.skip("no compiler or no headers here: the loop in Python is used", allow_module_level=True)

core = importlib.import_module("opscope.simulation._core")  # where it can be built, an install has built it


def arguments(**change: np.ndarray) -> list[np.ndarray]:
    """Two commands of one lane: a copy, and one that waits for it."""
    columns = {
        "cycles": np.array([1.0, 1.0]),
        "moved_bytes": np.array([8.0, 0.0]),
        "queue_of": np.array([0, -1], np.int32),
        "dependency_first": np.array([0, 0, 1], np.uint32),
        "dependency_source": np.array([0], np.uint32),
        "lane_first": np.array([0, 2], np.int64),
        "channel_of": np.array([0], np.int32),
        "shared_rate": np.array([4.0]),
        "queue_rate": np.array([4.0]),
        "latency": np.array([0.0]),
        "pool_first": np.array([0, 1], np.int32),
        "pool_rate": np.array([4.0]),
        **{name: np.zeros(2) for name in ("lane_ready", "start", "issue_end", "transfer_start", "done")},
        "blocker": np.zeros(2, np.int64),
    }
    return list({**columns, **change}.values())


def test_it_is_what_simulate_uses() -> None:
    assert importlib.import_module("opscope.simulation.simulate").run is core.run


def test_it_runs_what_is_right() -> None:
    columns = arguments()
    assert core.run(*columns) == 2
    assert columns[-2].tolist() == [3, 4]
    assert columns[-1].tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cycles": np.zeros(3)}, "columns differ in length"),
        ({"done": np.zeros(1)}, "columns differ in length"),
        ({"queue_rate": np.zeros(0)}, "columns differ in length"),
        ({"lane_first": np.zeros(0, np.int64)}, "lane offsets are missing"),
        ({"lane_first": np.array([0, 3], np.int64)}, "lanes do not cover the commands"),
        ({"lane_first": np.array([0, 9, 2], np.int64)}, "lanes are not in order"),
        ({"lane_first": np.array([0, -1, 2], np.int64)}, "lanes are not in order"),
        ({"dependency_first": np.array([0, 0, 2], np.uint32)}, "offsets do not cover the dependencies"),
        ({"dependency_first": np.array([0, 7, 1], np.uint32)}, "offsets of dependencies are not in order"),
        ({"dependency_source": np.array([2], np.uint32)}, "a dependency does not exist"),
        ({"queue_of": np.array([1, -1], np.int32)}, "a queue does not exist"),
        ({"queue_of": np.array([-2, -1], np.int32)}, "a queue does not exist"),
        ({"channel_of": np.array([1], np.int32)}, "a channel does not exist"),
        ({"channel_of": np.array([-1], np.int32)}, "a channel does not exist"),
        ({"latency": np.zeros(2)}, "columns differ in length"),
        ({"pool_rate": np.zeros(0)}, "columns differ in length"),
        ({"pool_first": np.array([0, 2], np.int32)}, "pools do not cover the channels"),
        ({"pool_first": np.array([0, 5, 1], np.int32), "pool_rate": np.ones(2)}, "pools are not in order"),
    ],
)
def test_wrong_arguments_are_an_error_and_not_a_crash(change: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        core.run(*arguments(**change))


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_senseless_rates_end_all_the_same(rate: float) -> None:
    assert core.run(*arguments(shared_rate=np.array([rate]))) == 2


def test_results_must_be_writable() -> None:
    columns = arguments()
    columns[-1].setflags(write=False)
    with pytest.raises(TypeError):
        core.run(*columns)


def test_it_compiles_without_a_warning() -> None:
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "-DPy_LIMITED_API=0x030B0000"]
    result = subprocess.run(
        [str(COMPILER), *flags, f"-I{HEADERS}", str(FOLDER / "core.c")], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""
    assert result.returncode == 0
