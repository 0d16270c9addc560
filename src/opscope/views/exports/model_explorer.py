"""Node data for Model Explorer: ops of the model coloured by their time, or marked by engine or finding.

A file is the data of one graph: `results` by node, a name, and how values become colours. A node is found by its id, as
of ONNX its name, or by the tensor it writes, as of TFLite: names of ops are the one and the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.provenance import Provenance
from ...recording.finding import Findings
from ...recording.run import Run

DATA = ("time", "engine", "findings")
_COOL, _WARM, _HOT = "#ffffff", "#ffd27f", "#e0533d"
_DARK, _LIGHT = "#202124", "#ffffff"
_COLOURS = ("#7fb3e6", "#f4b183", "#a9d18e", "#d6a6d6", "#ffd966", "#9fd6cf", "#c9b18f", "#b7b7e6")


class ModelExplorerData:
    """One kind of data of a run; its name says which, and how it was obtained."""

    suffix = ".json"

    def __init__(self, data: str = DATA[0]) -> None:
        self.data = data

    def fields(self, run: Run, findings: Findings) -> Mapping[str, object]:
        """The file as an object."""
        if self.data == "time":
            return _times(run)
        if self.data == "engine":
            ran = [op for op in run.summary.ops if op.op is not None and (op.engine or op.placed)]
            told = {op.name: op.engine or op.placed for op in ran}
            return _words(f"engine ({run.info.target})", _with_covered(run, told))
        named: dict[str, list[str]] = {}
        for finding in findings.findings:
            for op in finding.ops:
                named.setdefault(op, []).append(finding.id)
        told = {op: ", ".join(dict.fromkeys(ids)) for op, ids in named.items()}
        return _words(f"findings ({_obtained(run, findings.provenance)})", _with_covered(run, told))


def _obtained(run: Run, provenance: Provenance) -> str:
    return ", ".join(filter(None, (run.info.target, provenance, run.info.basis)))


def _times(run: Run) -> Mapping[str, object]:
    """Microseconds; an op whose time is unknown has no value, and so no colour."""
    timed = [op for op in run.summary.ops if op.op is not None and op.wall_ns is not None]
    results = {op.name: {"value": (op.wall_ns or 0) / 1000} for op in timed}
    return {
        "name": f"time, us ({_obtained(run, run.info.provenance)})",
        "results": results,
        "gradient": [
            {"stop": 0, "bgColor": _COOL, "textColor": _DARK},
            {"stop": 0.5, "bgColor": _WARM, "textColor": _DARK},
            {"stop": 1, "bgColor": _HOT, "textColor": _LIGHT},
        ],
    }


def _with_covered(run: Run, told: Mapping[str, str]) -> Mapping[str, str]:
    """What is true of an op is true of those that it does the work of; a time is not, for it would count twice."""
    covered = {name: told[op.name] for op in run.summary.ops if op.name in told for name in op.covers}
    return {**covered, **told}


def _words(name: str, told: Mapping[str, str]) -> Mapping[str, object]:
    words: Sequence[str] = sorted(set(told.values()))
    colours = {word: _COLOURS[number % len(_COLOURS)] for number, word in enumerate(words)}
    results = {op: {"value": word, "bgColor": colours[word], "textColor": _DARK} for op, word in told.items()}
    return {"name": name, "results": results}
