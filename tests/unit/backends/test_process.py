from __future__ import annotations

import sys
from pathlib import Path

import pytest

from opscope.backends.process import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


def test_a_process_that_crashes_is_described_by_its_signal(folder: Path) -> None:
    """Trap: Arm's compiler ends in a segmentation fault on a truncated file."""
    ended = run([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"], folder, longest_s=60)
    assert ended.how == "crashed (SIGSEGV)"
    assert ended.last_words == "no message"


def test_a_process_that_takes_too_long_is_stopped(folder: Path) -> None:
    ended = run([sys.executable, "-c", "import time; print('so far', flush=True); time.sleep(60)"], folder, longest_s=1)
    assert ended.timed_out
    assert ended.how == "was stopped at its time limit"


def test_its_last_words_are_safe_to_print(folder: Path) -> None:
    code = "import sys; print('out'); print('Traceback'); sys.stderr.write('bad \\x1b[31m name\\n\\n'); sys.exit(3)"
    ended = run([sys.executable, "-c", code], folder, longest_s=60)
    assert (ended.how, ended.last_words) == ("ended with code 3", "bad \\x1b[31m name")
