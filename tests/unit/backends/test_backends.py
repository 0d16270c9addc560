from __future__ import annotations

import pytest

from opscope.backends import registry as backends
from opscope.core.errors import UsageError


def test_an_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"^backend 'hpt': not known; did you mean htp\? known: ort, "):
        backends.load("hpt")


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opscope.plugins.qnn.backend.find_spec", lambda _: None)
    monkeypatch.setattr("opscope.plugins.qnn.backend._platform_problem", lambda: "")
    state = backends.load("htp").state()
    assert (state.works, state.install) == (False, "pip install 'opscope[htp]'")


@pytest.mark.parametrize(
    ("system", "machine", "libc", "words"),
    [
        ("darwin", "arm64", ("", ""), "darwin on arm64: the package exists for x86-64 Linux and for Windows"),
        ("linux", "x86_64", ("glibc", "2.31"), "glibc 2.31: the package needs glibc 2.35 or newer"),
        ("linux", "x86_64", ("", ""), "an unknown C library : the package needs glibc 2.35 or newer"),
    ],
)
def test_a_wrong_platform_is_named(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, libc: tuple[str, str], words: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("platform.libc_ver", lambda: libc)
    state = backends.load("htp").state()
    assert (state.works, state.detail) == (False, words)
