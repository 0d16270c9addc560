"""Tables that ESP-DL prints, between lines of ESP-IDF's logger."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.formats import read_profile
from support.plugins.importer_samples import SAMPLES, all_hold, sample


def written(folder: Path, text: str) -> Path:
    (folder / "board.log").write_text(text)
    return folder / "board.log"


def test_modules_latency_and_memory() -> None:
    found = sample("espdl_profile.txt")
    assert all_hold(found)
    assert len(found.checks) == 4
    assert [(op.name, op.type, op.time_ns) for op in found.ops] == [
        ("/features/0/Conv", "Conv", 1_500_000),
        ("/features/1/Conv", "Conv", 480_000),
        ("/classifier/Gemm", "Gemm", 20_000),
    ]
    assert (found.latency_ns, found.model, found.inferences, found.notes) == (2_000_000, "torch_jit", 1, ())
    assert found.value("variable, PSRAM") == 100 * 1024
    assert found.value("parameter, FLASH") == 80 * 1024
    assert found.value("others, FLASH") is None


def test_tables_without_a_logger_and_with_its_colours(tmp_path: Path) -> None:
    text = (SAMPLES / "espdl_profile.txt").read_text()
    plain = "\n".join(line.partition("dl::Model: ")[2] or line for line in text.splitlines())
    coloured = "\n".join(f"\x1b[0;32m{line}\x1b[0m\r" for line in text.splitlines())
    assert read_profile(written(tmp_path, plain)).ops == read_profile(written(tmp_path, coloured)).ops
    assert len(read_profile(written(tmp_path, plain)).ops) == 3


def test_a_library_that_counts_cycles_has_no_times(tmp_path: Path) -> None:
    found = read_profile(written(tmp_path, (SAMPLES / "espdl_profile.txt").read_text().replace("0us ", "0cycle ")))
    assert [(op.time_ns, op.cycles) for op in found.ops] == [(None, 1500), (None, 480), (None, 20)]
    assert found.latency_ns is None
    assert found.value("cycles of one inference") == 2000


def test_a_row_that_cannot_be_read_is_counted_and_the_total_fails(tmp_path: Path) -> None:
    text = (SAMPLES / "espdl_profile.txt").read_text().replace("| 480us   |", "| 480u")
    found = read_profile(written(tmp_path, text))
    assert len(found.ops) == 2
    assert found.notes[-1].startswith("1 rows could not be read: line 30")
    assert [check.name for check in found.checks if not check.holds] == ["total = sum of the modules"]


def test_a_table_that_is_cut_short_says_so(tmp_path: Path) -> None:
    text = (SAMPLES / "espdl_profile.txt").read_text().partition("I (1048) dl::Model: | total")[0]
    found = read_profile(written(tmp_path, text))
    assert "the table of modules has no total: it is cut short" in found.notes
    assert found.latency_ns is None


def test_two_models_in_one_log_are_refused(tmp_path: Path) -> None:
    text = (SAMPLES / "espdl_profile.txt").read_text()
    path = written(tmp_path, text + text.replace("torch_jit", "other"))
    with pytest.raises(ImportFileError, match=r"the models torch_jit and other; expected one model$"):
        read_profile(path)
