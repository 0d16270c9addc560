"""Files that a user named, read whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.core.files import read_whole


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{}")
    assert read_whole(tmp_path / "a.json", "a run") == b"{}"


def test_what_cannot_be_read_says_why_and_what_it_should_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none: cannot be read \(No such file or directory\); expected a run$"):
        read_whole(tmp_path / "none", "a run")
    with pytest.raises(UsageError, match=r"cannot be read \(Is a directory\); expected a run$"):
        read_whole(tmp_path, "a run")


def test_what_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(3 << 20)
    with pytest.raises(UsageError, match=r"large: larger than 2 MB; expected a sweep$"):
        read_whole(tmp_path / "large", "a sweep", most_bytes=2 << 20)
