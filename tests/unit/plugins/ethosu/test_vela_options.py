from __future__ import annotations

from pathlib import Path

import pytest

from opscope.core.errors import UsageError
from opscope.plugins.ethosu.backend import VelaBackend
from opscope.plugins.ethosu.options import MACS_PER_CYCLE, MODES, SYSTEMS, VelaOptions


@pytest.mark.parametrize("accelerator", MACS_PER_CYCLE)
def test_nothing_is_left_for_the_compiler_to_assume(accelerator: str) -> None:
    """Trap: without options it takes a system and a memory mode by itself, and these set all timing."""
    options = VelaOptions.of({"accelerator": accelerator})
    words = options.words()
    for name in ("--accelerator-config", "--config", "--system-config", "--memory-mode", "--optimise"):
        assert words[words.index(name) + 1]
    assert options.system in SYSTEMS
    assert options.memory_mode in MODES
    assert accelerator.split("-")[1] in options.system.lower()
    assert options.shown()["system_config"] == options.system


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"system-config": "Ethos_U65_High_End"},
            r"^--system-config Ethos_U65_High_End: not a system of ethos-u55-256; expected one of Ethos_U55_High",
        ),
        ({"system-config": "Mine"}, r"^--system-config Mine: not in Arm's file; expected one of .*, or --vela-config$"),
        ({"memory-mode": "Dedicated_Sram"}, r"^--memory-mode Dedicated_Sram: .* an arena cannot lie in flash; expec"),
        ({"memory-mode": "x\x1b"}, r"^--memory-mode x\\x1b: not in Arm's file"),
        ({"accelerator": "ethos-u99"}, r"^--accelerator ethos-u99: not known; expected one of ethos-u55-32, "),
        ({"optimise": "speed"}, r"^--optimise speed: not known; expected one of performance, size"),
        ({"arena-cache-size": 0}, r"^--arena-cache-size 0: expected a whole number from 1"),
        ({"vela-config": "none.ini"}, r"^--vela-config none\.ini: no such file; expected a configuration of Vela's"),
        ({"threads": 1}, r"^option threads: not one of the vela backend; expected one of accelerator, system-config"),
    ],
)
def test_a_wrong_choice_is_named(values: dict[str, str | int], words: str) -> None:
    """Trap: it takes the system of another family without a word, and its clock and memories with it."""
    with pytest.raises(UsageError, match=words):
        VelaOptions.of(values)


def test_a_configuration_of_ones_own_names_its_own_systems(tmp_path: Path) -> None:
    file = tmp_path / "mine.ini"
    file.write_text("[System_Config.Mine]\n")
    with pytest.raises(UsageError, match=r"^--vela-config: expected --system-config and --memory-mode too"):
        VelaOptions.of({"vela-config": str(file)})
    options = VelaOptions.of({"vela-config": str(file), "system-config": "Mine", "memory-mode": "Also_Mine"})
    assert (options.system, options.memory_mode, options.config) == ("Mine", "Also_Mine", str(file))


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    state = VelaBackend().state()
    assert (state.works, state.install) == (False, "pip install 'opscope[vela]'")


def test_without_the_package_a_profile_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from opscope.plugins.ethosu import compilation as vela_run

    monkeypatch.setattr(vela_run, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"^backend vela: the package ethos-u-vela is not installed; install it: pip"):
        vela_run.compile_model(tmp_path / "model.tflite", VelaOptions.of({}))
