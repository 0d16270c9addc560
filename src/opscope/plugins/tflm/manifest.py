"""TensorFlow Lite Micro: the arena as its allocator plans it, what it runs, its interpreter and its logs."""

from __future__ import annotations

from ...core.manifest import BackendEntry, Format, InterpreterEntry, Manifest, Option, Signature

_TEXT = rb"[^\x00]{4096}|[^\x00]*\Z"  # no zero byte among the first: not a firmware image that holds the words
BACKEND = BackendEntry(
    name="tflm",
    title="TensorFlow Lite Micro's own interpreter: outputs and arena, no times",
    place=".backend:TflmBackend",
    models=("tflite",),
    can=frozenset(),
    options=(Option("seed", "seed of random inputs (default 1)", default=1, is_number=True, metavar="N"),),
)
MANIFEST = Manifest(
    name="tflm",
    title="TensorFlow Lite Micro",
    package=__package__,
    order=56,
    backends=(BACKEND,),
    formats=(
        Format(
            "tflm-log",
            "console log of TensorFlow Lite Micro: MicroProfiler, RecordingMicroAllocator, benchmark",
            (
                Signature(_TEXT, finds=(rb"\w took \d+ ticks \(\d+ ms\)",)),
                Signature(_TEXT, contains=(b'"Event","Tag","Ticks"',)),
                Signature(_TEXT, contains=(b'"Unique Tag","Total ticks across',)),
                Signature(_TEXT, contains=(b"[RecordingMicroAllocator] ",)),
            ),
            ".logs:MicroLog",
        ),
    ),
    interpreters=(InterpreterEntry("tflm", ".interpreter:INTERPRETER"),),
)
