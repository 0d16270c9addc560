"""trtexec --exportTimes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.core.errors import ImportFileError
from opscope.importers.combine import combine
from opscope.importers.formats import read_profile
from opscope.recording.recording import Recording
from support.plugins.importer_samples import SAMPLES, all_hold, sample

NAME = "tensorrt_times.json"


def changed(tmp_path: Path, **fields: object) -> Recording:
    """The file with other values in its first entry."""
    body = json.loads((SAMPLES / NAME).read_text())
    body[0] |= fields
    (tmp_path / NAME).write_text(json.dumps(body))
    return read_profile(tmp_path / NAME)


def test_every_inference_is_a_sample_and_the_latency_is_their_median() -> None:
    imported = sample(NAME)
    assert all_hold(imported)
    assert imported.samples_ns == (1_322_000, 1_309_000, 1_355_000)
    assert imported.latency_ns == 1_322_000
    assert (imported.value("latency, least"), imported.value("latency, most")) == (1_309_000, 1_355_000)
    assert imported.value("latency, 90 %") == pytest.approx(1_348_400)  # between the second and the third
    assert imported.value("enqueue, median") == 132_000
    assert imported.value("throughput") == pytest.approx(3e9 / (3_835_000 - 30_000))  # copy in first, copy out last


def test_spans_stand_where_the_file_has_them_counted_from_the_first() -> None:
    trace = sample(NAME).trace
    found = {
        (trace.lanes[span["lane"]].name, int(span["inference"])): (int(span["start_ns"]), int(span["end_ns"]))
        for span in trace.spans
    }
    first = 21_000  # the first enqueueing
    assert found["compute", 2] == (2_556_000 - first, 3_816_000 - first)
    assert found["copy in", 0] == (30_000 - first, 112_000 - first)
    assert len(found) == 12


def test_the_older_spelling_of_copies_is_the_same(tmp_path: Path) -> None:
    text = (SAMPLES / NAME).read_text().replace("H2dMs", "InMs").replace("D2hMs", "OutMs")
    (tmp_path / NAME).write_text(text)
    older = read_profile(tmp_path / NAME)
    assert older.samples_ns == sample(NAME).samples_ns
    assert older.metrics == sample(NAME).metrics


def test_an_entry_that_ends_before_it_starts_is_counted_and_left_out(tmp_path: Path) -> None:
    imported = changed(tmp_path, endComputeMs=0.1)
    assert len(imported.samples_ns) == 2
    assert "1 entries could not be read: entry 0" in imported.notes[-1]


def test_a_latency_that_is_not_the_sum_of_its_parts_is_shown(tmp_path: Path) -> None:
    (check,) = changed(tmp_path, latencyMs=9.0).checks
    assert not check.holds
    assert check.detail == "2 of 3 inferences; not 0"


def test_without_one_inference_there_is_nothing_to_import(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("[{}]")
    with pytest.raises(ImportFileError, match="no inference that can be read"):
        read_profile(tmp_path / NAME, form="tensorrt-times")


def test_with_the_times_of_layers_samples_stay() -> None:
    whole = combine([sample("tensorrt_profile.json"), sample(NAME)])
    assert whole.samples_ns == sample(NAME).samples_ns
    assert len(whole.ops) == 3
    assert len(whole.trace.spans) == 12
