"""Options of a session: ours, and the vendor's names for them, from keywords or from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from ...commands.vendor_flags import Flag, Takes, read_words
from ...core.errors import UsageError, printable
from ...machine.target import Target
from ...options import CompileOptions, Shapes, part_of
from ...program.program import OP_LEVEL
from .flags import COMPILE, CompileCall, call_of
from .spelling import SESSION

VENDOR_NAMES = {  # what they call it → what we call it
    "aic_num_cores": "cores",
    "num_cores": "cores",
    "num_activations": "activations",
    "aic_pmu_recipe": "pmu_recipe",
    "aic_pmu_events": "pmu_events",
    "batch_size": "batch",
    "num_activation": "activations",  # so the vendor's page has it in one place
    "num_iters": "num_iter",
}
# Their names that say nothing here: the device is simulated, its compiler decides by itself, and models come quantised.
_NO_EFFECT = (
    "dev_id device_id backend aic_preproc always_expand_onnx_functions dynamic_shape_input enable_debug io_crc_stride "
    "allocator_dealloac_delay node_precision_info_file external_quantization_file output_node_names model_inputs "
    "quantization_schema_activations quantization_schema_constants quantization_precision_bias num_histogram_bins "
    "percentile_calibration_value profiling_threads compile_threads dump_profile dump_embedding_tables "
    "load_embedding_tables oversubscription_name dump_custom_io_config_template_file mdp_dump_partition_config"
)
_OF_COMPILER = {name.lower().replace("-", "_"): (name, flag) for flag in COMPILE for name in flag.names}
_KEEPS_FLOATS = "-convert-to-fp16=false"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session compiles, and what it runs; fields mean what they mean in CompileOptions and RunOptions."""

    cores: int | None = None
    devices: int = 1
    batch: int | None = None
    shapes: Shapes | None = None
    precision: str | None = None
    kv_cache: str = "as-is"
    retained_state: bool = False
    stats_level: int = OP_LEVEL
    ddr_stats: bool = False
    pmu_recipe: str | None = None
    pmu_events: str | None = None
    stats_batchsize: int | None = None
    activations: int = 1  # these and what follows: of benchmarks
    set_size: int = 10
    num_iter: int = 40
    seed: int = 0


def our_names(given: Mapping[str, object]) -> dict[str, object]:
    """Options under our names; one that is given under two names is an error."""
    found: dict[str, object] = {}
    for name, value in given.items():
        if name in _NO_EFFECT.split():
            continue
        own = VENDOR_NAMES.get(name, name)
        if own in found:
            first = next(each for each in given if VENDOR_NAMES.get(each, each) == own)
            raise UsageError(f"option {printable(name)}: the same as {first}, which is given too; expected one of them")
        found[own] = _events(value) if own == "pmu_events" else value
    return found


def compiler_words(given: dict[str, object]) -> list[str]:
    """Take out the options that are flags of the compiler under the vendor's names, and return them as its words."""
    own = {each.name for each in fields(SessionOptions)}
    words: list[str] = []
    for name in [name for name in given if name not in own and name in _OF_COMPILER]:
        spelt, flag = _OF_COMPILER[name]
        words += [f"-{spelt}={value}" for value in _flag_values(flag, given.pop(name))]
    return words


def _flag_values(flag: Flag, value: object) -> list[str]:
    """What the flag is given: nothing, a value, or one for each symbol."""
    if value is None:
        return []
    if flag.takes is Takes.NOTHING:
        return [str(value).lower()]
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if isinstance(pairs, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        return [f"{name},{size}" for name, size in pairs]
    return [",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]


def session_call(
    model: Path, target: Target | str | None, choice: SessionOptions, words: list[str], output: Path | None
) -> CompileCall:
    """What a session compiles: its own options, and what the compiler's words add to them."""
    first = [f"-model={model}", "-aic-binary-dir=."]
    first += [] if choice.cores is None else [f"-aic-num-cores={choice.cores}"]
    bare, call = (call_of(read_words("Session", COMPILE, line)) for line in (first, [*first, *words]))
    names = [each.name for each in fields(CompileOptions)]
    added = {name: getattr(call.options, name) for name in names}
    added = {name: value for name, value in added.items() if value != getattr(bare.options, name)}
    options = replace(part_of(CompileOptions, choice), **added)
    options = replace(options, shapes={**(choice.shapes or {}), **(call.options.shapes or {})} or None)
    keeps = _KEEPS_FLOATS in words
    return replace(
        call, options=options, target=target or call.target, output=output, keeps_floats=keeps, spelling=SESSION
    )


def _events(value: object) -> object:
    """Events as text; a list has numbers, or text with hexadecimal ones."""
    if not isinstance(value, list | tuple):
        return value
    return ",".join(f"{event:X}" if isinstance(event, int) else str(event) for event in value)


def read_options(path: Path) -> dict[str, object]:
    """The options of a file with a line `name: value` each, or `name:` and lines `symbol: size` that are set in.

    That is the part of YAML that the vendor's files use.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({printable(str(error))}); expected lines `name: value`") from error
    found: dict[str, object] = {}
    inner: dict[str, object] | None = None  # of a name without a value, in lines that are set in
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split(" #")[0].strip()
        if not content or content.startswith(("#", "---")):
            continue
        name, colon, value = content.partition(":")
        is_inner = line[:1].isspace()
        if not colon or (is_inner and (inner is None or not value.strip())):
            raise UsageError(f"{path}: line {number}: {printable(content)!r}; expected `name: value`")
        if is_inner and inner is not None:
            inner[name.strip()] = _value(value.strip())
            continue
        inner = None if value.strip() else {}
        found[name.strip().lstrip("-").replace("-", "_")] = _value(value.strip()) if inner is None else inner
    return found


def _value(text: str) -> object:
    words = {"true": True, "false": False, "null": None, "~": None}
    if text.lower() in words:
        return words[text.lower()]
    bare = text.strip("\"'")
    return int(text) if text.isascii() and text.isdecimal() else bare
