"""The list of networks of the zoo, and the way from a recipe to a model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..core.errors import UsageError, did_you_mean
from .blueprint import Blueprint
from .network import Network, Option, Progress, Settings
from .networks import (
    bert,
    cifar_resnet,
    conv_small,
    deeplab,
    fc,
    inception,
    inverted_residual,
    kws,
    llm_decoder,
    plain,
    resnet,
    retinanet,
    sample_resnet,
    ssd,
    swin,
    vit,
    yolo,
    yolov7,
)

NETWORKS: tuple[Network, ...] = (  # add yours here: order is listing order
    *resnet.NETWORKS,
    *inverted_residual.NETWORKS,
    *inception.NETWORKS,
    *plain.CLASSIFIERS,
    *vit.NETWORKS,
    *swin.NETWORKS,
    cifar_resnet.NETWORK,
    *ssd.NETWORKS,
    retinanet.NETWORK,
    *plain.DETECTORS,
    *yolov7.NETWORKS,
    *yolo.NETWORKS,
    deeplab.NETWORK,
    plain.UNET,
    bert.NETWORK,
    llm_decoder.NETWORK,
    kws.NETWORK,
    plain.AUTOENCODER,
    sample_resnet.NETWORK,
    fc.NETWORK,
    conv_small.NETWORK,
)

PRECISIONS: Mapping[str, tuple[str, ...]] = {  # by format; the first one is the default
    "onnx": ("f32", "f16", "int8"),
    "tflite": ("f32", "int8"),
    "tosa": ("int8",),
}

_EXTERNAL = Option(
    "external_above_mb",
    1536,
    "ONNX: more weights than this many MB go to a data file beside the model",
    smallest=0,
    largest=1900,
)
EVERYWHERE = (_EXTERNAL,)  # options that every network takes
_BATCH = Option("batch", 1, "inputs at once")
_SEQUENCE = Option("sequence", None, "tokens at once")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The model to generate.

    Args:
        name: a name that `names()` lists.
        batch: inputs at once.
        sequence: tokens at once, for networks that read tokens; None for the network's own default.
        precision: f32, f16 or int8; None for the first that the format has.
        format: onnx, tflite or tosa.
        weights: False omits the weights' data from an ONNX model, which still declares where they would be.
        options: settings of the network itself, as `names()` lists them.
    """

    name: str
    batch: int = 1
    sequence: int | None = None
    precision: str | None = "f32"
    format: str = "onnx"
    weights: bool = True
    options: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListedNetwork:
    """A line of the zoo's listing."""

    name: str
    task: str
    description: str
    formats: tuple[str, ...]
    precisions: Mapping[str, tuple[str, ...]]  # by format
    options: tuple[Option, ...]
    takes_sequence: bool


def names() -> list[ListedNetwork]:
    """Return every network that `make` knows."""
    return [
        ListedNetwork(
            network.name,
            network.task,
            network.description,
            network.formats,
            {format_: PRECISIONS[format_] for format_ in network.formats},
            (*network.options, *EVERYWHERE),
            network.takes_sequence,
        )
        for network in NETWORKS
    ]


def make(recipe: Recipe, path: Path, *, progress: Progress | None = None) -> None:
    """Write the model that `recipe` describes to `path`; equal recipes give equal bytes.

    Args:
        recipe: the model to generate.
        path: the model file; large ONNX models also write `<path>.data` next to it.
        progress: called with the bytes of weights written so far and in total.
    """
    network = _find(recipe.name)
    if recipe.precision is None:
        recipe = replace(recipe, precision=PRECISIONS.get(recipe.format, ("f32",))[0])
    _check_form(network, recipe)
    settings = _settings(network, recipe)
    plan = Blueprint(network.name, half=recipe.precision == "f16")
    network.build(plan, settings)
    _WRITERS[recipe.format](plan, path, recipe, settings, progress)


def _find(name: str) -> Network:
    for network in NETWORKS:
        if network.name == name:
            return network
    near = did_you_mean(name, (network.name for network in NETWORKS))
    raise UsageError(f"zoo: no network is called {name!r}; {near}expected a name that `opscope zoo` lists")


def _check_form(network: Network, recipe: Recipe) -> None:
    """Refuse a combination of format, precision and weights that does not exist."""
    if recipe.format not in network.formats:
        known = ", ".join(network.formats)
        raise UsageError(f"{network.name}: cannot be made as {recipe.format!r}; expected one of {known}")
    known_precisions = PRECISIONS[recipe.format]
    if recipe.precision not in known_precisions:
        known = ", ".join(known_precisions)
        raise UsageError(
            f"{network.name}: precision {recipe.precision!r} does not exist in {recipe.format}; expected one of {known}"
        )
    if recipe.format != "onnx" and not recipe.weights:
        problem = f"a {recipe.format} file always holds its weights; expected format onnx without them"
        raise UsageError(f"{network.name}: {problem}")


def _settings(network: Network, recipe: Recipe) -> Settings:
    """Return the recipe's options, checked, with defaults for those not given."""
    known = {option.name: option for option in network.options}
    if recipe.format == "onnx":
        known[_EXTERNAL.name] = _EXTERNAL
    options: dict[str, int | str | None] = {name: option.default for name, option in known.items()}
    for name, given in recipe.options.items():
        if name not in known:
            raise UsageError(f"{network.name}: no option is called {name!r}; expected one of {', '.join(known)}")
        options[name] = known[name].parse(given, where=network.name)
    _BATCH.parse(recipe.batch, where=network.name)
    if recipe.sequence is not None:
        if not network.takes_sequence:
            raise UsageError(f"{network.name}: sequence is {recipe.sequence}; expected none, it reads no tokens")
        _SEQUENCE.parse(recipe.sequence, where=network.name)
    return Settings(network.name, recipe.batch, recipe.sequence, options)


def _write_onnx(plan: Blueprint, path: Path, recipe: Recipe, settings: Settings, progress: Progress | None) -> None:
    from . import write_onnx

    limit = settings.number(_EXTERNAL.name) << 20
    write_onnx.write(
        plan,
        path,
        precision=recipe.precision or "f32",
        weights=recipe.weights,
        external_above=limit,
        progress=progress,
    )


def _write_tflite(plan: Blueprint, path: Path, recipe: Recipe, settings: Settings, progress: Progress | None) -> None:
    from . import write_tflite

    del settings
    write_tflite.write(plan, path, precision=recipe.precision or "f32", progress=progress)


def _write_tosa(plan: Blueprint, path: Path, recipe: Recipe, settings: Settings, progress: Progress | None) -> None:
    from . import write_tosa

    del recipe, settings
    write_tosa.write(plan, path, progress=progress)


_WRITERS: Mapping[str, Callable[[Blueprint, Path, Recipe, Settings, Progress | None], None]] = {
    "onnx": _write_onnx,
    "tflite": _write_tflite,
    "tosa": _write_tosa,
}
