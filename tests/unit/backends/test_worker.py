"""The exchange with a process: requests, answers, and everything that can go wrong on the other side."""

from __future__ import annotations

import ast
import json
import sys
import time
from pathlib import Path

import pytest

from opscope.backends import worker
from opscope.backends.process import checked_answer, run_worker, work_folder
from opscope.core.errors import ModelError, UsageError
from support.plugins.toolchains import pythons

OTHER = next(iter(pythons()), None)  # the oldest that the protocol works with
INTERPRETERS = [
    pytest.param(Path(sys.executable), id="ours"),
    pytest.param(OTHER, id="another", marks=pytest.mark.skipif(OTHER is None, reason="no other Python by pyenv")),
]


def ask(python: Path, text: str, folder: Path, **request: object) -> object:
    """What is answered to a request by a worker of this text."""
    file = folder / "work.py"
    file.write_text(text)
    with work_folder("test") as work:
        answer, ended = run_worker(file, request, work, longest_s=30, python=python)
        return checked_answer(answer, ended, runtime="A tool", model=Path("m.onnx"))


@pytest.mark.parametrize("python", INTERPRETERS)
def test_work_is_done_in_another_python_with_nothing_of_ours(python: Path, tmp_path: Path) -> None:
    text = """\
import sys
def work(request):
    return {"twice": 2 * request["number"], "python": sys.executable, "ours": "opscope" in sys.modules, "at": sys.path}
"""
    answer = ask(python, text, tmp_path, number=21)
    assert isinstance(answer, dict)
    assert (answer["twice"], answer["python"], answer["ours"]) == (42, str(python), False)
    assert str(Path(worker.__file__).parent) not in answer["at"]


@pytest.mark.parametrize("python", INTERPRETERS)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "from opscope_worker import RefusedError\ndef work(request): raise RefusedError('x: too large')",
            "A tool cannot run it: x: too large",
        ),
        ("def work(request): return 1 // 0", "A tool cannot run it: ZeroDivisionError: "),
        ("import nothing_of_that_name", "A tool did not work here: it needs the Python module nothing_of_that_name; "),
        (
            'def work(request): raise ImportError("/lib/libc.so.6: version `GLIBC_2.38\' not found (needed)")',
            "A tool did not work here: it needs GLIBC_2.38, and a shared library here is older; it says: ImportError",
        ),
        (
            "def work(request): raise ImportError('libGL.so.1: cannot open shared object file: No such file')",
            "A tool did not work here: it needs the shared library libGL.so.1; ",
        ),
        ("import os\ndef work(request): os.abort()", "A tool crashed (SIGABRT); it says: "),
        ("def work(request): raise SystemExit(3)", "A tool ended with code 3; it says: no message"),
        ("def work(request) return", "A tool cannot run it: SyntaxError: "),
    ],
)
def test_whatever_goes_wrong_there_is_one_line(python: Path, tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ModelError) as error:
        ask(python, text, tmp_path)
    assert str(error.value).startswith(f"m.onnx: {words}")
    assert "\n" not in str(error.value)


def test_a_python_that_cannot_be_started_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"/gone: cannot be started \(No such file or directory\); expected a program"):
        ask(tmp_path / "gone", "", tmp_path)


def test_another_version_of_the_protocol_is_refused_on_both_sides(tmp_path: Path) -> None:
    request, reply = tmp_path / "request.json", tmp_path / "answer.json"
    request.write_text(json.dumps({"schema": "opscope.worker/9"}))
    worker.answer(lambda _: {}, str(request), str(reply))
    assert json.loads(reply.read_text()) == {
        "schema": "opscope.worker/1",
        "ok": False,
        "problem": "worker: the request is of opscope.worker/9; expected opscope.worker/1",
    }
    text = "import os, sys\ndef work(request):\n open(sys.argv[3], 'w').write('{\"schema\": \"opscope.worker/9\"}')\n"
    with pytest.raises(UsageError, match=r"work\.py: its answer is of opscope\.worker/9; expected opscope\.worker/1$"):
        ask(Path(sys.executable), text + " os._exit(0)", tmp_path)


def test_a_worker_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    file, sign = tmp_path / "work.py", tmp_path / "sign"
    file.write_text(
        "import subprocess\ndef work(request):\n"
        f"  subprocess.run(['sh', '-c', 'sh -c \"while :; do date >> {sign}; sleep 0.05; done\"; true'])\n"
    )
    with work_folder("test") as work:
        answer, ended = run_worker(file, {}, work, longest_s=1)
    assert (answer, ended.how) == (None, "was stopped at its time limit")
    size = sign.stat().st_size
    time.sleep(0.3)
    assert sign.stat().st_size == size


def test_the_other_end_is_written_for_python_3_8_and_its_library_alone() -> None:
    tree = ast.parse(Path(worker.__file__).read_text(encoding="utf-8"), feature_version=(3, 8))
    found = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name).partition(".")[0] for name in found} <= set(sys.stdlib_module_names)
