"""What to make of every sample of raw statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from . import check_words, shown


@dataclass(frozen=True, slots=True)
class OpstatsOptions:
    """Options of `opstats`: what to write for every sample of raw statistics."""

    summary: bool = field(
        default=False, metadata=shown("write a text report per sample: op tables, totals, where the time goes")
    )
    trace: bool = field(default=False, metadata=shown("write a timeline per sample, for chrome://tracing and Perfetto"))
    run: Path | None = field(default=None, metadata=shown("write a run folder for analyze, compare and view", "RUN"))
    trace_format: str = field(
        default="json",
        metadata=shown("format of the timeline (default: json)", choices=("json", "perfetto"), group="trace"),
    )
    host_trace: Path | None = field(
        default=None, metadata=shown("Chrome JSON of host events, shown above the device", "F", group="trace")
    )
    cores: tuple[int, ...] | None = field(
        default=None,
        metadata=shown("cores in the timeline (default: all)", "0,5,1", flags=("-c", "--select-cores"), group="trace"),
    )
    devices: tuple[int, ...] | None = field(
        default=None,
        metadata=shown(
            "devices in the timeline (default: all)", "0,1", flags=("-d", "--select-devices"), group="trace"
        ),
    )
    merge_devices: bool = field(
        default=True,
        metadata=shown(
            "put all devices of a sample into one file (default true)",
            "true|false",
            flags=("--merge-mq-traces",),
            group="trace",
        ),
    )
    merge_thread_groups: bool = field(
        default=True,
        metadata=shown(
            "one row per thread group instead of one per thread (default true)", "true|false", group="trace"
        ),
    )
    flows: bool = field(
        default=False,
        metadata=shown(
            "draw dependencies as arrows: none (default) or full",
            choices=("none", "full"),
            flags=("--flow-events",),
            group="trace",
        ),
    )
    barriers: bool = field(
        default=False,
        metadata=shown(
            "a row of barriers for every thread of every engine", flags=("--show-barrier-events",), group="trace"
        ),
    )
    workers: int = 1  # processes to decode in; a script that asks for more than one needs the usual `__main__` guard

    def __post_init__(self) -> None:
        for name, kind in (("cores", tuple), ("devices", tuple), ("host_trace", Path), ("run", Path)):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else kind(value))
        check_words(self)
