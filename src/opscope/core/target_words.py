"""What a vendor's tools call what is told of a run on a target, as its target file says it; programs and runs carry it.

They are for files that people and scripts know by these words, and mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_WORD = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class TargetWords:
    """The table `[words]` of a target file; a file that extends another has its words."""

    memories: Mapping[str, str] = field(default_factory=dict)  # name in the target file → in summaries and timelines
    opstats_tag: str = "opstats"  # in names of files that `opscope opstats` writes, for scripts that look for it
    trace_category: str = "op"  # of spans, where the plug-in that made the run has no `trace_words`

    def __post_init__(self) -> None:
        for name in ("opstats_tag", "trace_category"):  # one is a part of file names: it may not lead elsewhere
            word = getattr(self, name)
            if not _WORD.fullmatch(word):
                raise ValueError(f"{name} is {word[:60]!r}; expected 1 to 40 letters, digits, - and _")

    def memory(self, name: str) -> str:
        return self.memories.get(name, name)


OUR_WORDS = TargetWords()
