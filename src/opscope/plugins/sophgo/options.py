"""Checked choices of the sophgo backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...backends import registry
from ...backends.measuring import filled_options
from ...backends.process import positive
from ...core.errors import UsageError
from ...core.manifest import Value
from ...core.precisions import copy_word
from .chips import CHIPS, Chip
from .manifest import BACKEND

_WORDS = {  # house word → the compiler's
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "w8a8": "INT8",
    "w4a4": "INT4",
    "w8f16": "W8F16",
    "w4f16": "W4F16",
    "w8bf16": "W8BF16",
    "w4bf16": "W4BF16",
}
_CALIBRATED = ("w8a8", "w4a4")


@dataclass(frozen=True, slots=True)
class SophgoOptions:
    """What to compile for, and how."""

    chip: Chip
    precision: str
    cores: int = 1
    data: str | None = None  # place of samples that integers are calibrated with
    tool: str | None = None

    @staticmethod
    def of(values: Mapping[str, Value]) -> SophgoOptions:
        """Fill in what the chip decides, and refuse what it does not take."""
        filled = filled_options(BACKEND.name, registry.find(BACKEND.name).options, values)
        chip = CHIPS[str(filled["chip"])]
        precision = copy_word(str(filled["precision"] or chip.precisions[0]))
        if precision not in chip.precisions:
            raise UsageError(
                f"--precision {precision}: not of {chip.name}; expected one of {', '.join(chip.precisions)}"
            )
        cores = positive("num-core", filled["num-core"] or 1, most=chip.cores)
        data, tool = (None if filled[name] is None else str(filled[name]) for name in ("data", "tool"))
        return SophgoOptions(chip, precision, cores, data, tool)

    @property
    def quantize(self) -> str:
        """As the compiler calls the precision."""
        return _WORDS[self.precision]

    @property
    def calibrates(self) -> bool:
        return self.precision in _CALIBRATED

    def shown(self) -> dict[str, str | int | bool | None]:
        return {"chip": self.chip.name, "precision": self.precision, "num_core": self.cores, "data": self.data}
