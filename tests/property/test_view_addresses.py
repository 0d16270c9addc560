"""Whatever is asked for, the server answers only for addresses that it gave out itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.server.catalogue import Catalogue
from opscope.server.site import Site

TOKEN = "t" * 32
PARTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "run",
        "spans",
        "perfetto",
        "compare",
        "0.bin",
        "trace.json",
        "view.css",
        "%2e%2e",
        "index.html",
        "run.json",
        "secret.txt",
        "etc",
        "passwd",
        "ID",
        TOKEN,
    ]
)
PLACES = st.lists(PARTS | st.text(max_size=8), max_size=6).map("/".join)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, str]:
    folder = tmp_path_factory.mktemp("view")
    run = folder / "runs" / "one.run"
    run.mkdir(parents=True)
    latency = {"value_ns": None, "low_ns": None, "high_ns": None, "provenance": "simulated"}
    info = {
        "schema": "opscope.run/1",
        "command": [],
        "created": "",
        "model": "",
        "sha256": None,
        "target": "",
        "provenance": "simulated",
        "network": "",
        "devices": 1,
        "cores": 1,
        "batch": 1,
        "clocks_hz": {},
        "inferences": [],
    }
    (run / "run.json").write_text(json.dumps(info), encoding="utf-8")
    (run / "summary.json").write_text(json.dumps({"schema": "opscope.summary/1", "latency": latency}), encoding="utf-8")
    (folder / "secret.txt").write_text("secret", encoding="utf-8")
    (folder / "ui").mkdir()
    (folder / "ui" / "index.html").write_text("ui", encoding="utf-8")
    (folder / "scratch").mkdir()
    catalogue = Catalogue(folder / "runs")
    made = Site(catalogue, token=TOKEN, origin="http://127.0.0.1:1", scratch=folder / "scratch", ui=folder / "ui")
    return made, catalogue.listing().entries[0].id


@given(PLACES, st.text(max_size=20))
def test_only_known_addresses_are_answered(site: tuple[Site, str], place: str, query: str) -> None:
    made, run_id = site
    place = place.replace("ID", run_id)
    answer = made.answer(f"/{TOKEN}/{place}?{query}")
    with answer.stream() as body:
        assert b"secret" not in body.read()
    known = {
        "",
        "view.css",
        "perfetto.js",
        "perfetto/",
        "perfetto/index.html",
        "compare",
        f"run/{run_id}/",
        f"run/{run_id}/perfetto",
        f"run/{run_id}/trace.json",
    }
    path = place.partition("?")[0]
    is_piece = path.startswith(f"run/{run_id}/spans/")
    assert answer.status == 404 or path in known or is_piece


@given(st.text(max_size=60))
def test_nothing_is_answered_without_the_token(site: tuple[Site, str], target: str) -> None:
    made, _ = site
    if not target.removeprefix("/").startswith(f"{TOKEN}/"):
        assert made.answer(target).status == 404


@given(st.text(max_size=40))
def test_no_other_token_opens(site: tuple[Site, str], token: str) -> None:
    made, _ = site
    if token.removeprefix("/").partition("/")[0] != TOKEN:
        assert made.answer(f"/{token}/").status == 404
