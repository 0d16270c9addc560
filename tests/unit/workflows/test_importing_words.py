"""Words that `import_profile` takes, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import opscope
from opscope.core.errors import UsageError

SAMPLE = Path(__file__).parents[2] / "samples" / "tensorrt_profile.json"


@pytest.mark.parametrize(
    ("name", "words"), [("provenance", "estimated, simulated, calibrated"), ("align", "clock, marker, activity")]
)
def test_a_word_that_is_not_known_is_refused_with_those_that_are(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"{name} 'bogus': not known; expected one of {words}")):
        opscope.import_profile([SAMPLE], **{name: "bogus"})  # type: ignore[arg-type]
