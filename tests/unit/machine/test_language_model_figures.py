"""Figures of a target for language models: they replace those of other networks, and must be of the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import TargetError
from opscope.machine import catalogue
from opscope.machine.catalogue import for_language_models

HEAD = 'schema = "opscope.target/1"\nname = "mine"\nextends = "rk3588"\n[sources]\nrun = "measured"\n'


def target_file(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(f"{HEAD}[language_models.figures]\n{text}\n", encoding="utf-8")
    return path


def test_figures_of_language_models_replace_those_of_other_networks(tmp_path: Path) -> None:
    text = '"memories[0].bytes_per_second" = { value = 20e9, source = "run" }'
    target = catalogue.read(target_file(tmp_path, text))
    before = target.memories[0].bytes_per_second
    after = for_language_models(target).memories[0].bytes_per_second
    assert before is not None
    assert after is not None
    assert before.value != after.value == 20e9


def test_a_target_without_them_stays_as_it_is() -> None:
    target = catalogue.load("cortex-m4")
    assert for_language_models(target) is target


def test_their_weights_do_not_stay_in_local_memory_layer_by_layer() -> None:
    target = catalogue.load("coral-usb")
    assert target.local is not None
    assert target.local.resident_share is not None
    local = for_language_models(target).local
    assert local is not None
    assert local.resident_share is None


def test_their_fit_and_its_errors_are_their_own() -> None:
    target = catalogue.load("qcs8275")
    own = for_language_models(target)
    assert target.calibration is not None
    assert own.calibration is not None
    assert target.calibration.precisions == ("float", "w8a16", "w8a8")
    assert own.calibration.precisions == ("w4", "w4a16")


def test_a_data_type_may_stand_beside_the_others(tmp_path: Path) -> None:
    text = '"engines[0].reached.softmax.f16" = { value = 0.5, source = "run" }'
    own = for_language_models(catalogue.read(target_file(tmp_path, text)))
    assert own.engines[0].reached["softmax"]["f16"].value == 0.5


@pytest.mark.parametrize("key", ["memories[7].bytes_per_second", "engines[0].speed", "engines[0].reached.softmax.f17"])
def test_a_key_that_is_no_figure_of_the_target_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(TargetError, match=r"key language_models\.figures\..*is not there"):
        catalogue.read(target_file(tmp_path, f'"{key}" = {{ value = 1, source = "run" }}'))
