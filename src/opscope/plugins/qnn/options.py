"""What a profile on the HTP backend can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...core.errors import UsageError
from ...core.manifest import Value
from ...core.precisions import copy_word
from .manifest import BACKEND
from .socs import Soc, find_soc

INSTALL = "pip install 'opscope[htp]'"
PACKAGE = "onnxruntime_qnn"


@dataclass(frozen=True, slots=True)
class HtpOptions:
    """Checked choices."""

    soc: Soc
    level: str = "detailed"
    perf_profile: str = "balanced"
    vtcm_mb: int | None = None
    opt_level: int | None = None
    precision: str = "as-is"
    io_quant: bool = True
    execute: bool = False
    data: str | None = None  # place of samples that copies are calibrated with

    @staticmethod
    def of(values: Mapping[str, Value]) -> HtpOptions:
        """From option names and values; what is not named has its default."""
        known = {option.name: option for option in BACKEND.options}
        if values.get("precision") is not None:
            values = {**values, "precision": copy_word(str(values["precision"]))}
        for name, value in values.items():
            if name not in known:
                raise UsageError(f"option {name}: not one of the htp backend; expected one of {', '.join(known)}")
            choices = known[name].choices
            if choices and value is not None and str(value) not in choices:
                raise UsageError(f"--{name} {value}: not known; expected one of {', '.join(choices)}")
        given = {name: value for name, value in values.items() if value is not None}
        filled = {name: option.default for name, option in known.items()} | given
        opt_level = filled["opt-level"]
        return HtpOptions(
            soc=find_soc(str(filled["soc"])),
            level=str(filled["profiling-level"]),
            perf_profile=str(filled["perf-profile"]),
            opt_level=None if opt_level is None else int(opt_level),
            precision=str(filled["precision"]),
            io_quant=filled["io-quant"] != "off",
            execute=bool(filled["execute"]),
            data=None if filled["data"] is None else str(filled["data"]),
        ).with_vtcm(filled["vtcm-mb"])

    def with_vtcm(self, size: Value) -> HtpOptions:
        if size is None:
            return self
        if not 1 <= int(size) <= self.soc.vtcm_mb:
            raise UsageError(
                f"--vtcm-mb {size}: {self.soc.label} has {self.soc.vtcm_mb} MB; expected 1 to {self.soc.vtcm_mb}"
            )
        return replace(self, vtcm_mb=int(size))

    def provider_options(self) -> dict[str, str]:
        """As the runtime takes them. The part goes by number: an unknown name would silently be another part."""
        options = {
            "soc_model": str(self.soc.id),
            "offload_graph_io_quantization": "0" if self.io_quant else "1",
            "htp_performance_mode": _RUNTIME_PROFILES[self.perf_profile],
        }
        if self.vtcm_mb is not None:
            options["vtcm_mb"] = str(self.vtcm_mb)
        if self.opt_level is not None:
            options["htp_graph_finalization_optimization_mode"] = str(self.opt_level)
        return options

    def shown(self) -> dict[str, str | int | bool | None]:
        """For reports."""
        return {
            "profiling_level": self.level,
            "perf_profile": self.perf_profile,
            "vtcm_mb": self.vtcm_mb,
            "opt_level": self.opt_level,
            "precision": self.precision,
            "io_quant": "on" if self.io_quant else "off",
            **({"data": self.data} if self.data is not None else {}),
        }


_RUNTIME_PROFILES = {  # the runtime's word for each; it has none for extreme performance
    "balanced": "balanced",
    "high_performance": "high_performance",
    "extreme_performance": "burst",
    "burst": "burst",
}
