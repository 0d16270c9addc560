"""The backends that need a target and no runtime of a vendor: the simulated device, and the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from .. import __version__
from ..backends.registry import BackendState
from ..core.errors import UsageError
from ..core.manifest import Option, Value
from ..machine import catalogue as targets
from ..machine.target import Target
from ..options import ProfileOptions, Shapes, options_of

SIMULATE, ESTIMATE = "sim", "estimate"


def _rows(*names: str) -> tuple[Option, ...]:
    """Some options of a profile, or all of them, as every backend lists its own."""
    usual = ProfileOptions()
    return tuple(
        Option(
            name.replace("_", "-"),
            option.help,
            choices=option.choices,
            is_flag=getattr(usual, name) is False,
            is_number=option.least is not None,
            metavar=option.metavar or "V",
            bare=option.bare,
        )
        for name, option in options_of(ProfileOptions).items()
        if not names or name in names
    )


OWN: dict[str, tuple[Option, ...]] = {
    SIMULATE: _rows(),
    ESTIMATE: _rows("cores", "devices", "batch", "shapes_from_run", "precision", "kv_cache"),
}


def own_states() -> tuple[BackendState, ...]:
    """The backends that need nothing but the package itself."""
    known = [targets.load(name) for name in targets.catalogue()]
    simulated = sum(target.is_compilable for target in known)
    return (
        BackendState(SIMULATE, "the simulated device", True, __version__, f"for {simulated} of {len(known)} targets"),
        BackendState(ESTIMATE, "estimate by formulas", True, __version__, f"for all {len(known)} targets"),
    )


def profile_options(options: ProfileOptions | Mapping[str, Value], shapes: Shapes | None) -> ProfileOptions:
    """Options by name, as the command line has them, where they are not made yet; what is None keeps its default."""
    if isinstance(options, ProfileOptions):
        return replace(options, shapes=shapes) if shapes else options
    known = {option.name for option in OWN[SIMULATE]}
    for name in options:
        if name not in known:
            raise UsageError(f"option {name!r}: not known here; expected one of {', '.join(sorted(known))}")
    given = {name.replace("-", "_"): value for name, value in options.items() if value is not None}
    return ProfileOptions(**given, shapes=dict(shapes or {}))  # type: ignore[arg-type]


def load_target(target: str | Path | Target | None) -> tuple[Target, str]:
    """The target, and the file it came from where it is not of the catalogue."""
    if target is None:
        wanted = "--target NAME (see `opscope targets`), or --backend of a runtime (see `opscope doctor`)"
        raise UsageError(f"profile: no target; expected {wanted}")
    if isinstance(target, Target):
        return target, ""
    place = Path(target)
    return targets.load(str(target)), str(place.resolve()) if place.suffix == ".toml" else ""
