"""What `opscope setup torq` makes, at work: a model is converted and compiled by the vendor's own programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from opscope.backends import environments
from opscope.cli import main
from support.plugins.toolchains import needed


def test_a_model_is_converted_compiled_and_opened(tmp_path: Path) -> None:
    toolchain = needed("torq")
    assert environments.version(toolchain)[0].isdigit()
    assert main(["zoo", "fc", "--format", "tflite", "--precision", "int8", "-o", str(tmp_path / "fc.tflite")]) == 0
    for name, *words in (
        ("tosa-converter-for-tflite", "--text", "--emit-debug-info", "fc.tflite", "-o", "fc.mlir"),
        ("torq-compile", "fc.mlir", "-o", "fc.vmfb", "--torq-enable-profiling", "--torq-dump-profiling=t.csv"),
        ("iree-dump-module", "fc.vmfb"),
        ("iree-opt", "--version"),
        ("torq-run-module", "--help"),
    ):
        subprocess.run([toolchain.programs[name], *words], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "t.csv").read_text().startswith("taskId, elapsed_time(us), timestamp(us)")
