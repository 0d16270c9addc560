"""`opscope mcp` with a real client: tools, confinement, limits, a token."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import pytest

from opscope.agents.verbs import MOST_CHARACTERS, short
from opscope.cli import main

pytest.importorskip("mcp")

from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[3]
TOKEN = "a-token-of-the-test"  # noqa: S105


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("served")
    path = place / "kws.tflite"
    assert main(["zoo", "kws-cnn", "--format", "tflite", "--precision", "int8", "-o", str(path)]) == 0
    (place.parent / "outside.tflite").write_bytes(path.read_bytes())
    (place / "link.tflite").symlink_to(place.parent / "outside.tflite")
    return place


def calls(folder: Path, *wanted: tuple[str, dict[str, Any]], timeout: str = "300") -> list[tuple[bool, Any]]:
    """What a client is answered: whether it is an error, and the answer."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "opscope", "mcp", "--root", str(folder), "--timeout", timeout],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )

    async def ask() -> list[tuple[bool, Any]]:
        async with Client(server) as client:
            found = [await client.call_tool(name, arguments) for name, arguments in wanted]
        return [(bool(each.is_error), each.structured_content or each.content[0].text) for each in found]

    return asyncio.run(ask())


def test_an_agent_finds_a_chip_profiles_and_asks_why(folder: Path) -> None:
    model = {"model": "kws.tflite", "target": "cortex-m4"}
    answers = calls(
        folder,
        ("targets", {"search": "cortex-m4"}),
        ("report", {**model, "budget": "latency=1us"}),
        ("profile", {"model": "kws.tflite", "run": "kws.run", "target": "aic100-std", "options": {"cores": 2}}),
        ("analyze", {"run": "kws.run"}),
        ("compare", {"base": "kws.run", "new": "kws.run", "fail_on": ["latency>1%"]}),
    )
    assert [is_error for is_error, _ in answers] == [False] * 5, answers
    targets, report, profile, analysis, comparison = (answer for _, answer in answers)
    assert "cortex-m4" in json.dumps(targets)
    assert report["schema"] == "opscope.report/1"
    assert report["passed"] is False
    assert Path(unquote(urlsplit(profile["page"]).path)).is_file()
    assert analysis["page"] == profile["page"] == comparison["pages"][1]
    assert (folder / "kws.run" / "run.json").exists()
    assert analysis["schema"] == "opscope.findings/1"
    assert comparison["passed"] is True
    assert all(len(json.dumps(answer)) <= MOST_CHARACTERS + 200 for _, answer in answers)


def test_an_agent_asks_what_if_and_asks_a_store(folder: Path) -> None:
    pytest.importorskip("duckdb")
    run, store = str(folder / "small.run"), str(folder / "fleet.store")
    options = ["--target", "aic100-std", "--cores", "2", "-o", run]
    assert main(["profile", str(folder / "kws.tflite"), *options]) == 0
    assert main(["store", "add", run, "--store", store]) == 0
    whatif, rows, outside, writes = calls(
        folder,
        ("analyze", {"run": "small.run", "what_if": ["op:/relu/Relu_output_0=0"]}),
        ("query_store", {"store": "fleet.store", "sql": "SELECT model, target FROM cells"}),
        ("query_store", {"store": "fleet.store", "sql": "SELECT * FROM read_text('/etc/passwd')"}),
        ("query_store", {"store": "fleet.store", "sql": "--help"}),
    )
    assert not whatif[0], whatif
    latency = next(metric for metric in whatif[1]["metrics"] if metric["name"] == "latency")
    assert latency["new"] < latency["base"]
    assert not rows[0], rows
    assert "aic100-std" in json.dumps(rows[1])
    assert outside[0]
    assert writes[0]


REFUSED = [
    ("report", {"model": "../outside.tflite", "target": "cortex-m4"}, "outside of the folder"),
    ("report", {"model": "link.tflite", "target": "cortex-m4"}, "outside of the folder"),
    ("report", {"model": "kws.tflite", "target": "/etc/passwd"}, "outside of the folder"),
    ("profile", {"model": "kws.tflite", "run": "../x.run", "target": "cortex-m4"}, "outside of the folder"),
    ("profile", {"model": "kws.tflite", "run": "r", "options": {"tool": "sh"}}, "not for agents"),
    ("profile", {"model": "kws.tflite", "run": "r", "options": {"data": "../x.npz"}}, "outside of the folder"),
    ("report", {"model": "none.tflite", "target": "cortex-m4"}, "is not there"),
    ("report", {"model": "kws.tflite", "target": "no-such-chip"}, "no-such-chip"),
]


def test_what_is_not_allowed_or_wrong_is_one_line(folder: Path) -> None:
    answers = calls(folder, *((tool, arguments) for tool, arguments, _ in REFUSED))
    for (is_error, answer), (*_, words) in zip(answers, REFUSED, strict=True):
        assert is_error
        assert words in answer
        assert "Traceback" not in answer


def test_a_call_that_takes_too_long_ends(folder: Path) -> None:
    ((is_error, answer),) = calls(folder, ("targets", {}), timeout="0.01")
    assert is_error
    assert "took longer than" in answer


def test_long_answers_are_cut_and_say_so() -> None:
    answer = {"schema": "x", "rows": [{"name": f"op {number}", "time": number} for number in range(10_000)]}
    cut = short(answer)
    assert len(json.dumps(cut)) <= MOST_CHARACTERS
    assert cut["rows"][-1].endswith("more")  # type: ignore[index]
    wide = {f"key {number}": {"a": "b" * 300} for number in range(1000)}
    assert len(json.dumps(short(wide))) <= MOST_CHARACTERS


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "opscope", "mcp", "--root", str(folder), "--http", str(port)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPSCOPE_MCP_TOKEN": TOKEN}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        for _ in range(100):
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield address
        process.terminate()


def test_over_http_the_token_is_needed(served: str) -> None:
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    first["params"] |= {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}  # type: ignore[operator]
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def post(token: str) -> int:
        request = Request(served, json.dumps(first).encode(), {**headers, "Authorization": f"Bearer {token}"})  # noqa: S310
        with urlopen(request, timeout=30) as answer:  # noqa: S310
            return int(answer.status)

    with pytest.raises(HTTPError, match="401"):
        post("another")
    assert post(TOKEN) == 200
