"""Options and fixtures that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A slow machine is no defect: nothing here is judged by the clock. The same examples every time keep CI repeatable, so
# that many of them find no more than a few do; `make test-slow` draws others, and more.
settings.register_profile(
    "steady", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("steady"), derandomize=False, max_examples=300)
settings.load_profile("steady")

# Many tests start a Python of their own. Where bytecode is not kept, each compiles the whole package before it works.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What `make toolchains` made, where nothing else is named.
for record in (Path(__file__).parents[1] / ".cache/opscope/environments").glob("*/environment.json"):
    os.environ.setdefault(f"OPSCOPE_{record.parent.name.upper().replace('-', '_')}", str(record.parent))

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden/**/expected.* from this run")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("case/expected.txt", text)` compares with the file, or rewrites it under --update-golden."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8")

    return check
