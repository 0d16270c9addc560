"""TensorFlow Lite Micro: the arena as its allocator plans it, what it runs, its interpreter and its logs."""

from __future__ import annotations

from ...core.manifest import InterpreterEntry, Manifest

MANIFEST = Manifest(
    name="tflm",
    title="TensorFlow Lite Micro",
    package=__package__,
    order=56,
    interpreters=(InterpreterEntry("tflm", ".interpreter:INTERPRETER"),),
)
