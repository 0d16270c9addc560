"""What an open dimension of an input may count, and the size that networks are usually run with."""

from __future__ import annotations

from enum import Enum


class Purpose(Enum):
    """What a dimension counts, with the size suggested for it."""

    BATCH = ("batch", 1)
    HEIGHT = ("height", 224)  # a multiple of 32, the stride of most backbones
    WIDTH = ("width", 224)
    LINE_HEIGHT = ("height of a line of text", 48)
    LINE_WIDTH = ("width of a line of text", 320)
    VOXELS = ("voxels", 64)
    SAMPLES = ("samples", 16_000)  # one second of speech
    CHUNK = ("samples of one call", 512)  # of networks that keep their state from call to call
    STEPS = ("steps", 100)
    TOKENS = ("tokens", 128)
    PAST = ("tokens of earlier calls", 0)  # the first call of a language model
    CHANNELS = ("channels", 3)
    UNKNOWN = ("unknown", 16)

    def __init__(self, label: str, size: int) -> None:
        self.label = label
        self.size = size
