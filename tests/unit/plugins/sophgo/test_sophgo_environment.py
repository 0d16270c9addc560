"""The last steps of the compiler's environment, on a folder that looks like one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opscope.backends.making import Making
from opscope.plugins.sophgo.environment import finish
from opscope.plugins.sophgo.manifest import ENVIRONMENT
from support.plugins.toolchains import program


@pytest.fixture
def making(tmp_path: Path) -> Making:
    packages = tmp_path / "lib" / "python3.10" / "site-packages"
    compiler = packages / "tpu_mlir"
    for name in ("lib/third_party/libc.so.6", "lib/one.so", "lib/two.so", "src/code.c", "python/tools/a.py"):
        (compiler / name).parent.mkdir(parents=True, exist_ok=True)
        (compiler / name).write_bytes(b"x" * (1 << 18))
    program(compiler / "bin" / "tpuc-opt").chmod(0o644)
    for name in ENVIRONMENT.programs:
        program(tmp_path / "bin" / name)
    return Making(ENVIRONMENT, tmp_path, None, lambda _: None)


def test_what_cannot_work_goes_and_equal_files_are_one(making: Making) -> None:
    finish(making)
    compiler = making.packages / "tpu_mlir"
    assert not (compiler / "lib" / "third_party" / "libc.so.6").exists()
    assert not (compiler / "src").exists()
    assert (compiler / "lib" / "one.so").samefile(compiler / "lib" / "two.so")
    assert (compiler / "bin" / "tpuc-opt").stat().st_mode & 0o111


def test_packages_that_are_not_used_can_be_imported_and_not_used(making: Making) -> None:
    finish(making)
    words = (
        "import torch.nn.functional, cv2\nfrom torch.fx import Graph\nfrom onnxruntime_extensions import onnx_op\n"
        "class Mine(torch.nn.Module): pass\n@onnx_op(op_type='a')\ndef f(): return 7\nprint(f(), Mine.__mro__[1])\n"
        "torch.zeros(3)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", words],
        env={"PYTHONPATH": str(making.packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "7 <class 'object'>\n"
    assert ended.stderr.splitlines()[-1] == "ModuleNotFoundError: torch.zeros: torch is not in this environment"
