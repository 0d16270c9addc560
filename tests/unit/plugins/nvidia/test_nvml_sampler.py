"""The sampler of power: what it says where there is no GPU, and the log that it writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from opscope.core.errors import UsageError
from opscope.importers.formats import read_profile
from opscope.plugins.nvidia.power import COLUMNS, REASONS, line_of, open_library, sampled_power

HAS_DRIVER = shutil.which("nvidia-smi") is not None
no_driver = pytest.mark.skipif(HAS_DRIVER, reason="an NVIDIA driver is here")


@no_driver
def test_without_a_driver_one_line_says_so() -> None:
    with pytest.raises(UsageError, match=r"^NVML: .*; expected (an NVIDIA driver on this machine|`pip install .*`)$"):
        open_library()


@no_driver
def test_the_child_says_the_same_and_the_body_does_not_run(tmp_path: Path) -> None:
    ran = []
    with pytest.raises(UsageError, match=r"^NVML: [^\n]*; expected "), sampled_power(tmp_path / "power.csv") as log:
        ran.append(log)
    assert not ran
    assert not (tmp_path / "power.csv").exists()


def test_a_part_that_tells_nothing_leaves_cells_empty() -> None:
    library = ModuleType("silent")
    library.NVMLError = ValueError  # type: ignore[attr-defined]
    library.NVML_CLOCK_SM = library.NVML_CLOCK_MEM = library.NVML_TEMPERATURE_GPU = 0  # type: ignore[attr-defined]
    assert line_of(library, None, 7) == "7" + "," * (len(COLUMNS) - 1) + "\n"


def test_its_log_is_a_log_of_power(tmp_path: Path) -> None:
    rows = [f"{n * 10_000_000},{70 + n},1980,2619,{30 + n},{n * 750},{'power_cap' if n == 3 else ''}" for n in range(9)]
    log = tmp_path / "power.csv"
    log.write_text(",".join(COLUMNS) + "\n" + "\n".join(rows) + "\n")
    found = read_profile(log)
    assert found.maker == "power-log"
    assert {(track.name, track.unit) for track in found.trace.counters} >= {("power", "W"), ("clock", "Hz")}
    assert found.trace.samples["value"][:3].tolist() == [70, 71, 72]
    assert found.notes == ("clocks were held back in some of 9 samples of power: power_cap (1)",)
    assert "power_cap" in REASONS.values()
