"""`opscope view` over real connections: what it shows, and everything that it must not give away."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import numpy as np
import pytest

from opscope import api
from opscope.cli import main
from opscope.core.provenance import Provenance
from opscope.program.program_file import decode_program
from opscope.recording.recording import empty_trace
from opscope.views.page.packed_columns import decode
from opscope.views.timeline.chrome_trace import ChromeTrace
from opscope.workflows import viewing
from opscope.workflows.program_recording import head_of
from opscope.workflows.record import path_of
from support.decode.opstats_folder import keyword_spotter
from support.recording.run_build import write_run
from support.viewers.serving import serving

SECRET = b"the key under the mat"
HOSTILE = "<script>alert(1)</script>\u202e\x07&\"'" + "x" * 100_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run without page and timeline, as other tools leave it; tests that change it take a copy."""
    folder = keyword_spotter(tmp_path_factory.mktemp("kws"))
    api.opstats(
        folder / "programqpc.bin",
        folder / "stats",
        folder / "out",
        run=folder / "kws.run",
        created="2026-01-02T03:04:05+00:00",
    )
    for name in ("report.html", "trace.json"):
        (folder / "kws.run" / name).unlink()
    return folder / "kws.run"


@pytest.fixture
def runs(run: Path, tmp_path: Path) -> Path:
    """Two runs at different depths, with a secret beside the folder."""
    (tmp_path / "secret.txt").write_bytes(SECRET)
    folder = tmp_path / "runs"
    shutil.copytree(run, folder / "first.run")
    shutil.copytree(run, folder / "nightly" / "second.run")
    (folder / "nightly" / "notes.txt").write_bytes(SECRET)
    return folder


def ask(
    address: str, target: str = "", *, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body for an address; a target that starts with a slash replaces its path."""
    parts = urlsplit(address)
    path = target if target.startswith("/") else parts.path + target
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=headers is not None and "Host" in headers)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def raw(address: str, request: bytes) -> bytes:
    """What comes back for bytes that no client library would send."""
    parts = urlsplit(address)
    with socket.create_connection(("127.0.0.1", parts.port or 0), timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while piece := connection.recv(1 << 16):
            found += piece
        return found


def ids(address: str) -> list[str]:
    _, _, body = ask(address)
    return list(dict.fromkeys(re.findall(r'href="run/([0-9a-f]{16})/"', body.decode())))


def test_the_list_has_every_run_with_model_target_latency_and_how_it_was_obtained(runs: Path) -> None:
    with serving(runs) as address:
        status, _, body = ask(address)
        text = body.decode()
    assert status == 200
    for words in (
        "first.run",
        "nightly/second.run",
        "aic100-std",
        "simulated",
        "2026-01-02 03:04 UTC",
        "Open in Perfetto",
    ):
        assert words in text
    latency = json.loads((runs / "first.run" / "summary.json").read_bytes())["latency"]["value_ns"]
    assert f"{latency / 1e3:.3g} us" in text


def test_what_a_file_does_not_tell_is_a_dash_in_the_list(tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "samples" / "torq_runtime.csv"
    api.import_profile([sample], tmp_path / "torq.run")
    with serving(tmp_path) as address:
        text = ask(address)[2].decode()
    assert "batch —" in text
    assert "None" not in text


def test_a_single_run_opens_with_its_own_page_first(run: Path) -> None:
    with serving(run) as address:
        assert "/run/" in address
        start = address.partition("run/")[0]
        assert b"kws.run" in ask(start)[2]


def test_a_new_run_shows_up_without_starting_again(runs: Path) -> None:
    with serving(runs) as address:
        assert len(ids(address)) == 2
        shutil.copytree(runs / "first.run", runs / "third.run")
        found = ids(address)
        assert len(found) == 3
        shutil.rmtree(runs / "third.run")
        assert len(ids(address)) == 2
        assert sorted(ask(address, f"run/{one}/trace.json")[0] for one in found) == [200, 200, 404]


@pytest.mark.parametrize("column", ["name", "model", "target", "provenance", "latency", "created"])
def test_the_list_sorts_by_every_column_both_ways(runs: Path, column: str) -> None:
    with serving(runs) as address:
        for order, aria in ((column, "ascending"), (f"-{column}", "descending")):
            status, _, body = ask(address, f"?sort={order}")
            assert status == 200
            assert body.count(f'aria-sort="{aria}"'.encode()) == 1


def test_without_the_token_there_is_nothing(runs: Path) -> None:
    with serving(runs) as address:
        token = urlsplit(address).path.strip("/")
        known = ids(address)[0]
        assert len(token) >= 32
        for path in (
            "/",
            "/view.css",
            "/runs",
            f"/run/{known}/",
            f"/{token}",
            f"/{token[:-1]}/",
            f"/{token}x/",
            f"/{token.swapcase()}/",
            f"/x/{token}/",
            f"/?{token}",
            "/%00/",
            "/../",
        ):
            status, _, body = ask(address, path)
            assert status == 404, path
            assert body == b"Not Found\n"


def test_every_server_has_a_token_of_its_own(runs: Path) -> None:
    with serving(runs) as one, serving(runs) as other:
        assert urlsplit(one).path != urlsplit(other).path


OTHER_HOSTS = (
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "localhost:1",
    "127.0.0.1:{port}@x",
    "",
    "[::1]:{port}",
    "127.0.0.1.evil.example:{port}",
)


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_a_request_under_another_name_is_refused(runs: Path, host: str) -> None:
    """A page of another site whose name leads to this machine (DNS rebinding) sends that name."""
    with serving(runs) as address:
        port = urlsplit(address).port
        assert ask(address, headers={"Host": host.format(port=port)})[0] == 403
        assert ask(address, headers={"Host": f"localhost:{port}"})[0] == 200


def test_no_host_at_all_is_refused(runs: Path) -> None:
    with serving(runs) as address:
        assert raw(address, f"GET {urlsplit(address).path} HTTP/1.0\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")


def test_the_server_listens_on_loopback_alone(runs: Path) -> None:
    with serving(runs) as address:
        parts = urlsplit(address)
        assert parts.hostname == "127.0.0.1"
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", parts.port or 0), timeout=5):
            pass


WAYS_OUT = (
    "../secret.txt",
    "..%2fsecret.txt",
    "%2e%2e/secret.txt",
    "%2e%2e%2fsecret.txt",
    "%252e%252e%252fsecret.txt",
    "....//secret.txt",
    "..\\secret.txt",
    "..%5csecret.txt",
    "run/../secret.txt",
    "run/..%2f..%2fsecret.txt",
    "run/{id}/../../../secret.txt",
    "run/{id}/%2e%2e/%2e%2e/secret.txt",
    "run/{id}/run.json",
    "run/{id}/spans.parquet",
    "run/{id}/programqpc.bin",
    "run/{id}/spans/../run.json",
    "run/{id}/spans/0.bin/../../run.json",
    "run/{id}//trace.json",
    "run/{id}/trace.json/",
    "run/{id}/trace.json%00.png",
    "run/{id}/spans/-1.bin",
    "run/{id}/spans/1e3.bin",
    "run/{id}/spans/٣.bin",
    "run/{id}/spans/9999999999.bin",
    "run/{id}/./",
    "run/nightly/notes.txt",
    "nightly/notes.txt",
    "run/first.run/",
    "perfetto/../view.css",
    "perfetto/../../secret.txt",
    "perfetto//etc/passwd",
    "/etc/passwd",
    "//etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1/",
    "templates/list.html.j2",
    "list.html.j2",
    "site.py",
    "%c0%ae%c0%ae/secret.txt",
    "..;/secret.txt",
    "run/{id}/../{id}/",
    "run/{ID}/",
    "run/0000000000000000/",
)


def test_no_way_leads_out_of_the_runs(runs: Path, tmp_path: Path) -> None:
    ui = tmp_path / "ui"
    ui.mkdir()
    (ui / "index.html").write_text("ui", encoding="utf-8")
    (ui / "link.html").symlink_to(tmp_path / "secret.txt")
    with serving(runs, ui=ui) as address:
        base, known = urlsplit(address).path, ids(address)[0]
        for way in (*WAYS_OUT, "perfetto/link.html"):
            path = base + way.replace("{id}", known).replace("{ID}", known.upper().replace("0", "A"))
            host = urlsplit(address).netloc
            request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
            found = raw(address, request)
            assert found.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ")), way
            assert SECRET not in found
            assert b"root:" not in found
        assert ask(address, "perfetto/")[2] == b"ui"


def test_links_are_neither_listed_nor_followed(runs: Path, run: Path, tmp_path: Path) -> None:
    (runs / "linked.run").symlink_to(run)
    for number, name in enumerate(("report.html", "trace.json", "spans.parquet", "run.json")):
        copy = runs / f"{number}.run"
        shutil.copytree(run, copy)
        (copy / name).unlink(missing_ok=True)
        (copy / name).symlink_to(tmp_path / "secret.txt")
    with serving(runs) as address:
        text = ask(address)[2].decode()
        assert "linked.run" not in text
        assert "3.run" not in text
        for one in ids(address):
            for place in ("", "trace.json", "perfetto", "spans/0.bin"):
                assert SECRET not in ask(address, f"run/{one}/{place}")[2]
        refused = [ask(address, f"run/{one}/trace.json") for one in ids(address)]
        (problem,) = (body.decode() for status, _, body in refused if status == 422)
        assert "spans.parquet: is no plain file; expected the file of a run, not a link" in problem


def test_a_folder_that_becomes_a_link_is_gone(runs: Path, run: Path) -> None:
    with serving(runs) as address:
        before = ids(address)
        shutil.rmtree(runs / "first.run")
        (runs / "first.run").symlink_to(run)
        assert sorted(ask(address, f"run/{one}/trace.json")[0] for one in before) == [200, 404]


def test_every_answer_says_what_a_browser_may_do_with_it(runs: Path) -> None:
    (runs / "first.run" / "report.html").write_text("<p>mine</p>", encoding="utf-8")
    with serving(runs) as address:
        places = ["", "view.css", "perfetto.js", "nothing"]
        places += [f"run/{one}/{place}" for one in ids(address) for place in ("trace.json", "perfetto")]
        for place in places:
            _, headers, _ = ask(address, place)
            assert "default-src 'none'" in headers["content-security-policy"], place
            assert "frame-ancestors 'none'" in headers["content-security-policy"], place
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == "no-store"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert "access-control-allow-origin" not in headers
            assert "python" not in headers["server"].lower()


def test_a_page_that_came_with_a_run_gets_no_rights_here(runs: Path) -> None:
    page = runs / "first.run" / "report.html"
    page.write_text("<p>mine</p>", encoding="utf-8")
    with serving(runs / "first.run") as address:
        status, headers, body = ask(address)
        assert (status, body) == (200, b"<p>mine</p>")
        policy = headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts")
        assert "allow-same-origin" not in policy
        assert "connect-src 'none'" in policy


def test_a_page_older_than_its_tables_is_not_shown(runs: Path) -> None:
    page = runs / "first.run" / "report.html"
    page.write_text("<p>mine</p>", encoding="utf-8")
    os.utime(page, (1, 1))
    assert not viewing.has_own_page(runs / "first.run")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "X" * 5000])
def test_nothing_but_get_and_head_is_known(runs: Path, method: str) -> None:
    with serving(runs) as address:
        host, path = urlsplit(address).netloc, urlsplit(address).path
        smuggled = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(smuggled)}\r\n\r\n".encode()
        found = raw(address, head + smuggled)
        assert found.startswith((b"HTTP/1.1 501 ", b"HTTP/1.1 405 ")), found[:100]
        assert found.count(b"HTTP/1.1") == 1


def test_a_body_is_not_taken_for_the_next_request(runs: Path) -> None:
    with serving(runs) as address:
        host, path = urlsplit(address).netloc, urlsplit(address).path
        inner = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        outer = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(inner)}\r\n\r\n".encode()
        assert raw(address, outer + inner).count(b"HTTP/1.1 200") == 1


def test_head_has_the_headers_alone(runs: Path) -> None:
    with serving(runs) as address:
        status, headers, body = ask(address, method="HEAD")
        assert (status, body) == (200, b"")
        assert int(headers["content-length"]) == len(ask(address)[2])


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 300 + b"\r\n",
    ],
)
def test_noise_does_not_disturb_the_server(runs: Path, request_: bytes) -> None:
    with serving(runs) as address:
        assert SECRET not in raw(address, request_)
        assert ask(address)[0] == 200


def test_a_damaged_run_is_named_and_the_others_work(runs: Path) -> None:
    (runs / "first.run" / "summary.json").write_text('{"latency": 3}', encoding="utf-8")
    (runs / "nightly" / "second.run" / "spans.parquet").write_bytes(b"PAR1 no more")
    with serving(runs) as address:
        text = ask(address)[2].decode()
        assert "is damaged" in text
        (known,) = ids(address)
        status, _, body = ask(address, f"run/{known}/trace.json")
        assert status == 422
        assert "spans.parquet: cannot be read as Parquet" in body.decode()
        assert ask(address)[0] == 200


def test_hostile_names_are_shown_harmlessly(runs: Path) -> None:
    head = runs / "first.run" / "run.json"
    fields = json.loads(head.read_bytes())
    head.write_text(
        json.dumps(fields | {"model": HOSTILE, "target": HOSTILE, "created": HOSTILE, "provenance": HOSTILE})
    )
    with serving(runs) as address:
        body = ask(address)[2].decode()
    assert "<script" not in body
    assert "\u202e" not in body
    assert "\x07" not in body
    assert len(body) < 20_000


def test_the_search_for_runs_is_bounded(run: Path, tmp_path: Path) -> None:
    from opscope.server.catalogue import Catalogue

    deep = tmp_path
    for number in range(6):
        deep = deep / f"level{number}"
        shutil.copytree(run, deep / "some.run")
    assert sorted(entry.name.count("/") for entry in Catalogue(tmp_path).listing().entries) == [1, 2, 3]
    few = Catalogue(tmp_path, most_runs=2).listing()
    assert (len(few.entries), few.is_whole) == (2, False)
    assert not Catalogue(tmp_path, most_folders=3).listing().is_whole
    assert Catalogue(tmp_path).listing().is_whole


def test_a_timeline_drawn_from_the_tables_is_the_one_of_the_program(run: Path) -> None:
    whole = viewing.open_folder(run)
    program = decode_program((run / "programqpc.bin").read_bytes(), source="program")
    expected, found = BytesIO(), BytesIO()
    run_again = replace(head_of(program), info=whole.info)
    ChromeTrace(run_again, flows=True, path=path_of(whole)).render(whole.trace, expected)
    viewing.write_trace(whole, found)
    assert found.getvalue() == expected.getvalue()
    with serving(run) as address:
        _, headers, body = ask(address, "trace.json")
        assert body == expected.getvalue()
        assert headers["content-disposition"] == 'attachment; filename="trace.json"'


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz", "trace.pftrace"])
def test_a_timeline_that_lies_in_the_run_is_given_as_it_is(runs: Path, name: str) -> None:
    (runs / "first.run" / name).write_bytes(b"mine")
    with serving(runs / "first.run") as address:
        assert name.encode() in ask(address, "perfetto")[2]
        assert ask(address, name)[2] == b"mine"


def test_a_run_without_spans_has_a_page_and_no_timeline(run: Path, tmp_path: Path) -> None:
    whole = viewing.open_folder(run)
    write_run(replace(whole, trace=empty_trace(Provenance.SIMULATED)), tmp_path / "totals.run")
    with serving(tmp_path / "totals.run") as address:
        assert ask(address)[0] == 200
        status, _, body = ask(address, "perfetto")
        assert status == 422
        assert b"has totals and no timeline" in body


def test_pieces_together_are_all_spans(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = viewing.open_folder(run)
    with serving(run) as address:
        assert ask(address, "spans/0.bin")[0] == 404  # the page holds all of them
    monkeypatch.setattr(viewing, "MOST_ROWS", 10)
    monkeypatch.setattr("opscope.views.page.spans.PIECE_ROWS", 100)
    pieces = []
    with serving(run) as address:
        while (found := ask(address, f"spans/{len(pieces)}.bin"))[0] == 200:
            pieces.append(decode(found[2]))
    assert len(pieces) == -(-len(whole.trace.spans) // 100) > 1
    order = np.lexsort((whole.trace.spans["end_ns"], whole.trace.spans["start_ns"], whole.trace.spans["lane"]))
    for column, key in (("start", "start_ns"), ("op", "op"), ("command", "command")):
        assert np.array_equal(np.concatenate([piece[column] for piece in pieces]), whole.trace.spans[key][order])


def test_ticked_runs_stand_on_one_page(runs: Path) -> None:
    with serving(runs) as address:
        one, other = ids(address)
        status, headers, body = ask(address, f"compare?run={one}&run={other}")
        assert status == 200
        assert "connect-src 'self'" in headers["content-security-policy"]
        assert b"nightly/second.run against first.run" in body or b"first.run against nightly/second.run" in body
        for query in ("", f"?run={one}", f"?run={one}&run={one}", f"?run={one}&run=../secret.txt", "?" + "run=x&" * 99):
            status, _, body = ask(address, f"compare{query}")
            assert status == 422
            assert b"expected 2 to 8" in body


def test_a_page_is_rendered_once_and_again_when_the_run_changes(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = []
    genuine = viewing.write_page
    monkeypatch.setattr(viewing, "write_page", lambda *given: (rendered.append(given[0]), genuine(*given))[1])
    folder = runs / "first.run"
    with serving(folder) as address:
        first = ask(address)[2]
        assert ask(address)[2] == first
        assert len(rendered) == 1
        os.utime(folder / "spans.parquet")
        ask(address)
        assert len(rendered) == 2


def test_a_full_store_throws_out_what_was_not_used_for_longest(tmp_path: Path) -> None:
    from opscope.server.store import Store

    store = Store(tmp_path, most_bytes=250)
    made: list[str] = []

    def ask_for(key: str) -> bytes:
        with store.open(key, 1, lambda out: (made.append(key), out.write(key.encode() * 100))) as file:
            return file.read()

    for key in ("a", "b", "a", "c", "a", "b"):
        assert ask_for(key) == key.encode() * 100
    assert made == ["a", "b", "c", "b"]
    assert len(list(tmp_path.iterdir())) == 2


def test_rendering_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    from opscope.server.store import Store

    def fail(out: BinaryIO) -> None:
        out.write(b"half")
        raise ValueError("no")

    store = Store(tmp_path)
    with pytest.raises(ValueError, match="no"):
        store.open("a", 1, fail)
    assert not list(tmp_path.iterdir())
    with store.open("a", 1, lambda out: out.write(b"whole")) as file:
        assert file.read() == b"whole"


def test_many_at_once_get_the_same_timeline(run: Path) -> None:
    with serving(run) as address:
        found: list[bytes] = []
        threads = [threading.Thread(target=lambda: found.append(ask(address, "trace.json")[2])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_port_that_is_taken_is_one_line(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", str(run), "--port", str(port), "--no-browser"]) == 2
    output = capsys.readouterr()
    assert output.err.startswith(f"opscope: port {port}: cannot be used (Address already in use); expected a free one")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("place", ["nowhere", "file"])
def test_what_is_no_folder_is_one_line(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert main(["view", str(tmp_path / place), "--no-browser"]) == 2
    assert "expected a run or a folder of runs\n" in capsys.readouterr().err


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_and_leaves_nothing_behind(run: Path, tmp_path: Path, end: signal.Signals) -> None:
    code = "import sys; from opscope.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "view", str(run), "--no-browser"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert ask(address, "trace.json")[0] == 200
        assert list(tmp_path.iterdir())
        process.send_signal(end)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert not list(tmp_path.iterdir())
