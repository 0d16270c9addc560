"""ESP-DL on ESP32 chips: what its profiler prints."""

from __future__ import annotations

from ...core.manifest import Format, Manifest, Signature

_TEXT = rb"[^\x00]{4096}|[^\x00]*\Z"  # no zero byte among the first: not a firmware image that holds the words

MANIFEST = Manifest(
    name="espdl",
    title="ESP-DL",
    package=__package__,
    order=57,
    formats=(
        Format(
            "espdl-log",
            "console log of ESP-DL: profile(), profile_module(), profile_memory()",
            (
                Signature(_TEXT, finds=(rb"\|\s+module summary\s+\|", rb"\|\s*name\s*\|\s*type\s*\|\s*latency\s*\|")),
                Signature(_TEXT, finds=(rb"\|\s+memory summary\s+\|", rb"\|\s*internal RAM\s*\|\s*PSRAM\s*\|")),
            ),
            ".profile:ModelLog",
        ),
    ),
)
