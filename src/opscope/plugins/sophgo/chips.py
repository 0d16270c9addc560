"""The chips that tpu-mlir 1.30 compiles for, and what is known of each without the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...machine.target import Figure

_LIBRARY = "tpu-mlir 1.30.2: what the library of the chip's backend answers"
_PROFILE = "tpu-mlir 1.30.2: cycles by runtime of compiler_profile_0.txt"


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip, as the compiler knows it. Of its precisions, the first is used when none is named."""

    name: str
    title: str
    precisions: tuple[str, ...]
    cores: int = 1
    clock_hz: int | None = None  # None: the compiler has no model of its times
    lanes: int | None = None  # of a core: each has its part of the local memory
    lane_bytes: int | None = None
    same_as: str = ""  # the chip whose model stands behind it too

    @property
    def has_model(self) -> bool:
        return self.clock_hz is not None

    @property
    def suffix(self) -> str:
        """Of the file that the compiler makes for it."""
        return "cvimodel" if self.name in _CVI else "bmodel"


_CVI = frozenset({"cv183x", "cv182x", "cv181x", "cv180x"})
_FLOATS = ("f16", "bf16", "f32")
_MIXED = ("w8f16", "w4f16", "w8bf16", "w4bf16")
_ALL = (
    Chip("bm1684x", "Sophgo BM1684X", (*_FLOATS, "w8a8", *_MIXED), 1, 1_000_000_000, 64, 256 << 10),
    Chip("bm1684x2", "Sophgo BM1684X2", ("f16", "bf16", "w8a8", *_MIXED), 4, 1_500_000_000, 16, 256 << 10),
    Chip("bm1688", "Sophgo BM1688", (*_FLOATS, "w8a8", "w4a4", *_MIXED), 2, 900_000_000, 32, 128 << 10),
    Chip("cv186x", "Sophgo CV186X", (*_FLOATS, "w8a8", "w4a4", *_MIXED), 1, 900_000_000, 32, 128 << 10, "bm1688"),
    Chip("bm1690", "Sophgo BM1690", (*_FLOATS, "w8a8", *_MIXED), 8, 1_000_000_000, 64, 256 << 10),
    Chip("bm1690e", "Sophgo BM1690E", (*_FLOATS, "w8a8", *_MIXED), 4, 1_000_000_000, 64, 256 << 10, "bm1690"),
    Chip("sg2262", "Sophgo SG2262", (*_FLOATS, "w8a8", *_MIXED), 8, 1_000_000_000, 64, 256 << 10, "bm1690"),
    Chip("sg2380", "Sophgo SG2380", (*_FLOATS, "w8a8", "w4a4", *_MIXED), 4, 1_000_000_000, 32, 128 << 10),
    Chip("cv184x", "Sophgo CV184X", ("w8a8", "f16", "bf16", "w8bf16", "w4bf16"), 1, 750_000_000, 8, 64 << 10),
    Chip("sgtpuv8", "Sophgo SGTPUV8", ("w8a8", "f16", "bf16", "w8bf16", "w4bf16"), 1, 750_000_000, 8, 64 << 10),
    Chip("bm1684", "Sophgo BM1684", ("w8a8", "f32"), 1, None, 64, 512 << 10),
    Chip("cv183x", "Sophgo CV183X", ("w8a8", "bf16")),
    Chip("cv182x", "Sophgo CV182X", ("w8a8", "bf16")),
    Chip("cv181x", "Sophgo CV181X", ("w8a8", "bf16")),
    Chip("cv180x", "Sophgo CV180X", ("w8a8", "bf16")),
)
CHIPS: Mapping[str, Chip] = {chip.name: chip for chip in _ALL}


@dataclass(frozen=True, slots=True)
class ChipFigures:
    """What is known of a chip, for people."""

    cores: Figure
    clock_hz: Figure | None
    lanes: Figure | None
    local_bytes: Figure | None
    sources: Mapping[str, str] = field(
        default_factory=lambda: {"library": _LIBRARY, "profile": _PROFILE, "option": "most that --num-core takes"}
    )


def figures_of(name: str) -> ChipFigures:
    """Of one of the chips."""
    chip = CHIPS[name]
    lanes = None if chip.lanes is None else Figure(chip.lanes, "library")
    local = None if chip.lanes is None or chip.lane_bytes is None else Figure(chip.lanes * chip.lane_bytes, "library")
    clock = None if chip.clock_hz is None else Figure(chip.clock_hz, "profile")
    return ChipFigures(Figure(chip.cores, "option"), clock, lanes, local)
