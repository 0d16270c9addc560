"""A sampler of what a GPU draws, beside a measurement: NVML's power, clocks, temperature and throttling, as a log.

It runs in a process of its own, so that Python's lock never holds up the work that is measured, and writes lines that
`opscope import` lays over a timeline (format `power-log`). Times are of the monotonic clock, as `time.monotonic_ns`
has them in every process of a machine.

    with sampled_power(Path("power.csv")):
        measure()

NVML renews its power some ten to fifty times a second, depending on the part; samples closer together repeat it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import monotonic_ns, sleep
from types import ModuleType
from typing import TextIO

from ...core.errors import UsageError

COLUMNS = ("time_ns", "watts", "clock_mhz", "memory_clock_mhz", "temperature_c", "energy_mj", "throttle")
REASONS = {  # bits of NVML's reasons why clocks are not as high as they could be; idle is none
    0x0002: "application_clocks",
    0x0004: "power_cap",
    0x0008: "hardware_slowdown",
    0x0010: "sync_boost",
    0x0020: "thermal",
    0x0040: "hardware_thermal",
    0x0080: "power_brake",
    0x0100: "display_clocks",
}
_READY = "ready"
_GRACE_S = 5.0


@contextmanager
def sampled_power(log: Path, *, device: int = 0, interval_ms: int = 10) -> Iterator[Path]:
    """Sample a GPU while the body runs, from before its first line until after its last."""
    arguments = [sys.executable, "-m", __name__, str(log), str(device), str(interval_ms)]
    child = subprocess.Popen(  # noqa: S603 – a list of words, no shell
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        said = "" if child.stdout is None else child.stdout.readline().strip()
        if said != _READY:
            raise UsageError(said or "the sampler of power ended before it began; expected one that samples")
        yield log
    finally:
        if child.stdin is not None:
            child.stdin.close()  # the end of its input is its sign to stop
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdout is not None:
            child.stdout.close()


def open_library() -> ModuleType:
    """NVML, ready to be asked; a line says what is missing."""
    try:
        library = import_module("pynvml")
    except ImportError as error:
        raise UsageError("NVML: nvidia-ml-py is not installed; expected `pip install opscope[nvidia]`") from error
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        raise UsageError(f"NVML: {error}; expected an NVIDIA driver on this machine") from error
    return library


def line_of(library: ModuleType, handle: object, time_ns: int) -> str:
    """One sample; what a part does not tell is empty."""

    def asked(name: str, *arguments: object, scale: float = 1.0) -> str:
        try:
            return f"{getattr(library, name)(handle, *arguments) * scale:.10g}"
        except (AttributeError, library.NVMLError):
            return ""

    reasons = asked("nvmlDeviceGetCurrentClocksEventReasons") or asked("nvmlDeviceGetCurrentClocksThrottleReasons")
    bits = int(float(reasons)) if reasons else 0
    cells = (
        str(time_ns),
        asked("nvmlDeviceGetPowerUsage", scale=1e-3),
        asked("nvmlDeviceGetClockInfo", library.NVML_CLOCK_SM),
        asked("nvmlDeviceGetClockInfo", library.NVML_CLOCK_MEM),
        asked("nvmlDeviceGetTemperature", library.NVML_TEMPERATURE_GPU),
        asked("nvmlDeviceGetTotalEnergyConsumption"),
        " ".join(word for bit, word in REASONS.items() if bits & bit),
    )
    return ",".join(cells) + "\n"


def _sample(out: TextIO, library: ModuleType, device: int, interval_ms: int) -> None:
    """Write samples until nothing listens any more."""
    from threading import Event, Thread

    ended = Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    Thread(target=listen, daemon=True).start()
    handle = library.nvmlDeviceGetHandleByIndex(device)
    out.write(",".join(COLUMNS) + "\n" + line_of(library, handle, monotonic_ns()))
    _say(_READY)
    due = monotonic_ns()
    while not ended.is_set():
        due += interval_ms * 1_000_000
        sleep(max(0.0, (due - monotonic_ns()) * 1e-9))
        out.write(line_of(library, handle, monotonic_ns()))


def _say(words: str) -> None:
    """To who started it."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Of the child: sample a device into a log."""
    log, device, interval_ms = arguments
    try:
        library = open_library()
        with Path(log).open("w", encoding="utf-8") as out:
            _sample(out, library, int(device), int(interval_ms))
    except UsageError as error:
        _say(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
