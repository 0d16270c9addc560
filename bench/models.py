"""Models to measure with, made on the spot under `.cache/bench-models`."""

from __future__ import annotations

from pathlib import Path

from measure import CACHE, CHILDREN, OPSCOPE, PYTHON, progress, run_child

FOLDER = CACHE / "bench-models"


def zoo(name: str, file: str, *options: str) -> Path:
    """A network of `opscope zoo`. Made anew every time: an old file would measure an old zoo."""
    path = _place(file)
    run_child([OPSCOPE, "zoo", name, *options, "-o", str(path)], timeout=300)
    return path


def chain(ops: int) -> Path:
    """A graph of so many ops: a chain with residual branches."""
    path = _place(f"chain-{ops}.onnx")
    run_child([PYTHON, str(CHILDREN / "chain_graph.py"), str(ops), str(path)], timeout=300)
    return path


def _place(file: str) -> Path:
    progress(f"making {file}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    return FOLDER / file
