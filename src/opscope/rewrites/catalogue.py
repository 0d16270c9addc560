"""Every rewrite that is known: our own, as data, and those of plug-ins."""

from __future__ import annotations

from importlib import import_module

from ..core.errors import UsageError, did_you_mean
from ..core.manifest import RewriteEntry
from ..core.plugins import load_place, manifests

OWN: tuple[RewriteEntry, ...] = (
    RewriteEntry(
        "merge-transposes",
        "two transposes, one after the other, as one, or as none where they undo each other",
        "onnx.transposes:merge_transposes",
    ),
    RewriteEntry(
        "split-packed-qkv",
        "one projection of query, key and value, or of any parts that are then cut from it, as one for each part",
        "onnx.attention:split_packed_projections",
    ),
    RewriteEntry(
        "merge-layouts",
        "a chain of reshapes, squeezes and transposes as one of each at most, of as few axes as there can be",
        "onnx.reshapes:merge_layouts",
    ),
    RewriteEntry(
        "merge-reshapes",
        "two reshapes, one after the other, as one, where extents are not known either",
        "onnx.reshapes:merge_reshapes",
    ),
    RewriteEntry(
        "drop-no-ops",
        "an op whose result is its input, such as a cast to the type that is there or a pad by nothing, gone",
        "onnx.reshapes:drop_no_ops",
    ),
    RewriteEntry(
        "name-activations",
        "GELU, SiLU, HardSwish, Mish and others that are spelled out, as the op that they are, or in fewer ops",
        "onnx.activations:name_activation",
    ),
    RewriteEntry(
        "spell-activations",
        "Gelu, HardSwish and Mish, each one op, in ops that every target has",
        "onnx.activations:spell_activation",
    ),
    RewriteEntry(
        "gelu-to-tanh",
        "GELU by erf, in its tanh form: up to 5e-4 off",
        "onnx.activations:gelu_to_tanh",
        needs="approximate",
    ),
    RewriteEntry(
        "gelu-to-sigmoid",
        "GELU by erf, in its sigmoid form: up to 0.021 off",
        "onnx.activations:gelu_to_sigmoid",
        needs="approximate",
    ),
    RewriteEntry(
        "erf-to-tanh",
        "Erf by Tanh of a cubic: up to 4e-4 off",
        "onnx.activations:erf_to_tanh",
        needs="approximate",
    ),
)


def known(format_: str) -> tuple[RewriteEntry, ...]:
    """The rewrites of models of a format, in the order in which they are tried where nothing speaks for another."""
    entries = (*OWN, *(entry for manifest in manifests() for entry in manifest.rewrites))
    return tuple(entry for entry in entries if entry.format == format_)


def named(name: str, format_: str) -> RewriteEntry:
    """The rewrite of that name."""
    entries = {entry.name: entry for entry in known(format_)}
    if name not in entries:
        raise UsageError(f"rewrite {name!r}: is not known; expected another{did_you_mean(name, entries)}")
    return entries[name]


def rule_of(entry: RewriteEntry) -> object:
    """The rule of a rewrite, imported when it is first asked for."""
    if entry in OWN:
        module, _, attribute = entry.place.partition(":")
        return getattr(import_module(f".{module}", __package__), attribute)
    return next(load_place(manifest, entry.place) for manifest in manifests() if entry in manifest.rewrites)
